"""Beginning a write: read to the head, roll forward, list the timeline, take a later time, beat, ask.

Each swap of two of these steps has a history in which an update is lost: readers take the slice with the highest
requested time for the newest, so a write must never build on a snapshot that holds a later time than its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_locks.config import write_keys
from hudi_locks.errors import DamagedTable, SecondWriterRefused, StorageError, UnsupportedTable, WriteAborted
from hudi_locks.format import Instant, State, encode_requested_replace
from hudi_locks.format.instant import BOOTSTRAPS
from hudi_locks.markers import drop_staged
from hudi_locks.timeline import Timeline, create_instant
from hudi_locks.timeline.archive import list_archived_times, refuse_forgotten
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.timeline.heartbeat import find_alive, find_expired
from hudi_locks.transaction.abort import abort_write
from hudi_locks.transaction.context import TableContext, View
from hudi_locks.transaction.coordinator import Locks, TableCoordinator, hold_table
from hudi_locks.transaction.hooks import StopPoint
from hudi_locks.transaction.operations import INGESTION, list_pending_writes
from hudi_locks.transaction.write_state import WriteState

__all__ = ["Begin"]


@dataclass(frozen=True)
class _Archived:
    """Requested times that the history held when these were its files."""

    files: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()


class Begin:
    """Begins writes, and rolls back failed ones before. Runs on the driver."""

    def __init__(self, coordinator: TableCoordinator) -> None:
        self._table = coordinator

    def run(self, action: str) -> WriteState:
        """Begin a write of `action`; see `Transactions.begin`."""
        early = self._list_archived()  # reads files, so before the lock is held
        with hold_table(self._useful_locks(), self._table.clock) as hold:
            self._table.trace(StopPoint.BEGIN_LOCKED)
            archived = self._look_again(early)
            state = self._request(action, self._prepare(), archived)
            with state.heartbeat.pause_on_error():
                self._require_alone(state)
        with state.heartbeat.pause_on_error():
            self._table.trace(StopPoint.BEGIN_UNLOCKED)
            self._start(state.instant)
            self._table.trace(StopPoint.BEGIN_INFLIGHT)
        return replace(state, archived=archived.times, lock_wait_ms=hold.wait_ms, lock_held_ms=hold.held_ms)

    def look_again(self, state: WriteState) -> WriteState | None:
        """The write on a later snapshot; None if it is gone. See `Transaction.look_again`."""
        early = self._list_archived()
        with hold_table(self._useful_locks(), self._table.clock):
            archived = self._look_again(early)
            view = self._table.roll_forward()
        claims = self._table.log.since(state.claim_head, view.head)
        if any(claim.covers_table for claim in claims) or view.timeline.get(state.requested) is None:
            return None
        return replace(
            state,
            timeline=view.timeline,
            claim_head=view.head.number,
            archived=archived.times,
        )

    def _useful_locks(self) -> Locks | None:
        """None where every writer goes by the claims: a begin is safe without a lock, and waiting for it costs time.

        A JVM writer takes its times inside the lock; a single writer keeps others out of it while it looks around.
        """
        table = self._table
        return table.locks if table.expects_foreign_writers() or not table.settings.is_multi_writer else None

    def clean_failed_writes(self) -> list[str]:
        """Roll back every pending write whose heartbeat expired; returns their requested times."""
        cleaned: list[str] = []
        with self._table.hold():
            self._table.check_clock(self._table.load_timeline())
            while found := self._clean_one(self._table.roll_forward().timeline):
                cleaned += found
        return cleaned

    def _list_archived(self) -> _Archived:
        """What the snapshot may lack since it was archived before: listed first, so that nothing later is among it."""
        if not self._table.expects_foreign_writers():
            return _Archived()
        files = self._list_history()
        since = self._table.earliest(self._table.later_than())
        times = list_archived_times(self._table.storage, self._table.layout, completed_after=since)
        return _Archived(files, times)

    def _look_again(self, early: _Archived) -> _Archived:
        """As `early`, unless something was archived since, as JVM writers do that were waited for."""
        is_expected = self._table.expects_foreign_writers()
        return self._list_archived() if is_expected and self._list_history() != early.files else early

    def _list_history(self) -> frozenset[str]:
        return frozenset(self._table.storage.list_names(self._table.layout.archive))

    def _prepare(self) -> View:
        self._table.notices.check()
        view = self._read_finished()
        self._table.check_clock(view.timeline)
        while self._table.settings.cleans_failed_writes and self._clean_one(view.timeline):
            view = self._read_finished()
        refuse_second_writer(self._table, view.timeline)
        return view

    def _read_finished(self) -> View:
        """Each time anew: where no lock is held, a restore may begin while failed writes are rolled back."""
        view = self._read()
        refuse_unfinished(view.timeline)
        return view

    def _require_alone(self, state: WriteState) -> None:
        """Look once more for another writer, now that this one can be seen.

        Of two single writers that begin at the same moment without a lock, one at least sees the other.
        """
        if self._table.settings.is_multi_writer:
            return
        try:
            refuse_second_writer(self._table, self._table.load_timeline(), own=state.requested)
        except SecondWriterRefused as refusal:
            abort_write(self._table, state, str(refusal))
            raise

    def _read(self) -> View:
        head = self._table.forward.to_head()
        self._table.trace(StopPoint.BEGIN_FORWARDED)
        timeline = self._follow(head)
        self._table.trace(StopPoint.BEGIN_LISTED)
        return self._read() if timeline is None else View(head, timeline)

    def _follow(self, head: ClaimEntry) -> Timeline | None:
        """None if it lacks what this process published last: the next look makes that again, or says why it cannot."""
        forward = self._table.forward
        try:
            timeline = self._table.follow_timeline(head, for_begin=True)
        except DamagedTable:
            if forward.distrust(head):
                return None
            raise
        is_shown = head.claim is None or timeline.is_completed(head.claim.instant)
        return timeline if is_shown or not forward.distrust(head) else None

    def _clean_one(self, timeline: Timeline) -> list[str]:
        """Roll back the last of the expired writes; what was looked at again and lives or is done counts as none."""
        expired = self._find_expired(timeline)
        while expired:
            # An instant that has just completed looks expired too: only what is pending after the test may go.
            view = self._table.roll_forward()
            pending = [i for i in list_pending_writes(self._table.storage, view.timeline) if i.requested in expired]
            if not pending:
                return []
            last = pending[-1].requested
            refuse_forgotten(self._table.storage, view.timeline, requested=[last], done=view.head.number)
            if self._roll_back(view, pending[-1]):
                return [last]
        return []

    def _roll_back(self, view: View, instant: Instant) -> bool:
        """On a full disk what a dead writer staged makes room for the claim; one that lives loses its write by that."""
        try:
            return self._table.rollback.run(view, instant)
        except StorageError as error:
            if not error.is_disk_full:
                raise
            drop_staged(self._table.storage, [instant.requested])
            return self._table.rollback.run(view, instant)

    def _find_expired(self, timeline: Timeline) -> frozenset[str]:
        pending = [instant.requested for instant in list_pending_writes(self._table.storage, timeline)]
        limit_ms = self._table.settings.heartbeat_limit_ms
        return find_expired(self._table.storage, pending, limit_ms=limit_ms) if pending else frozenset()

    def _request(self, action: str, view: View, archived: _Archived) -> WriteState:
        def accept(time: str) -> str | None:
            self._table.trace(StopPoint.BEGIN_HEARTBEAT)
            taken = self._table.find_taken(time, since=view.head)
            is_made = taken is None and self._create(Instant(time, action, State.REQUESTED))
            return None if is_made else taken or time

        earliest = self._table.time_after(view, *self._list_taken(archived))
        heartbeat = self._table.reserve(earliest, accept=accept)
        with heartbeat.pause_on_error():
            self._table.trace(StopPoint.BEGIN_REQUESTED)
        instant = Instant(heartbeat.requested, action, State.REQUESTED)
        return WriteState(instant, view.timeline, view.head.number, heartbeat)

    def _list_taken(self, archived: _Archived) -> list[str]:
        """Archived times that a slow clock here may give once more, which would name files that are there already.

        A time that is further ahead than clocks may be cannot be met.
        """
        context = self._table
        limit = context.layout.time(context.clock.wall_ms() + 2 * context.settings.drift_ms)
        return [time for time in archived.times if time <= limit]

    def _start(self, instant: Instant) -> None:
        if not self._create(instant.as_inflight()):
            time = instant.requested
            raise WriteAborted(f"another process made {time} inflight: begin a new write", instant=time)

    def _create(self, instant: Instant) -> bool:
        plan = encode_requested_replace() if _needs_plan(instant) else b""
        return create_instant(self._table.storage, self._table.layout, instant=instant, data=plan)


def refuse_unfinished(timeline: Timeline) -> None:
    """Whether a table takes writes at all.

    Raises:
        UnsupportedTable: A bootstrap is not finished.
        WriteAborted: A restore is not finished.
    """
    if unfinished := [i for i in timeline.pending() if i.requested in BOOTSTRAPS]:
        path = timeline.paths.get(unfinished[0], "")
        message = (
            f"{path} is a bootstrap that is not finished, and this package neither runs nor undoes one: finish it"
            " with the JVM job that began it, or roll it back there, before anybody writes"
        )
        raise UnsupportedTable(message, path=path, instant=unfinished[0].requested)
    if restoring := timeline.pending(("restore",)):
        message = f"restore {restoring[0].requested} is pending: let it finish before writing"
        raise WriteAborted(message, instant=restoring[0].requested)


def refuse_second_writer(context: TableContext, timeline: Timeline, *, own: str = "") -> None:
    """Whether no other writer is alive, where this one is the only one; without meaning for several writers.

    Hudi keeps a second single writer out by nothing: two jobs without lock configuration double rows and lose updates.

    Args:
        context: Of the writer.
        timeline: After failed writes were rolled back.
        own: Requested time of the write itself, if it is on the timeline already.

    Raises:
        SecondWriterRefused: Another writer is alive, or died elsewhere less than a heartbeat's life ago.
    """
    pending = {i.requested: i for i in timeline.pending(INGESTION) if i.requested != own}
    if context.settings.is_multi_writer or not pending:
        return
    limit_ms = context.settings.heartbeat_limit_ms
    if alive := find_alive(context.storage, pending, limit_ms=limit_ms):
        requested, age_ms = min(alive.items())
        raise _refusal(pending[requested], age_ms, dead_in_ms=limit_ms - age_ms)


def _refusal(other: Instant, age_ms: int, *, dead_in_ms: int) -> SecondWriterRefused:
    mode = write_keys.CONCURRENCY_MODE.name
    message = (
        f"{mode} is {write_keys.SINGLE_WRITER}, and another writer is at work: {other.action} {other.requested} gave a"
        f" sign of life {age_ms / 1000:.1f} s ago. Let it finish; or, for several writers, give every one of them"
        f" {mode}={write_keys.OPTIMISTIC} and the same lock provider. If it has died, it counts as dead in"
        f" {dead_in_ms / 1000:.1f} s, and the next write rolls it back; resolve({other.requested!r}) does so at once"
    )
    facts = {"other": other.requested, "other_action": other.action, "heartbeat_age_ms": age_ms}
    return SecondWriterRefused(message, **facts, dead_in_ms=dead_in_ms)


def _needs_plan(instant: Instant) -> bool:
    return instant.action == "replacecommit" and instant.state is State.REQUESTED
