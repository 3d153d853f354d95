"""Heartbeats of writers: how others see that a pending instant is alive (Hudi's HoodieHeartbeatClient).

Not to be confused with the renewal of locks. The time of a beat is the file's time of modification, by the store's
clock; JVM cleaners read the same file.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.errors import StorageError
from hudi_locks.storage import Storage

__all__ = ["HEARTBEAT_FOLDER", "WriterHeartbeat", "find_expired", "heartbeat_path"]

HEARTBEAT_FOLDER: Final = ".hoodie/.heartbeat"
_JOIN_S: Final = 5.0
_log = logging.getLogger(__name__)


def heartbeat_path(requested: str) -> str:
    """Where the writer of the instant begun at `requested` beats."""
    return f"{HEARTBEAT_FOLDER}/{requested}"


def find_expired(storage: Storage, requested: Iterable[str], *, limit_ms: int) -> frozenset[str]:
    """Those of the instants whose last beat is more than `limit_ms` ago by the store's clock, or that never beat.

    An instant that has just completed looks the same: load the timeline again before acting on the answer.
    """
    beats = {entry.name: entry.modified_ms for entry in storage.list(HEARTBEAT_FOLDER)}
    oldest_ms = storage.now_ms() - limit_ms
    return frozenset(time for time in requested if beats.get(time, oldest_ms - 1) < oldest_ms)


class WriterHeartbeat:
    """The heartbeat of one instant, on a thread of its own. Runs on the driver.

    A heartbeat that was lost, because its file is gone or too long unrenewed, never comes back: others may have acted
    on it. A beat that fails is tried again sooner.

    Args:
        storage: Of the table.
        requested: Requested time of the instant.
        interval_ms: Time between two beats, ms.
        tolerable_misses: After so many intervals without a beat the writer counts as dead.
        clock: Its monotonic time is measured from before each beat was sent.
    """

    def __init__(
        self, storage: Storage, requested: str, *, interval_ms: int, tolerable_misses: int, clock: Clock
    ) -> None:
        self._storage = storage
        self._path = heartbeat_path(requested)
        self._interval_s = interval_ms / 1000
        self._limit_s = self._interval_s * tolerable_misses
        self._clock = clock
        self._last_s = float("-inf")
        self._failed = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.lost_because = ""

    def start(self) -> bool:
        """Make the file and begin to beat; False if somebody else has an instant of that time.

        Raises:
            StorageError: The file could not be made.
        """
        sent_s = self._clock.monotonic()
        if not self._storage.create_if_absent(self._path, b""):
            return False
        self._last_s = sent_s
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-{self._path[-17:]}", daemon=True)
        self._thread.start()
        return True

    @property
    def is_fresh(self) -> bool:
        """Whether others must still take the writer for alive."""
        return not self.lost_because and self._age_s() <= self._limit_s

    def stop(self) -> None:
        """End it and remove its file; quiet when it never started or was stopped before.

        Raises:
            StorageError: The file could not be removed; it goes out of date by itself.
        """
        self.pause()
        if self._thread is not None:
            self._thread = None
            self._storage.delete(self._path)

    def pause(self) -> None:
        """Stop beating and leave the file, as a writer that dies does."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while not self.lost_because and not self._clock.wait(self._stopped, self._pause_s()):
            self._beat()

    def _pause_s(self) -> float:
        return self._interval_s / 10 if self._failed else self._interval_s

    def _beat(self) -> None:
        sent_s = self._clock.monotonic()
        if not self.is_fresh:
            self._lose(f"no beat for {self._age_s():.0f} s, more than {self._limit_s:.0f} s")
            return
        try:
            is_there = self._storage.touch(self._path)
        except StorageError as error:
            self._failed = True
            _log.warning("a heartbeat failed, the next one comes sooner: %s", error)
            return
        self._failed = False
        if not is_there:
            self._lose(f"{self._path} was removed")
        elif self._age_s() > self._limit_s:
            self._lose(f"a beat took {self._clock.monotonic() - sent_s:.0f} s")
        else:
            self._last_s = sent_s

    def _lose(self, reason: str) -> None:
        self.lost_because = reason
        _log.warning("the heartbeat of %s is lost: %s", self._path, reason)

    def _age_s(self) -> float:
        return self._clock.monotonic() - self._last_s
