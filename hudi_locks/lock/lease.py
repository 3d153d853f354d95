"""What a lock covers, who holds it until when, who this process and thread are, and the thread that renews leases."""

from __future__ import annotations

import enum
import os
import socket
import threading
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from hudi_locks.clock import Clock
from hudi_locks.display import make_card, say_time
from hudi_locks.errors import ConfigError, LockLost

__all__ = [
    "Holder",
    "Identity",
    "Lease",
    "LockScope",
    "LossReason",
    "Owner",
    "Renewable",
    "Renewals",
    "generation",
    "name_job",
]

_MOST_THREADS: Final = 8
"""One thread does the work. Others come only while it is stuck in a call, so that one slow lock service call does not
keep other leases from being renewed; this many may be stuck before renewals fall behind."""
_JOIN_S: Final = 5.0


@dataclass(frozen=True)
class LockScope:
    """The whole table, or one file group of it.

    Attributes:
        partition: Partition path as the table has it ("" for an unpartitioned table); None for the table's own lock.
        file_id: Id of the file group; None for the table's own lock.
    """

    partition: str | None = None
    file_id: str | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.partition is None) != (self.file_id is None) or self.file_id == "":
            raise ConfigError(
                f"a lock covers the table or one file group, not partition={self.partition!r} file_id={self.file_id!r};"
                " use LockScope.table() or LockScope.file_group(partition, file_id)",
                partition=self.partition,
                file_id=self.file_id,
            )
        # Kept, since every lock that is taken and released is looked up a dozen times.
        object.__setattr__(self, "_hash", hash((self.partition, self.file_id)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return LockScope, (self.partition, self.file_id)  # another process hashes texts in another way

    @classmethod
    def table(cls) -> LockScope:
        """The scope of the table's own lock."""
        return cls()

    @classmethod
    def file_group(cls, partition: str, file_id: str) -> LockScope:
        """The scope of one file group; `partition` is "" in an unpartitioned table."""
        return cls(partition, file_id)

    @property
    def is_table(self) -> bool:
        """Whether this is the table's own lock."""
        return self.file_id is None

    def __str__(self) -> str:
        return "table" if self.is_table else "/".join(part for part in (self.partition, self.file_id) if part)


class LossReason(enum.Enum):
    """Why a hold ended without its release."""

    EXPIRED = "the lease ran out before a renewal succeeded"
    STOLEN = "the record names another owner"
    DELETED = "the record is gone"
    SESSION = "the session with the lock service ended"
    UNREACHABLE = "the lock service did not answer within the safety margin"
    FORKED = "the lock belongs to the parent process"


@dataclass(frozen=True)
class Owner:
    """Who asks for a lock. Two owners with the same fields are the same owner.

    Attributes:
        id: Unique for each acquiring party, for instance a UUID.
        host: Name of its host.
        pid: Its process id.
        thread: Name of the acquiring thread.
        application: What a person would call the job, such as Spark's application id.
        trace: The span in which it holds the lock, as W3C's `traceparent`; "" where no trace tells of it. Says nothing
            of who the owner is.
    """

    id: str
    host: str = ""
    pid: int = 0
    thread: str = ""
    application: str = ""
    trace: str = field(default="", compare=False)

    def __str__(self) -> str:
        where = f"pid {self.pid} on {self.host}" if self.host else self.id or "an unknown writer"
        return f"{self.application} ({where})" if self.application else where


def name_job(owner: str) -> str:
    """The job of an owner, as texts name it: its application, without Spark's id of that; else its process.

    Id and process are others each time that a job runs.
    """
    application = owner.rpartition(" (pid ")[0]
    return application.rpartition(" (")[0] or application or owner


@dataclass(frozen=True)
class Lease:
    """One successful acquire: the proof that its owner held `scope` at that moment.

    Attributes:
        scope: What is held.
        owner: By whom.
        token: Fencing token, greater than that of every earlier hold of this scope; None without FENCING.
        deadline_s: When the right ends unless renewed, on the provider's monotonic clock, counted from *before* the
            request was sent; None if it never expires.
        state: Whatever the provider needs to renew and release. Opaque to everybody else.
    """

    scope: LockScope
    owner: Owner
    token: int | None = None
    deadline_s: float | None = None
    state: Any = field(default=None, compare=False, repr=False)

    def lost(self, reason: LossReason, *, key: str) -> LockLost:
        """The error for a hold that ended; `key` is where its lock lives in the backend: a path, node or item."""
        return LockLost(
            f"{self.owner} does not hold {key}: {reason.value}",
            scope=self.scope,
            owner=self.owner,
            key=key,
            reason=reason,
        )


_NAMED_IN_LINE: Final = 5


@dataclass(frozen=True)
class Holder:
    """The present holder as the backend tells it, also when that is a JVM writer.

    Attributes:
        key: Where the lock lives in the backend: a path, node or item.
        owner: Who holds it; fields that the record does not tell are empty.
        since_ms: Wall clock time of the acquire in ms since the epoch, or None.
        age_ms: Milliseconds since the record last changed, by the backend's clock where it has one, or None.
        token: What `break_if` compares: identifies this very hold.
        expires_in_ms: Milliseconds until others may take over; None if never or not known; negative if expired.
        raw: The record as text, for a person to read, without secrets.
        scope: What is held, `table` or partition and file id; "" where the backend keeps but a digest of it.
        waiting: Who stands in line for it, the next first, where the backend keeps a line.
    """

    key: str
    owner: Owner
    since_ms: int | None = None
    age_ms: int | None = None
    token: str = ""
    expires_in_ms: int | None = None
    raw: str = ""
    scope: str = ""
    waiting: tuple[Owner, ...] = ()

    def describe(self) -> list[tuple[str, str]]:
        """What is known of it, as names and words."""
        owner = self.owner
        known = (
            ("key", self.key),
            ("owner", owner.id or "not told by the record"),
            ("host", owner.host),
            ("process", str(owner.pid or "")),
            ("thread", owner.thread),
            ("application", owner.application),
            ("trace", owner.trace),
            ("since", say_time(self.since_ms)),
            ("last sign of life", _say_ago(self.age_ms)),
            ("others may take it", _say_expiry(self.expires_in_ms)),
            ("token", self.token),
            ("in line", _say_line(self.waiting)),
        )
        return [(name, words) for name, words in known if words]

    def _repr_html_(self) -> str:
        return make_card("Holder of a lock", self.describe())


def _say_line(waiting: tuple[Owner, ...]) -> str:
    named = ", ".join(str(owner) for owner in waiting[:_NAMED_IN_LINE])
    more = len(waiting) - _NAMED_IN_LINE
    return f"{named} and {more} more" if more > 0 else named


def _say_ago(age_ms: int | None) -> str:
    return "" if age_ms is None else f"{timedelta(seconds=age_ms // 1000)} ago"


def _say_expiry(left_ms: int | None) -> str:
    if left_ms is None:
        return "never by itself"
    return f"in {timedelta(seconds=left_ms // 1000)}" if left_ms >= 0 else "now"


class _Generation:
    number = 0

    def advance(self) -> None:
        self.number += 1


_GENERATION: Final = _Generation()
os.register_at_fork(after_in_child=_GENERATION.advance)


def generation() -> int:
    """A number that is another one in every forked child: what was made under a different one is not ours to use."""
    return _GENERATION.number


class Identity:
    """Makes the owners of one manager: one for each thread, the same one each time.

    Args:
        application: What a person would call the job.
    """

    def __init__(self, application: str = "") -> None:
        self._application = application
        self._host = socket.gethostname()
        self._local = threading.local()

    def owner(self) -> Owner:
        """The owner that the calling thread is."""
        cached: tuple[int, Owner] | None = getattr(self._local, "cached", None)
        if cached is None or cached[0] != generation():
            cached = self._local.cached = (generation(), self._new_owner())
        return cached[1]

    def _new_owner(self) -> Owner:
        thread = threading.current_thread().name
        return Owner(str(uuid.uuid4()), self._host, os.getpid(), thread, self._application)


class Renewable(ABC):
    """What the renewal thread looks after.

    Attributes:
        due_s: When it wants to be tended next, on the monotonic clock.
    """

    due_s: float

    @abstractmethod
    def alarm_s(self) -> float:
        """When it must be looked at even if its present tending does not come back."""

    @abstractmethod
    def tend(self) -> None:
        """Renew, or tell of the loss; sets `due_s`. Never raises."""


class Renewals:
    """Calls `tend` of everything added, when it is due. Thread-safe; daemon threads, started by the first `add`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tended: dict[Renewable, None] = {}
        self._idle: dict[threading.Event, float] = {}
        self._threads: list[threading.Thread] = []
        self._first_wake_s = float("-inf")
        self._latest_due_s = float("-inf")
        self._closed = False
        self._generation = generation()

    def add(self, renewable: Renewable) -> None:
        """Look after `renewable` from now on."""
        with self._lock:
            self._tended[renewable] = None
            self._latest_due_s = renewable.due_s
            if not self._threads:
                self._start_thread()
            elif renewable.due_s < self._first_wake_s:
                self._wake_all()

    def discard(self, renewable: Renewable) -> None:
        """Look after it no more."""
        with self._lock:
            self._tended.pop(renewable, None)

    def poke(self) -> None:
        """Look at all `due_s` again, for one has come nearer."""
        with self._lock:
            self._wake_all()

    def close(self) -> None:
        """End the threads, apart from one that calls this itself; in a forked child there are none."""
        if self._generation != generation():
            return
        with self._lock:
            self._closed = True
            self._wake_all()
            threads = [thread for thread in self._threads if thread is not threading.current_thread()]
        for thread in threads:
            thread.join(_JOIN_S)

    def _work(self) -> None:
        while (renewable := self._take()) is not None:
            renewable.tend()

    def _take(self) -> Renewable | None:
        while True:
            with self._lock:
                if self._closed:
                    return None
                first = min(self._tended, key=lambda renewable: renewable.due_s, default=None)
                now_s = self._clock.monotonic()
                if first is not None and first.due_s <= now_s:
                    return self._begin(first)
                event, wakes_s = threading.Event(), self._choose_wake_s(first, now_s)
                self._idle[event] = wakes_s
                self._note_first_wake()
            self._clock.wait(event, wakes_s - now_s)
            with self._lock:
                del self._idle[event]
                self._note_first_wake()

    def _note_first_wake(self) -> None:
        """Kept, since every lock that is taken asks for it; with nobody idle there is nobody to wake."""
        self._first_wake_s = min(self._idle.values(), default=float("-inf"))

    def _choose_wake_s(self, first: Renewable | None, now_s: float) -> float:
        """When to look again by itself.

        With nothing to do that is when the last lease added would have been due: a thread that slept for ever would be
        woken by every one of a row of quick lock cycles.
        """
        if first is not None:
            return first.due_s
        return self._latest_due_s if self._latest_due_s > now_s else float("inf")

    def _begin(self, renewable: Renewable) -> Renewable:
        renewable.due_s = renewable.alarm_s()
        if not self._idle and len(self._threads) < _MOST_THREADS:
            self._start_thread()
        return renewable

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"hudi-locks-renewal-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _wake_all(self) -> None:
        for event in self._idle:
            event.set()
