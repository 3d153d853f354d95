"""One process's part in the decisions about a table: the table lock, the claim log, and times that nobody else has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from hudi_locks.clock import Clock
from hudi_locks.errors import LockError
from hudi_locks.format import Instant, State
from hudi_locks.format.claim import Claim, ClaimKind, Content
from hudi_locks.redaction import open_log
from hudi_locks.timeline import create_instant, is_unfinished
from hudi_locks.timeline.heartbeat import WriterHeartbeat
from hudi_locks.transaction.conflicts import ConflictResolutionStrategy
from hudi_locks.transaction.context import TableContext, View
from hudi_locks.transaction.forward import Filled, Place, RollForward
from hudi_locks.transaction.hooks import CommitParticipant, StopPoint
from hudi_locks.transaction.rollback import Rollback

__all__ = ["HeldLock", "Locks", "TableCoordinator", "TableHold", "hold_table"]

_log = open_log(__name__)
_SERVICE_POINTS = (StopPoint.SERVICE_CLAIMED, StopPoint.SERVICE_REQUESTED)


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
class TableHold:
    """The lock while it is held, or its absence.

    Attributes:
        held: The lock; None in a single writer without one.
        wait_ms: How long it took to get.
        held_ms: How long it was held, once it is released.
        warnings: What went wrong when it was released.
        got_s: When it was had, on the monotonic clock.
    """

    held: HeldLock | None
    wait_ms: int = 0
    held_ms: int = 0
    warnings: list[str] = field(default_factory=list)
    got_s: float = 0.0

    def measure(self, clock: Clock) -> int:
        """How long it is held by now, in milliseconds."""
        return round((clock.monotonic() - self.got_s) * 1000)

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
def hold_table(locks: Locks | None, clock: Clock) -> Iterator[TableHold]:
    """TableHold the table's lock. A failure to release is a warning: the lock runs out, and what was done stays done.

    Raises:
        AcquireTimeout: Somebody else held it for as long as the options allow to wait.
    """
    asked_s = clock.monotonic()
    hold = TableHold(locks.lock() if locks is not None else None)
    hold.got_s = clock.monotonic()
    hold.wait_ms = round((hold.got_s - asked_s) * 1000)
    try:
        yield hold
    finally:
        _release(hold)
        if hold.held is not None:
            hold.held_ms = hold.measure(clock)


def _release(hold: TableHold) -> None:
    if hold.held is None:
        return
    try:
        hold.held.release()
    except LockError as error:
        hold.warnings.append(f"the table lock was not released in order: {error}")
        _log.warning("the table lock was not released in order: %s", error)


@dataclass(frozen=True)
class TableCoordinator(TableContext):
    """Decides together with the other writers and table services of a table. Thread-safe. Runs on the driver.

    Attributes:
        locks: Of the table; None in a single writer without one.
        strategy: Says which writes may not both be published.
        participants: What is prepared before a claim publishes a write, in this order.
    """

    locks: Locks | None
    strategy: ConflictResolutionStrategy
    participants: tuple[CommitParticipant, ...]

    @cached_property
    def rollback(self) -> Rollback:
        """Rolls back pending instants."""
        return Rollback(self)

    @cached_property
    def forward(self) -> RollForward:
        """Sees to the last claim."""
        return RollForward(self, self.rollback)

    def hold(self) -> AbstractContextManager[TableHold]:
        """A context that holds the table lock.

        Raises:
            AcquireTimeout: Somebody else held it for as long as we may wait.
        """
        return hold_table(self.locks, self.clock)

    def look(self) -> View:
        """Read the claim log to its end, see to the last claim, and list the timeline.

        Everything that puts an instant on the timeline does so first, inside the table lock: an instant that appears
        while a PUBLISH is not finished counts as a foreign writer's, and the PUBLISH is taken back.

        Raises:
            ClockRefused: The times are out of bounds.
            PossibleLostUpdate: Nothing may change until a notice is acknowledged.
        """
        self.notices.check()
        view = self.roll_forward()
        self.check_clock(view.timeline)
        return view

    def roll_forward(self) -> View:
        """As `look`, without a refusal for the times or a notice."""
        return View(self.forward.to_head(), self.load_timeline())

    def peek(self) -> View:
        """As `look`, without changing anything: also outside the table lock."""
        return View(self.log.read_head(), self.load_timeline())

    def claims_between(self, before: View, now: View) -> list[Claim]:
        """The claims made since `before`, up to `now`."""
        return self.log.since(before.head.number, now.head)

    def find_own_claim(self, requested: str, *, since: int) -> Claim | None:
        """The last claim about an instant after claim number `since`; it is seen to. None if there is none."""
        claims = self.log.since(since, self.forward.to_head())
        return next((claim for claim in reversed(claims) if claim.instant == requested), None)

    def claim(self, view: View, claim: Claim, points: tuple[StopPoint, StopPoint] = _SERVICE_POINTS) -> bool:
        """Append `claim` after the head of `view` and see to it; False if somebody else's is there.

        Args:
            view: Looked at inside the lock.
            claim: Without a number.
            points: Where a test may stop the process: once it is claimed, and once it is seen to.

        Raises:
            StorageError: No answer. The claim may land at any later time, and whoever finds it sees to it.
        """
        if self.log.append(self.log.draft(view.head, claim)) is None:
            return False
        self.trace(points[0])
        self.forward.to_head()
        self.trace(points[1])
        self.log.write_hint()
        return True

    def schedule(
        self, view: View, action: str, *, plan: bytes, kind: ClaimKind = ClaimKind.SCHEDULE
    ) -> WriterHeartbeat | None:
        """Claim the plan of a service and put it on the timeline.

        Args:
            view: Looked at inside the lock.
            action: Of its instant.
            plan: Content of its requested file.
            kind: RESTORE if the whole table goes back in time.

        Returns:
            The heartbeat of the instant; None if a claim came in between: look again.

        Raises:
            StorageError: No answer. The plan may appear at any later time, and is then carried out by whoever finds
                it with an expired heartbeat.
        """
        heartbeat = self.reserve(self.time_after(view))
        instant = Instant(heartbeat.requested, action, State.REQUESTED)
        content = Content.of(instant.file_name(self.layout.version), plan)
        with heartbeat.pause_on_error():
            if self.claim(view, replace(self.new_claim(kind, instant, time=instant.requested), content=content)):
                return heartbeat
        heartbeat.stop()
        return None

    def note(self, view: View, action: str, *, completed: Instant | None = None, content: bytes = b"") -> bool:
        """Claim that something of `action` is decided, and put its completed file on the timeline if there is one.

        The claim has a time of its own, since a savepoint shares that of the write that it keeps.
        """
        heartbeat = self.reserve(self.time_after(view))
        with heartbeat.stop_at_end():
            name = completed.file_name(self.layout.version) if completed else ""
            instant = Instant(heartbeat.requested, action, State.REQUESTED)
            claim = self.new_claim(ClaimKind.SCHEDULE, instant, time=instant.requested)
            promised = Content.of(name, content) if completed else None
            return self.claim(view, replace(claim, content=promised))

    def begin(self, instant: Instant, content: bytes = b"") -> None:
        """Make the inflight file of a requested instant of a service, unless it is there."""
        create_instant(self.storage, self.layout, instant=instant.as_inflight(), data=content)
        self.trace(StopPoint.SERVICE_INFLIGHT)

    def complete(self, view: View, instant: Instant, *, content: bytes) -> Instant | None:
        """Make the completed file of an instant that `view`, looked at inside the lock, shows as pending.

        Without the lock, which may be lost, two may complete it at two times: who sees another's file takes
        its own away.

        Returns:
            The completed instant; None if it is done, or gone, already.
        """
        found = view.timeline.pending((instant.action,))
        if not any(pending.requested == instant.requested for pending in found):
            return None
        completed = instant.as_completed(self.time_after(view, instant.requested))
        place = Place(
            instant.requested, self.layout.path(completed), StopPoint.SERVICE_STAGED, StopPoint.SERVICE_LOOKED
        )
        filled = place.fill(self, content, is_wanted=lambda: is_unfinished(self.storage, self.layout, instant=instant))
        if filled is Filled.UNWANTED:
            return None
        place.tidy(self, has_tasks=False)
        self.trace(StopPoint.SERVICE_COMPLETED)
        if is_unfinished(self.storage, self.layout, instant=instant, but_for=place.path):
            return completed
        self.storage.delete(place.path)
        return None
