"""The table lock around a step of a transaction: it saves wasted work, and safety never rests on it alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from hudi_locks.clock import Clock
from hudi_locks.errors import LockError
from hudi_locks.redaction import open_log

__all__ = ["HeldLock", "Hold", "Locks", "hold_table"]

_log = open_log(__name__)


class HeldLock(Protocol):
    """What a transaction needs of a held lock; `hudi_locks.lock.Held` is one."""

    @property
    def token(self) -> int | None:
        """Fencing token."""

    def verify(self) -> None:
        """Raise `LockLost` unless the lock service confirms that it is held."""

    def release(self) -> None:
        """Let go of it."""


class Locks(Protocol):
    """What a transaction needs of a lock manager; `hudi_locks.LockManager` is one."""

    def lock(self) -> HeldLock:
        """Acquire the table's lock, or raise `AcquireTimeout`."""


@dataclass
class Hold:
    """The lock while it is held, or its absence.

    Attributes:
        held: The lock; None in a single writer without one.
        wait_ms: How long it took to get.
        held_ms: How long it was held, once it is released.
        warnings: What went wrong when it was released.
    """

    held: HeldLock | None
    wait_ms: int = 0
    held_ms: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def token(self) -> int | None:
        """Fencing token, if the lock has one."""
        return self.held.token if self.held else None

    def verify(self) -> None:
        """Return if the lock service says that the lock is held, or there is none.

        It is asked each time: a JVM peer that removes a lock file that is not its own goes unnoticed between renewals.

        Raises:
            LockLost: It is not, or the lock service does not answer.
        """
        if self.held is not None:
            self.held.verify()


@contextmanager
def hold_table(locks: Locks | None, clock: Clock) -> Iterator[Hold]:
    """Hold the table's lock. A failure to release is a warning: the lock runs out, and what was done stays done.

    Raises:
        AcquireTimeout: Somebody else held it for as long as the options allow to wait.
    """
    asked_s = clock.monotonic()
    hold = Hold(locks.lock() if locks is not None else None)
    got_s = clock.monotonic()
    hold.wait_ms = round((got_s - asked_s) * 1000)
    try:
        yield hold
    finally:
        _release(hold)
        if hold.held is not None:
            hold.held_ms = round((clock.monotonic() - got_s) * 1000)


def _release(hold: Hold) -> None:
    if hold.held is None:
        return
    try:
        hold.held.release()
    except LockError as error:
        hold.warnings.append(f"the table lock was not released in order: {error}")
        _log.warning("the table lock was not released in order: %s", error)
