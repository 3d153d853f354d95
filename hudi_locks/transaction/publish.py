"""Publishing a write: the steps of the commit protocol that are inside the table lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from hudi_locks.errors import ClockRefused, LockLost, StorageError, TableError, WriteAborted
from hudi_locks.format import CommitMetadata, State
from hudi_locks.format.claim import Claim, ClaimKind, Content, FileGroupId, encode_tickets
from hudi_locks.markers import DirectMarkers, drop_staged
from hudi_locks.metadata_table import StagedLog
from hudi_locks.observe import (
    CONFLICT_RESOLUTION_FAILURE,
    CONFLICT_RESOLUTION_SUCCESS,
    CONFLICT_RESOLUTION_TIMER,
    SpanName,
)
from hudi_locks.redaction import open_log
from hudi_locks.table import NEWEST_COLUMNS, remember_completed
from hudi_locks.timeline import Timeline, find_completion
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.transaction.abort import abort_write
from hudi_locks.transaction.column_changes import keep_history
from hudi_locks.transaction.concurrent_writes import ConcurrentWrites
from hudi_locks.transaction.conflicts import ReadSet
from hudi_locks.transaction.context import TableContext, View
from hudi_locks.transaction.coordinator import TableCoordinator, TableHold
from hudi_locks.transaction.foreign_writers import list_seen
from hudi_locks.transaction.hooks import PreparedCommit, StopPoint
from hudi_locks.transaction.metadata_part import MetadataPart, plan_metadata_part
from hudi_locks.transaction.ring_changes import keep_rings
from hudi_locks.transaction.write_state import (
    INFLIGHT_GONE,
    Conflict,
    Outcome,
    PublishResult,
    WriteState,
    describe_rollback,
)

__all__ = ["Publish", "Unless", "check_conflict", "remove_work_files"]

Unless = Callable[[Timeline], str]

_log = open_log(__name__)
_CLUSTER: Final = "CLUSTER"
_AT_ONCE_MS: Final = 250
"""Longer waits for a lock are mostly for somebody who publishes."""


def check_conflict(
    coordinator: TableCoordinator, state: WriteState, metadata: CommitMetadata, *, reads: ReadSet | None = None
) -> Conflict | None:
    """See `Transaction.check_conflict`."""
    timeline = coordinator.load_timeline()  # before the log, so that nothing on it lacks its claim
    claims = coordinator.log.since(state.claim_head, coordinator.log.read_head())
    return ConcurrentWrites(coordinator, state, metadata=metadata, reads=reads).find_conflict(timeline, claims)


def remove_work_files(context: TableContext, state: WriteState, *, has_markers: bool = True) -> list[str]:
    """Remove what nobody needs of a write whose completed file is there, outside the table lock; says what is left.

    Where there are no folders, what attempts staged whose rows others wrote is left to the next sweep: to look for it
    costs a request, and mostly there is none.
    """
    storage, instant = context.storage, state.requested
    left = []
    if has_markers:
        left += _warn_of(DirectMarkers(storage, instant).delete, f"markers of {instant} are left")
    if storage.capabilities.ended_folders:
        left += _warn_of(lambda: drop_staged(storage, [instant]), "staged files are left")
    left += _warn_of(state.heartbeat.stop, f"the heartbeat file of {instant} is left")
    context.log.write_hint()
    context.trace(StopPoint.PUBLISH_CLEANED)
    return left


def _warn_of(step: Callable[[], None], left: str) -> list[str]:
    try:
        step()
    except StorageError as error:
        return [f"{left}: {error}"]
    return []


class Publish:
    """One publish of one write. Runs on the driver.

    Args:
        coordinator: Of the writer.
        state: Of the write.
        metadata: What it wrote.
        reads: What its result rests on beside that.
        unless: Says why not to publish after all; "" to go on.
        has_markers: Whether data files of the write may have been announced.
        key_logs: See `plan_metadata_part`.
    """

    def __init__(
        self,
        coordinator: TableCoordinator,
        state: WriteState,
        *,
        metadata: CommitMetadata,
        reads: ReadSet | None = None,
        unless: Unless | None = None,
        has_markers: bool = True,
        key_logs: Sequence[StagedLog] | None = None,
    ) -> None:
        self._table = coordinator
        self._key_logs = key_logs
        self._has_markers = has_markers
        self._state = state
        self._metadata = metadata
        self._concurrent = ConcurrentWrites(coordinator, state, metadata=metadata, reads=reads)
        self._unless = unless
        self._instant = state.requested
        self._is_unanswered = False
        self._seen: ClaimEntry | None = None
        self._part: MetadataPart | None = None

    def run(self) -> PublishResult:
        """See `Transaction.publish`."""
        self._seen = self._look_ahead()
        with self._table.hold() as hold:
            self._table.trace(StopPoint.PUBLISH_LOCKED)
            try:
                while (found := self._attempt(hold)) is None:
                    pass  # another claim was first: nothing is lost by that but the check
                result = found if isinstance(found, PublishResult) else self._conclude(*found)
            except (StorageError, ClockRefused) as error:
                result = self._answer(error)
        self._table.trace(StopPoint.PUBLISH_UNLOCKED)
        left = self._remove_work_files() if result.is_committed else []
        return replace(
            result,
            lock_held_ms=hold.held_ms,
            lock_wait_ms=hold.wait_ms,
            begin_held_ms=self._state.lock_held_ms,
            begin_wait_ms=self._state.lock_wait_ms,
            warnings=(*result.warnings, *hold.warnings, *left),
        )

    def _look_ahead(self) -> ClaimEntry | None:
        try:
            return self._concurrent.look_ahead()
        except StorageError as error:  # asked again under the lock, where the write is given up for it
            _log.info("%s was not looked ahead for: %s", self._instant, error)
            return None

    def _remove_work_files(self) -> list[str]:
        return remove_work_files(self._table, self._state, has_markers=self._has_markers)

    def _answer(self, error: StorageError | ClockRefused) -> PublishResult:
        if self._is_unanswered:
            return self._unknown(str(error))
        if isinstance(error, ClockRefused):
            raise error
        return self._give_up(f"the store failed: {error}")

    def _attempt(self, hold: TableHold) -> tuple[Claim, Timeline] | PublishResult | None:
        """The claim about the write, and the timeline on which was decided; or the end of it; None to try anew."""
        head = self._find_head(hold)
        self._table.trace(StopPoint.PUBLISH_FORWARDED)
        claims = self._table.log.since(self._state.claim_head, head)
        self._is_unanswered = False
        if (own := self._find_own(head, claims)) is not None:
            return own, self._state.timeline
        view = View(head, self._table.follow_timeline(head))
        if refusal := self._check_alive(hold, view.timeline) or (self._unless and self._unless(view.timeline)):
            return self._give_up(refusal)
        found = self._find_conflict(view, claims)
        if found is False:
            return None
        found = found or self._unite_columns(view.timeline)
        if isinstance(found, Conflict):
            return self._give_up("a conflict", conflict=found)
        self._table.trace(StopPoint.PUBLISH_CHECKED)
        return self._prepare(view.timeline) or self._claim(view, hold)

    def _find_head(self, hold: TableHold) -> ClaimEntry:
        """The last claim, seen to; the one that was last before the lock was asked for, if it was had at once.

        Somebody may have claimed since, with a lock that was lost or none: then the number of ours is taken.
        """
        seen, self._seen = self._seen, None
        return seen if seen is not None and hold.wait_ms < _AT_ONCE_MS else self._table.forward.to_head()

    def _find_own(self, head: ClaimEntry, claims: list[Claim]) -> Claim | None:
        later = (claim for claim in reversed(claims) if claim.number > self._state.own_since)
        own = next((claim for claim in later if claim.instant == self._instant), None)
        return head.claim if own is not None and own.number == head.number else own

    def _check_alive(self, hold: TableHold, timeline: Timeline) -> str:
        if self._table.expects_foreign_writers():
            self._table.notices.check()
        self._table.check_clock(timeline)
        try:
            hold.verify()
        except LockLost as error:
            return str(error)
        if not self._state.heartbeat.is_fresh:
            return f"the heartbeat expired: {self._state.heartbeat.lost_because or 'it was not renewed in time'}"
        if not self._is_inflight(timeline):
            return INFLIGHT_GONE
        return "" if self._is_own_attempt() else "another process runs the same plan"

    def _is_inflight(self, timeline: Timeline) -> bool:
        found = timeline.get(self._instant)
        if found is not None and found.state is State.INFLIGHT:
            return True
        is_older = self._table.goes_by_claims  # `timeline` may be of before the begin
        return is_older and self._table.storage.exists(self._table.path(self._state.instant, State.INFLIGHT))

    def _is_own_attempt(self) -> bool:
        """A JVM writer takes a pending clustering for its own to run, after it has removed what was written for it."""
        path = self._table.path(self._state.instant, State.INFLIGHT)
        return self._state.mark is None or self._table.storage.read(path) == self._state.mark

    def _find_conflict(self, view: View, claims: list[Claim]) -> Conflict | bool | None:
        """A conflict; False if the timeline is ahead of the claims that were read; None if the way is free."""
        timeline = view.timeline
        if self._concurrent.is_ahead(timeline, claims) and self._table.log.read_head().number != view.head.number:
            return False
        began_s, metrics = self._table.clock.monotonic(), self._table.metrics
        with metrics.span(SpanName.CONFLICT_CHECK, claims=len(claims)) as span:
            found = self._concurrent.find_conflict(timeline, claims)
            span.note(conflict_with=found.other if found else None)
        counter = CONFLICT_RESOLUTION_FAILURE if found else CONFLICT_RESOLUTION_SUCCESS
        metrics.report(CONFLICT_RESOLUTION_TIMER, self._table.clock.monotonic() - began_s, counts=[(counter, 1)])
        return found

    def _unite_columns(self, timeline: Timeline) -> Conflict | None:
        """Record the columns that concurrent writes added beside ours; a conflict if they contradict ours."""
        united, clash = self._concurrent.unite_columns(timeline, self._metadata)
        self._metadata = united
        return clash

    def _prepare(self, timeline: Timeline) -> PublishResult | None:
        commit = PreparedCommit(self._state.instant, self._metadata, timeline)
        try:
            for participant in self._table.participants:
                participant.prepare(commit)
            if NEWEST_COLUMNS in self._metadata.extra:
                keep_history(self._table.storage, timeline, instant=self._instant, metadata=self._metadata)
            if self._metadata.operation == _CLUSTER:
                keep_rings(self._table, self._state.instant, timeline)
            self._part = self._plan_metadata(timeline)
        except WriteAborted as error:
            return self._give_up(str(error))
        self._table.trace(StopPoint.PUBLISH_PREPARED)
        return None

    def _plan_metadata(self, timeline: Timeline) -> MetadataPart | None:
        found, indexed = self._table.find_metadata_table(), self._state.indexed
        if found is None and indexed is None:
            return None
        return plan_metadata_part(
            self._table,
            found,
            self._instant,
            written=self._metadata,
            timeline=timeline,
            indexed=indexed,
            key_logs=self._key_logs,
        )

    def _claim(self, view: View, hold: TableHold) -> tuple[Claim, Timeline] | PublishResult | None:
        time = self._take_time(view)
        draft = self._table.log.draft(view.head, self._make_claim(time, view.timeline, hold=hold))
        try:
            entry = self._table.log.append(draft)
        except StorageError as error:
            if error.is_disk_full:
                return self._give_up(f"the disk is full: {error}")
            self._is_unanswered = True
            return self._occupy(view, f"the store did not answer: {error}")
        return (draft, view.timeline) if entry is not None else None

    def _take_time(self, view: View) -> str:
        newest = (self._part.newest,) if self._part is not None else ()
        time = self._table.time_after(view, self._instant, *newest)
        self._table.wait_for_skew(time)
        self._table.trace(StopPoint.PUBLISH_TIMED)
        return time

    def _make_claim(self, time: str, timeline: Timeline, *, hold: TableHold) -> Claim:
        completed = self._state.instant.as_completed(time)
        version = self._table.layout.version
        data = self._metadata.encode(completed.action, layout_version=version)
        return replace(
            self._table.new_claim(ClaimKind.PUBLISH, self._state.instant, time=time),
            writes=frozenset(FileGroupId(*group) for group in self._metadata.written_file_groups),
            replaces=frozenset(FileGroupId(*group) for group in self._metadata.replaced_file_groups),
            overwrites=self._metadata.overwritten_partitions,
            overwrites_table=self._metadata.overwrites_table,
            content=Content.of(completed.file_name(version), data),
            tickets=encode_tickets({**self._metadata.tickets, **(self._part.tickets if self._part else {})}),
            metadata=self._part.promise(time) if self._part else None,
            seen=list_seen(timeline, time) if self._table.expects_foreign_writers() else None,
            fencing_token=hold.token,
            lock_wait_ms=None if hold.held is None else self._state.lock_wait_ms + hold.wait_ms,
            lock_held_ms=None if hold.held is None else self._state.lock_held_ms + hold.measure(self._table.clock),
        )

    def _occupy(self, view: View, reason: str) -> PublishResult | None:
        """Take the number that the unanswered request asked for, so that it cannot land any more.

        "Not there" would mean nothing: the request may land at any later time.
        """
        draft = self._table.rollback.draft(view, self._state.instant, kind=ClaimKind.ROLLBACK)
        if self._table.rollback.append(draft) is None:
            return None
        self._is_unanswered = False
        return self._give_up(reason)

    def _conclude(self, claim: Claim, timeline: Timeline) -> PublishResult:
        self._table.trace(StopPoint.PUBLISH_CLAIMED)
        if claim.kind is not ClaimKind.PUBLISH:
            return self._give_up(describe_rollback(claim))
        try:
            with self._table.metrics.measure(SpanName.FINALIZE, "finalize", self._table.clock) as told:
                is_settled, told["numFilesFinalized"] = self._table.forward.settle(claim), len(self._metadata.tickets)
            if not is_settled:
                return self._give_up(f"claim {claim.number} was voided: a foreign writer appeared before it was done")
            self._remember(claim)
            endangered = self._concurrent.detect(claim, timeline)
        except (StorageError, TableError) as error:
            return self._unknown(f"claim {claim.number} stands, and its completed file is not certain: {error}")
        time = self._find_completion(claim)
        return PublishResult(self._instant, Outcome.COMMITTED, completion_time=time, warnings=tuple(endangered))

    def _find_completion(self, claim: Claim) -> str:
        """As the timeline has it: where names do not tell it, when the completed file was written."""
        layout, completed = self._table.layout, self._state.instant.as_completed(claim.time)
        file = self._table.storage.stat(layout.path(completed)) if layout.is_version_6 else None
        return claim.time if file is None else find_completion(completed, file, layout)

    def _remember(self, claim: Claim) -> None:
        """Where a request costs much; on a disk what was damaged since is rather found at once."""
        is_dear = self._table.storage.is_remote
        if is_dear and claim.content is not None and claim.content.data is not None:
            completed = self._state.instant.as_completed(claim.time)
            remember_completed(self._table.storage, completed, claim.content.data)

    def _give_up(self, reason: str, *, conflict: Conflict | None = None) -> PublishResult:
        return abort_write(self._table, self._state, str(conflict or reason), conflict=conflict)

    def _unknown(self, reason: str) -> PublishResult:
        self._state.heartbeat.pause()
        return PublishResult(self._instant, Outcome.UNKNOWN, reason=reason)
