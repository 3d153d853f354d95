"""Heartbeats of writers: how others see that a pending instant is alive (Hudi's HoodieHeartbeatClient).

Not to be confused with the renewal of locks. The time of a beat is the file's time of modification, by the store's
clock; JVM cleaners read the same file. Its content, which they leave alone, tells who beats: a process that is
certainly gone is not waited for. Nothing rests on that which an expired heartbeat would not allow as well: who is taken
for dead too early is rolled back by a claim, and meets that at its publish. It only saves those the wait who restart on
the machine where their job died.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.errors import StorageError
from hudi_locks.observe import HEARTBEAT_AGE, HEARTBEAT_MISS, Metrics
from hudi_locks.redaction import open_log
from hudi_locks.storage import Entry, Storage

__all__ = [
    "HEARTBEAT_FOLDER",
    "Beating",
    "WriterHeartbeat",
    "find_alive",
    "find_expired",
    "heartbeat_path",
    "name_writer",
    "select_alive",
]

_NAMESPACES: Final = ("/proc/self/ns/pid", "/proc/self/ns/time")
_ZOMBIES: Final = ("Z", "X")
_STATE, _THREADS, _START = 0, 17, 19
_MOST_PID: Final = 2**31 - 1
_registry: Final = uuid.uuid4().hex
"""Names this copy of `_here`: a module that is loaded a second time does not know what beats by the first."""
_here: Final[set[str]] = set()
"""Ids of what beats in this process. A forked child has its parent's, and another process id."""
HEARTBEAT_FOLDER: Final = ".hoodie/.heartbeat"
_JOIN_S: Final = 5.0
_log = open_log(__name__)


@dataclass(frozen=True)
class Beating:
    """Who keeps one heartbeat going; the content of its file, where JVM writers leave none.

    Attributes:
        host: Name of the machine.
        machine: Its boot and the namespaces of its process ids and of its time; "" where they are not to be had.
        pid: Process id.
        started: When the process started, in ticks since that boot, so that a process id is not taken for an older one.
        id: Of this heartbeat among all of the process.
    """

    host: str
    machine: str
    pid: int
    started: str
    id: str

    @classmethod
    def begin(cls) -> Beating:
        """One of this process, until `end`; to be begun before its file can be seen."""
        beating = cls(*_find_self(os.getpid()), f"{_registry}.{uuid.uuid4().hex}")
        _here.add(beating.id)
        return beating

    def end(self) -> None:
        """It beats no more, and nothing is published under it; quiet if it was ended before."""
        _here.discard(self.id)

    def encode(self) -> bytes:
        """The content of a heartbeat file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes | None) -> Beating | None:
        """From a heartbeat file; None if it does not tell, as those of JVM writers, or cannot be of a process."""
        try:
            found = cls(**json.loads(data or b"{}"))
        except (ValueError, TypeError, RecursionError):
            return None
        texts = (found.host, found.machine, found.started, found.id)
        is_process = type(found.pid) is int and 0 < found.pid <= _MOST_PID
        return found if is_process and all(isinstance(text, str) for text in texts) else None

    @property
    def is_over(self) -> bool:
        """Whether its process is certainly gone, or has ended it; False if that cannot be told from here."""
        host, machine, pid, started = _find_self(os.getpid())
        if not self.machine or not self.started or (self.host, self.machine) != (host, machine):
            return False
        if (self.pid, self.started) == (pid, started):
            return self.id.startswith(_registry) and self.id not in _here
        return _is_gone(self.pid, self.started)


@lru_cache(maxsize=1)
def _find_self(pid: int) -> tuple[str, str, int, str]:
    stat = _read_stat(pid)
    return socket.gethostname(), _name_machine(), pid, stat[_START] if stat else ""


def _name_machine() -> str:
    """Processes of which this is equal see each other by their ids, and their starts by one clock."""
    try:
        if str(Path("/proc/self").readlink()) != str(os.getpid()):
            return ""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        spaces = [path.readlink() for path in map(Path, _NAMESPACES) if os.path.lexists(path)]
    except OSError:
        return ""
    return " ".join([boot, *map(str, spaces)])


def _is_gone(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is there, and another user's
    stat = _read_stat(pid)
    if not stat:
        return False  # hidden from this user, or gone in this moment
    return stat[_START] != started or (stat[_STATE] in _ZOMBIES and int(stat[_THREADS]) <= 1)


def _read_stat(pid: int) -> Sequence[str]:
    """What the kernel says of a process, from its state on; its name, which may hold anything, stands before that."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return text.rpartition(")")[2].split()


def heartbeat_path(requested: str) -> str:
    """Where the writer of the instant begun at `requested` beats."""
    return f"{HEARTBEAT_FOLDER}/{requested}"


def find_alive(storage: Storage, requested: Iterable[str], *, limit_ms: int) -> Mapping[str, int]:
    """Those of the instants whose last beat is at most `limit_ms` ago by the store's clock, with its age in ms.

    One whose process is certainly gone is not among them, however lately it beat.
    """
    beats = {entry.name: entry for entry in storage.list(HEARTBEAT_FOLDER)}
    return _select(storage, {time: beats[time] for time in requested if time in beats}, limit_ms)


def select_alive(storage: Storage, requested: Iterable[str], *, limit_ms: int) -> tuple[str, ...]:
    """The same of a few instants, in their order, by a look at each file in place of a listing."""
    beats = {time: storage.stat(heartbeat_path(time)) for time in requested}
    return tuple(_select(storage, {time: beat for time, beat in beats.items() if beat}, limit_ms))


def name_writer(storage: Storage, requested: str) -> str:
    """Who beats for an instant, for a person; "" if its heartbeat does not tell, as that of a JVM writer."""
    beating = Beating.decode(storage.read(heartbeat_path(requested)))
    return "" if beating is None else f"process {beating.pid} on {beating.host}"


def _select(storage: Storage, beats: Mapping[str, Entry], limit_ms: int) -> Mapping[str, int]:
    if not beats:
        return {}
    now_ms = storage.now_ms()
    ages_ms = {time: max(0, now_ms - beat.modified_ms) for time, beat in beats.items()}
    return {t: age_ms for t, age_ms in ages_ms.items() if age_ms <= limit_ms and not _is_over(storage, beats[t])}


def find_expired(storage: Storage, requested: Iterable[str], *, limit_ms: int) -> frozenset[str]:
    """Those of the instants that are not alive, as `find_alive` says, or never were.

    An instant that has just completed looks the same: load the timeline again before acting on the answer.
    """
    asked = frozenset(requested)
    return asked - find_alive(storage, sorted(asked), limit_ms=limit_ms).keys()


def _is_over(storage: Storage, beat: Entry) -> bool:
    beating = Beating.decode(storage.read(heartbeat_path(beat.name))) if beat.size else None
    return beating is not None and beating.is_over


class WriterHeartbeat:
    """The heartbeat of one instant, on a thread of its own. Runs on the driver.

    A heartbeat that was lost, because its file is gone or too long unrenewed, never comes back: others may have acted
    on it, so a writer that slept does not even touch the file any more. A beat that fails is tried again sooner; one
    that gets no answer within a quarter of the interval is left to itself, and another thread goes on.

    Args:
        storage: Of the table.
        requested: Requested time of the instant.
        interval_ms: Time between two beats, ms.
        tolerable_misses: After so many intervals without a beat the writer counts as dead.
        clock: Its monotonic time is measured from before each beat was sent.
        metrics: Gets the age of the heartbeat at each beat, and counts those that failed.

    Attributes:
        requested: Requested time of the instant.
        lost_because: Why it is lost; "" as long as it is not known to be.
    """

    def __init__(
        self,
        storage: Storage,
        requested: str,
        *,
        interval_ms: int,
        tolerable_misses: int,
        clock: Clock,
        metrics: Metrics | None = None,
    ) -> None:
        self.requested = requested
        self._storage = storage
        self._path = heartbeat_path(requested)
        self._interval_s = interval_ms / 1000
        self._limit_s = self._interval_s * tolerable_misses
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._on_lost: list[Callable[[str], None]] = []
        self._last_s = float("-inf")
        self._beating: Beating | None = None
        self._failed = False
        self._has_file = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.lost_because: str = ""

    def start(self) -> bool:
        """Make the file and begin to beat; False if somebody else has an instant of that time.

        Raises:
            StorageError: The file could not be made.
        """
        sent_s, beating = self._clock.monotonic(), Beating.begin()
        try:
            is_mine = self._storage.create_transient(self._path, beating.encode())
        except StorageError:
            beating.end()
            raise
        if not is_mine:
            beating.end()
            return False
        self._last_s, self._beating, self._has_file = sent_s, beating, True
        name = f"heartbeat-{self._path[-17:]}"
        self._thread = threading.Thread(target=self._run, args=(self._interval_s,), name=name, daemon=True)
        self._thread.start()
        return True

    def hold_time(self) -> bool:
        """Make the file alone, empty: it keeps the time until whoever ends the instant removes it; False as in `start`.

        Raises:
            StorageError: The file could not be made.
        """
        self._has_file = self._storage.create_transient(self._path, b"")
        return self._has_file

    @property
    def is_fresh(self) -> bool:
        """Whether others must still take the writer for alive."""
        return not self.lost_because and self.age_s <= self._limit_s

    @property
    def age_s(self) -> float:
        """Seconds since the last beat that is known to have come through, from before it was sent."""
        return self._clock.monotonic() - self._last_s

    def call_when_lost(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the reason as soon as it is noticed to be lost; now if it has been. From any thread."""
        with self._lock:
            self._on_lost.append(callback)
            reason = self.lost_because
        if reason:
            callback(reason)

    def stop(self) -> None:
        """End it and remove its file; quiet when it never started or was stopped before.

        Raises:
            StorageError: The file could not be removed; it goes out of date by itself.
        """
        self.pause()
        self._thread = None
        if self._has_file:
            self._has_file = False
            self._storage.delete_all([self._path])

    def pause(self) -> None:
        """Stop beating and leave the file, as a writer that dies does; this process takes it for dead at once."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)
        if self._beating is not None:
            self._beating.end()

    @contextmanager
    def pause_on_error(self) -> Iterator[None]:
        """Pause if the block fails: a living process would keep the instant pending for ever."""
        try:
            yield
        except BaseException:
            self.pause()
            raise

    @contextmanager
    def stop_at_end(self) -> Iterator[None]:
        """Stop at the end of the block; pause if it fails."""
        with self.pause_on_error():
            yield
        self.stop()

    def _run(self, pause_s: float) -> None:
        while self._is_mine() and not self._clock.wait(self._stopped, pause_s) and self._is_mine():
            self._beat()
            pause_s = self._interval_s / 10 if self._failed else self._interval_s

    def _is_mine(self) -> bool:
        return not self.lost_because and self._thread is threading.current_thread()

    def _beat(self) -> None:
        self._metrics.report(HEARTBEAT_AGE, self.age_s)
        if not self.is_fresh:
            self._lose(f"no beat for {self.age_s:.0f} s, more than {self._limit_s:.0f} s")
            return
        sent_s, answered = self._clock.monotonic(), threading.Event()
        try:
            self._guard(answered)
            is_there = self._storage.touch(self._path)
        except Exception as error:  # noqa: BLE001  # whatever it was, a heartbeat that stops for it would kill the write
            self._miss(f"a heartbeat failed, the next one comes sooner: {type(error).__name__}: {error}")
        else:
            self._take_answer(sent_s, is_there=is_there)
        finally:
            answered.set()

    def _guard(self, answered: threading.Event) -> None:
        """Watch over the beat that is sent now: without an answer in time the watching thread goes on in its place."""
        sender = threading.current_thread()

        def watch() -> None:
            if self._clock.wait(answered, self._interval_s / 4) or self._stopped.is_set():
                return
            if self._thread is sender:
                self._miss(f"a heartbeat got no answer for {self._interval_s / 4:g} s: another one is sent")
                self._thread = threading.current_thread()
                self._run(0.0)

        try:
            threading.Thread(target=watch, name=f"heartbeat-guard-{self._path[-17:]}", daemon=True).start()
        except RuntimeError as error:
            _log.warning("%s: this beat has no deadline: %s", self._path, error)

    def _take_answer(self, sent_s: float, *, is_there: bool) -> None:
        self._failed = False
        if not is_there:
            self._lose(f"{self._path} was removed")
        elif self.age_s > self._limit_s:
            self._lose(f"a beat took {self._clock.monotonic() - sent_s:.0f} s")
        else:
            with self._lock:
                self._last_s = max(self._last_s, sent_s)

    def _miss(self, what: str) -> None:
        self._failed = True
        self._metrics.count(HEARTBEAT_MISS)
        _log.warning("%s: %s", self._path, what)

    def _lose(self, reason: str) -> None:
        with self._lock:
            is_first, self.lost_because = not self.lost_because, self.lost_because or reason
            callbacks = tuple(self._on_lost)
        if not is_first or self._stopped.is_set():
            return
        _log.warning("the heartbeat of %s is lost: %s", self._path, reason)
        for callback in callbacks:
            callback(reason)
