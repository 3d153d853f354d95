"""Beginning a write: read to the head, roll forward, list the timeline, take a later time, beat, ask.

Each swap of two of these steps has a history in which an update is lost: readers take the slice with the highest
requested time for the newest, so a write must never build on a snapshot that holds a later time than its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hudi_locks.errors import SecondWriterRefused, WriteAborted
from hudi_locks.format import Instant, State, add_ms, encode_requested_replace
from hudi_locks.format.claim import ClaimKind
from hudi_locks.markers import end_turns
from hudi_locks.timeline import Timeline, create_instant
from hudi_locks.timeline.archive import list_archived_times
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.timeline.forgotten import refuse_forgotten
from hudi_locks.timeline.heartbeat import WriterHeartbeat, find_expired
from hudi_locks.transaction.admission import Admission
from hudi_locks.transaction.begun import Begun
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.forward import RollForward
from hudi_locks.transaction.pending import INGESTION
from hudi_locks.transaction.retreat import Retreat
from hudi_locks.transaction.rollback import Rollback
from hudi_locks.transaction.stop import StopPoint
from hudi_locks.transaction.table_lock import Locks, hold_table

__all__ = ["Begin"]


@dataclass(frozen=True)
class _Archived:
    """Requested times that the history held when these were its files."""

    files: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()


class Begin:
    """Begins writes, and rolls back failed ones before. Runs on the driver."""

    def __init__(self, context: Context, forward: RollForward, *, rollback: Rollback, locks: Locks | None) -> None:
        self._context = context
        self._forward = forward
        self._rollback = rollback
        self._locks = locks
        self._admission = Admission(context)

    def run(self, action: str) -> Begun:
        """Begin a write of `action`; see `Transactions.begin`."""
        early = self._list_archived()  # reads files, so before the lock is held
        with hold_table(self._useful_locks(), self._context.clock) as hold:
            self._context.trace(StopPoint.BEGIN_LOCKED)
            archived = self._look_again(early)
            head, timeline = self._prepare()
            begun = self._request(action, head=head, timeline=timeline)
            with _dying_if_it_fails(begun.heartbeat):
                self._look_around(begun)
        with _dying_if_it_fails(begun.heartbeat):
            self._context.trace(StopPoint.BEGIN_UNLOCKED)
            self._start(begun.instant)
            self._context.trace(StopPoint.BEGIN_INFLIGHT)
        return replace(begun, archived=archived.times, lock_wait_ms=hold.wait_ms, lock_held_ms=hold.held_ms)

    def look_again(self, begun: Begun) -> Begun | None:
        """See `Transaction.look_again`."""
        early = self._list_archived()
        with hold_table(self._useful_locks(), self._context.clock):
            archived = self._look_again(early)
            head, timeline = self._list()
        claims = self._context.log.since(begun.claim_head, head)
        if any(claim.kind is ClaimKind.RESTORE for claim in claims) or timeline.get(begun.instant.requested) is None:
            return None
        return replace(begun, timeline=timeline, claim_head=head.number, archived=archived.times, turn=begun.turn + 1)

    def _useful_locks(self) -> Locks | None:
        """None where every writer goes by the claims: a begin is safe without a lock, and waiting for it costs time.

        A JVM writer takes its times inside the lock; a single writer keeps others out of it while it looks around.
        """
        context = self._context
        return self._locks if context.expects_foreign_writers() or not context.settings.is_multi_writer else None

    def clean_failed_writes(self) -> list[str]:
        """Roll back every pending write whose heartbeat expired; returns their requested times."""
        cleaned: list[str] = []
        with hold_table(self._locks, self._context.clock):
            self._context.check_clock(self._context.load_timeline())
            while found := self._clean_one(self._list()[1]):
                cleaned += found
        return cleaned

    def _list_archived(self) -> _Archived:
        """What the snapshot may lack since it was archived before: listed first, so that nothing later is among it."""
        if not self._context.expects_foreign_writers():
            return _Archived()
        files = self._list_history()
        since = self._context.earliest(self._context.later_than())
        times = list_archived_times(self._context.storage, self._context.layout, completed_after=since)
        return _Archived(files, times)

    def _look_again(self, early: _Archived) -> _Archived:
        """As `early`, unless something was archived since, as JVM writers do that were waited for."""
        is_expected = self._context.expects_foreign_writers()
        return self._list_archived() if is_expected and self._list_history() != early.files else early

    def _list_history(self) -> frozenset[str]:
        return frozenset(self._context.storage.list_names(self._context.layout.archive))

    def _prepare(self) -> tuple[ClaimEntry, Timeline]:
        self._context.notices.check()
        head, timeline = self._read()
        self._admission.check_table(timeline)
        self._context.check_clock(timeline)
        while self._context.settings.cleans_failed_writes and self._clean_one(timeline):
            head, timeline = self._read()
        self._admission.check_alone(timeline)
        return head, timeline

    def _look_around(self, begun: Begun) -> None:
        """Look once more for another writer, now that this one can be seen.

        Of two single writers that begin at the same moment without a lock, one at least sees the other.
        """
        if self._context.settings.is_multi_writer:
            return
        try:
            self._admission.check_alone(self._context.load_timeline(), own=begun.instant.requested)
        except SecondWriterRefused as refusal:
            Retreat(self._context, self._forward, rollback=self._rollback).run(begun, str(refusal))
            raise

    def _read(self) -> tuple[ClaimEntry, Timeline]:
        head = self._forward.to_head()
        self._context.trace(StopPoint.BEGIN_FORWARDED)
        timeline = self._context.follow_timeline(head)
        self._context.trace(StopPoint.BEGIN_LISTED)
        return head, timeline

    def _list(self) -> tuple[ClaimEntry, Timeline]:
        """As `_read`, with what is pending as it is now."""
        return self._forward.to_head(), self._context.load_timeline()

    def _clean_one(self, timeline: Timeline) -> list[str]:
        """Roll back the last of the expired writes; what was looked at again and lives or is done counts as none."""
        expired = self._find_expired(timeline)
        while expired:
            # An instant that has just completed looks expired too: only what is pending after the test may go.
            head = self._forward.to_head()
            again = self._context.load_timeline()
            pending = [instant for instant in again.pending(INGESTION) if instant.requested in expired]
            if not pending:
                return []
            refuse_forgotten(self._context.storage, again, requested=[pending[-1].requested], done=head.number)
            end_turns(self._context.storage, pending[-1].requested)  # first: on a full disk it makes room for the claim
            draft = self._rollback.draft(head, pending[-1], kind=ClaimKind.ROLLBACK, timeline=again)
            entry = self._rollback.append(draft)
            if entry is not None and entry.claim is not None:
                self._rollback.execute(entry.claim)
                return [pending[-1].requested]
        return []

    def _find_expired(self, timeline: Timeline) -> frozenset[str]:
        pending = [instant.requested for instant in timeline.pending(INGESTION)]
        limit_ms = self._context.settings.heartbeat_limit_ms
        return find_expired(self._context.storage, pending, limit_ms=limit_ms) if pending else frozenset()

    def _request(self, action: str, *, head: ClaimEntry, timeline: Timeline) -> Begun:
        time = self._context.later_than(self._context.newest(head, timeline))
        while True:
            begun = Begun(Instant(time, action, State.REQUESTED), timeline, head.number, self._context.heartbeat(time))
            if begun.heartbeat.start():
                with _dying_if_it_fails(begun.heartbeat):
                    self._context.trace(StopPoint.BEGIN_HEARTBEAT)
                    taken = self._context.find_taken(time, since=head)
                    if taken is None and self._create(begun.instant):
                        self._context.trace(StopPoint.BEGIN_REQUESTED)
                        return begun
                    time = taken or time
                begun.heartbeat.stop()
            time = add_ms(time, 1)

    def _start(self, instant: Instant) -> None:
        if not self._create(instant.as_inflight()):
            time = instant.requested
            raise WriteAborted(f"another process made {time} inflight: begin a new write", instant=time)

    def _create(self, instant: Instant) -> bool:
        plan = encode_requested_replace() if _needs_plan(instant) else b""
        return create_instant(self._context.storage, self._context.layout, instant=instant, data=plan)


@contextmanager
def _dying_if_it_fails(heartbeat: WriterHeartbeat) -> Iterator[None]:
    """Stop beating when a begin fails or is interrupted: a living process would keep its instant pending for ever."""
    try:
        yield
    except BaseException:
        heartbeat.pause()
        raise


def _needs_plan(instant: Instant) -> bool:
    return instant.action == "replacecommit" and instant.state is State.REQUESTED
