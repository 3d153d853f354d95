"""What table services share with writes: the table lock, the claim log, and times that nobody else has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hudi_locks.clock import Clock
from hudi_locks.format import Instant, State, add_ms
from hudi_locks.format.claim import Claim, ClaimKind, Content
from hudi_locks.storage import Storage
from hudi_locks.timeline import PENDING_ENDINGS, Timeline, TimelineLayout, create_instant, index_files
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.timeline.heartbeat import WriterHeartbeat
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.forward import Place, RollForward
from hudi_locks.transaction.stop import StopPoint
from hudi_locks.transaction.table_lock import Hold, Locks, hold_table

__all__ = ["Coordination", "Reserved", "View"]


@dataclass(frozen=True)
class View:
    """The table at one moment.

    Attributes:
        head: The last claim; it is seen to.
        timeline: Listed after that.
    """

    head: ClaimEntry
    timeline: Timeline


@dataclass(frozen=True)
class Reserved:
    """A requested time that no other instant has or gets.

    Attributes:
        requested: The time.
        heartbeat: Beats while the work is done; whoever finds it expired may go on with the work.
    """

    requested: str
    heartbeat: WriterHeartbeat


class Coordination:
    """One process's part in the decisions about a table. Thread-safe. Runs on the driver.

    Args:
        context: Of the process.
        forward: Sees to the last claim.
        locks: Of the table; None in a single writer without one.
    """

    def __init__(self, context: Context, forward: RollForward, *, locks: Locks | None) -> None:
        self._context = context
        self._forward = forward
        self._locks = locks

    @property
    def storage(self) -> Storage:
        """The table's files."""
        return self._context.storage

    @property
    def layout(self) -> TimelineLayout:
        """Of its timeline."""
        return self._context.layout

    @property
    def clock(self) -> Clock:
        """The source of time."""
        return self._context.clock

    @property
    def heartbeat_limit_ms(self) -> int:
        """How old the heartbeat of somebody alive may be, ms."""
        return self._context.settings.heartbeat_limit_ms

    @property
    def cleans_failed_writes(self) -> bool:
        """Whether this process may roll back failed writes of others."""
        return self._context.settings.cleans_failed_writes

    def trace(self, point: StopPoint) -> None:
        """Tell a test where the process is."""
        self._context.trace(point)

    @contextmanager
    def hold(self) -> Iterator[Hold]:
        """Hold the table lock.

        Raises:
            AcquireTimeout: Somebody else held it for as long as we may wait.
        """
        with hold_table(self._locks, self._context.clock) as hold:
            yield hold

    def look(self) -> View:
        """Read the claim log to its end, see to the last claim, and list the timeline.

        Everything that puts an instant on the timeline does so first, inside the table lock: an instant that appears
        while a PUBLISH is not finished counts as a foreign writer's, and the PUBLISH is taken back.

        Raises:
            ClockRefused: The times are out of bounds.
            UpdateEndangered: Nothing may change until a notice is acknowledged.
        """
        self._context.notices.check()
        head = self._forward.to_head()
        view = View(head, self._context.load_timeline())
        self._context.check_clock(view.timeline)
        return view

    def peek(self) -> View:
        """As `look`, without changing anything: also outside the table lock."""
        return View(self._context.log.read_head(), self._context.load_timeline())

    def claims_between(self, before: View, now: View) -> list[Claim]:
        """The claims made since `before`, up to `now`."""
        return self._context.log.since(before.head.number, now.head)

    def later_than(self, view: View, *times: str) -> str:
        """Now, or a moment after every time that `view` shows and after `times`."""
        return self._context.later_than(self._context.newest(view.head, view.timeline), *times)

    def reserve(self, view: View) -> Reserved:
        """Take a requested time after every one in `view`, and beat for it."""
        requested = self.later_than(view)
        while True:
            heartbeat = self.beat(requested)
            if heartbeat is not None:
                if self._context.is_free(requested):
                    return Reserved(requested, heartbeat)
                heartbeat.stop()
            requested = add_ms(requested, 1)

    def beat(self, requested: str) -> WriterHeartbeat | None:
        """Begin to beat for an instant; None if somebody does, or did."""
        settings = self._context.settings
        heartbeat = WriterHeartbeat(
            self._context.storage,
            requested,
            interval_ms=settings.heartbeat_interval_ms,
            tolerable_misses=settings.heartbeat_tolerable_misses,
            clock=self._context.clock,
        )
        return heartbeat if heartbeat.start() else None

    @contextmanager
    def beating(self, reserved: Reserved) -> Iterator[None]:
        """Stop beating at the end of the block, and leave the heartbeat to go out if the block fails.

        A living process would keep its instant pending for ever.
        """
        with self.giving_up(reserved):
            yield
        reserved.heartbeat.stop()

    @contextmanager
    def giving_up(self, reserved: Reserved) -> Iterator[None]:
        """Leave the heartbeat to go out if the block fails, and let it beat on otherwise."""
        try:
            yield
        except BaseException:
            reserved.heartbeat.pause()
            raise

    def schedule(self, view: View, instant: Instant, *, plan: bytes) -> bool:
        """Claim the plan of a service and put it on the timeline; False if a claim came in between: look again.

        Raises:
            StorageError: No answer. The plan may appear at any later time, and is then carried out by whoever finds
                it with an expired heartbeat.
        """
        name = instant.as_requested().file_name(self.layout.version)
        return self.claim(view, self._claim(ClaimKind.SCHEDULE, instant, content=Content.of(name, plan)))

    def restore(self, view: View, instant: Instant, *, plan: bytes) -> bool:
        """Claim that the whole table goes back in time; see `schedule`."""
        name = instant.as_requested().file_name(self.layout.version)
        return self.claim(view, self._claim(ClaimKind.RESTORE, instant, content=Content.of(name, plan)))

    def note(self, view: View, action: str, *, completed: Instant | None = None, content: bytes = b"") -> bool:
        """Claim that something of `action` is decided, and put its completed file on the timeline if there is one.

        The claim has a time of its own, since a savepoint shares that of the write that it keeps.
        """
        reserved = self.reserve(view)
        with self.beating(reserved):
            name = completed.file_name(self.layout.version) if completed else ""
            instant = Instant(reserved.requested, action, State.REQUESTED)
            promised = Content.of(name, content) if completed else None
            return self.claim(view, self._claim(ClaimKind.SCHEDULE, instant, content=promised))

    def claim(self, view: View, claim: Claim) -> bool:
        """Append `claim` after the head of `view` and see to it; False if somebody else's is there."""
        entry = self._context.log.append(self._context.log.draft(view.head, claim))
        if entry is None:
            return False
        self.trace(StopPoint.SERVICE_CLAIMED)
        self._forward.to_head()
        self.trace(StopPoint.SERVICE_REQUESTED)
        self._context.log.write_hint()
        return True

    def begin(self, instant: Instant, content: bytes = b"") -> None:
        """Make the inflight file of a requested instant, unless it is there."""
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
        completed = instant.as_completed(self.later_than(view, instant.requested))
        place = Place(
            instant.requested, self.layout.path(completed), StopPoint.SERVICE_STAGED, StopPoint.SERVICE_LOOKED
        )
        if not place.fill(self._context, content, is_wanted=lambda: self._is_unfinished(instant)):
            return None
        place.tidy(self._context, has_tasks=False)
        self.trace(StopPoint.SERVICE_COMPLETED)
        if self._is_unfinished(instant, but_for=place.path):
            return completed
        self.storage.delete(place.path)
        return None

    def _is_unfinished(self, instant: Instant, *, but_for: str = "") -> bool:
        """Whether an instant is on the timeline and nobody completed it, but for one who made the file `but_for`."""
        files = index_files(self.storage, self.layout).get((instant.requested, instant.action), ())
        completed = [path for path in files if not path.endswith(PENDING_ENDINGS) and path != but_for]
        return self.layout.path(instant.as_inflight()) in files and not completed

    def _claim(self, kind: ClaimKind, instant: Instant, *, content: Content | None) -> Claim:
        settings = self._context.settings
        return Claim(
            kind=kind,
            instant=instant.requested,
            action=instant.action,
            time=instant.requested,
            content=content,
            owner=self._context.owner,
            lock_key=settings.lock_provider,
        )
