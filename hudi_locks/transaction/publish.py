"""Publishing a write: the eight steps of the commit protocol, inside the table lock."""

from __future__ import annotations

from collections.abc import Callable

from hudi_locks.errors import ClockRefused, LockLost, StorageError, TableError, WriteAborted
from hudi_locks.format import CommitMetadata, State
from hudi_locks.format.claim import Claim, ClaimKind, Content, FileGroupId
from hudi_locks.markers import DirectMarkers, reconcile, staging_folder
from hudi_locks.observe import CONFLICT_RESOLUTION_FAILURE, CONFLICT_RESOLUTION_SUCCESS, CONFLICT_RESOLUTION_TIMER
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.transaction.begun import Begun
from hudi_locks.transaction.concurrent import ConcurrentWrites
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.foreign import list_seen
from hudi_locks.transaction.forward import RollForward
from hudi_locks.transaction.loss import INFLIGHT_GONE, tell_undone
from hudi_locks.transaction.outcome import Conflict, Outcome, PublishResult
from hudi_locks.transaction.retreat import Retreat
from hudi_locks.transaction.rollback import Rollback
from hudi_locks.transaction.stop import StopPoint
from hudi_locks.transaction.table_lock import Hold

__all__ = ["Publish", "Unless", "tidy"]

Unless = Callable[[Timeline], str]


def tidy(context: Context, begun: Begun) -> list[str]:
    """Remove what nobody needs of a write whose completed file is there, outside the table lock; says what is left."""
    storage, instant = context.storage, begun.instant.requested
    left = [
        *_warn_of(DirectMarkers(storage, instant).delete, f"markers of {instant} are left"),
        *_warn_of(lambda: storage.delete_folder(staging_folder(instant)), "staged files are left"),
        *_warn_of(begun.heartbeat.stop, f"the heartbeat file of {instant} is left"),
    ]
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
        context: Of the writer.
        begun: The write.
        metadata: What it wrote.
        forward: Sees to the last claim.
        rollback: For the claim that occupies a number when no answer came.
        concurrent: Looks for conflicts.
        unless: Says why not to publish after all; "" to go on.
    """

    def __init__(
        self,
        context: Context,
        begun: Begun,
        *,
        metadata: CommitMetadata,
        forward: RollForward,
        rollback: Rollback,
        concurrent: ConcurrentWrites,
        unless: Unless | None = None,
    ) -> None:
        self._unless = unless
        self._context = context
        self._begun = begun
        self._metadata = metadata
        self._forward = forward
        self._rollback = rollback
        self._concurrent = concurrent
        self._retreat = Retreat(context, forward, rollback=rollback)
        self._instant = begun.instant.requested
        self._is_unanswered = False

    def run(self, hold: Hold) -> PublishResult:
        """Publish, trying anew whenever another claim was first; nothing is lost by that but the check.

        Raises:
            ClockRefused: The times are out of bounds; the write stays open.
            DamagedTable: The timeline or the claim log is unreadable; the write stays open.
            UpdateEndangered: Writes are refused until a notice is acknowledged; the write stays open.
        """
        try:
            while (result := self._attempt(hold)) is None:
                pass
        except StorageError as error:
            return self._unknown(str(error)) if self._is_unanswered else self._give_up(f"the store failed: {error}")
        except ClockRefused as error:
            if self._is_unanswered:
                return self._unknown(str(error))
            raise
        return result

    def _attempt(self, hold: Hold) -> PublishResult | None:
        head = self._forward.to_head()
        self._context.trace(StopPoint.PUBLISH_FORWARDED)
        claims = self._context.log.since(self._begun.claim_head, head)
        self._is_unanswered = False
        if (own := self._find_own(head, claims)) is not None:
            return self._conclude(own, self._begun.timeline)
        timeline = self._context.follow_timeline(head)
        if refusal := self._check_alive(hold, timeline) or (self._unless and self._unless(timeline)):
            return self._give_up(refusal)
        found = self._find_conflict(head, claims, timeline=timeline)
        if found is False:
            return None
        found = found or self._unite_columns(timeline)
        if isinstance(found, Conflict):
            return self._give_up("a conflict", conflict=found)
        self._context.trace(StopPoint.PUBLISH_CHECKED)
        return self._reconcile() or self._claim(head, timeline, hold=hold)

    def _find_own(self, head: ClaimEntry, claims: list[Claim]) -> Claim | None:
        own = next((claim for claim in reversed(claims) if claim.instant == self._instant), None)
        return head.claim if own is not None and own.number == head.number else own

    def _check_alive(self, hold: Hold, timeline: Timeline) -> str:
        if self._context.expects_foreign_writers():
            self._context.notices.check()
        self._context.check_clock(timeline)
        try:
            hold.verify()
        except LockLost as error:
            return str(error)
        if not self._begun.heartbeat.is_fresh:
            return f"the heartbeat expired: {self._begun.heartbeat.lost_because or 'it was not renewed in time'}"
        if not self._is_inflight(timeline):
            return INFLIGHT_GONE
        return "" if self._is_own_attempt() else "another process runs the same plan"

    def _is_inflight(self, timeline: Timeline) -> bool:
        if self._context.goes_by_claims:  # `timeline` may be of before the begin
            return self._context.storage.exists(self._context.path(self._begun.instant, State.INFLIGHT))
        found = timeline.get(self._instant)
        return found is not None and found.state is State.INFLIGHT

    def _is_own_attempt(self) -> bool:
        """A JVM writer takes a pending clustering for its own to run, after it has removed what was written for it."""
        path = self._context.path(self._begun.instant, State.INFLIGHT)
        return self._begun.mark is None or self._context.storage.read(path) == self._begun.mark

    def _find_conflict(self, head: ClaimEntry, claims: list[Claim], *, timeline: Timeline) -> Conflict | bool | None:
        """A conflict; False if the timeline is ahead of the claims that were read; None if the way is free."""
        if self._concurrent.is_ahead(timeline, claims) and self._context.log.read_head().number != head.number:
            return False
        began_s, metrics = self._context.clock.monotonic(), self._context.metrics
        found = self._concurrent.find_conflict(timeline, claims)
        counter = CONFLICT_RESOLUTION_FAILURE if found else CONFLICT_RESOLUTION_SUCCESS
        metrics.report(CONFLICT_RESOLUTION_TIMER, self._context.clock.monotonic() - began_s, counts=[(counter, 1)])
        return found

    def _unite_columns(self, timeline: Timeline) -> Conflict | None:
        """Record the columns that concurrent writes added beside ours; a conflict if they contradict ours."""
        united, clash = self._concurrent.unite_columns(timeline, self._metadata)
        self._metadata = united
        return clash

    def _reconcile(self) -> PublishResult | None:
        try:
            fail = self._context.settings.fail_on_stray
            reconcile(self._context.storage, self._instant, written=self._metadata.paths, fail_on_stray=fail)
        except WriteAborted as error:
            return self._give_up(str(error))
        self._context.trace(StopPoint.PUBLISH_RECONCILED)
        return None

    def _claim(self, head: ClaimEntry, timeline: Timeline, *, hold: Hold) -> PublishResult | None:
        time = self._take_time(head, timeline)
        draft = self._context.log.draft(head, self._make_claim(time, timeline, token=hold.token))
        try:
            entry = self._context.log.append(draft)
        except StorageError as error:
            if error.is_disk_full:
                return self._give_up(f"the disk is full: {error}")
            self._is_unanswered = True
            return self._occupy(head, timeline, reason=f"the store did not answer: {error}")
        return self._conclude(draft, timeline) if entry is not None else None

    def _take_time(self, head: ClaimEntry, timeline: Timeline) -> str:
        time = self._context.later_than(self._context.newest(head, timeline), self._instant)
        self._context.wait_for_skew(time)
        self._context.trace(StopPoint.PUBLISH_TIMED)
        return time

    def _make_claim(self, time: str, timeline: Timeline, *, token: int | None) -> Claim:
        completed = self._begun.instant.as_completed(time)
        version = self._context.layout.version
        data = self._metadata.encode(completed.action, layout_version=version)
        return Claim(
            kind=ClaimKind.PUBLISH,
            instant=self._instant,
            action=self._begun.instant.action,
            time=time,
            writes=frozenset(FileGroupId(*group) for group in self._metadata.written_file_groups),
            replaces=frozenset(FileGroupId(*group) for group in self._metadata.replaced_file_groups),
            overwrites=self._metadata.overwritten_partitions,
            overwrites_table=self._metadata.overwrites_table,
            content=Content.of(completed.file_name(version), data),
            seen=list_seen(timeline, time) if self._context.expects_foreign_writers() else None,
            owner=self._context.owner,
            lock_key=self._context.settings.lock_provider,
            fencing_token=token,
        )

    def _occupy(self, head: ClaimEntry, timeline: Timeline, *, reason: str) -> PublishResult | None:
        """Take the number that the unanswered request asked for, so that it cannot land any more.

        "Not there" would mean nothing: the request may land at any later time.
        """
        instant = self._begun.instant
        draft = self._rollback.draft(head, instant, kind=ClaimKind.ROLLBACK, timeline=timeline)
        if self._rollback.append(draft) is None:
            return None
        self._is_unanswered = False
        return self._give_up(reason)

    def _conclude(self, claim: Claim, timeline: Timeline) -> PublishResult:
        self._context.trace(StopPoint.PUBLISH_CLAIMED)
        if claim.kind is not ClaimKind.PUBLISH:
            return self._give_up(tell_undone(claim))
        try:
            if not self._forward.settle(claim):
                return self._give_up(f"claim {claim.number} was voided: a foreign writer appeared before it was done")
            endangered = self._concurrent.detect(claim, timeline)
        except (StorageError, TableError) as error:
            return self._unknown(f"claim {claim.number} stands, and its completed file is not certain: {error}")
        return PublishResult(self._instant, Outcome.COMMITTED, completion_time=claim.time, warnings=tuple(endangered))

    def _give_up(self, reason: str, *, conflict: Conflict | None = None) -> PublishResult:
        return self._retreat.run(self._begun, str(conflict or reason), conflict=conflict)

    def _unknown(self, reason: str) -> PublishResult:
        self._begun.heartbeat.pause()
        return PublishResult(self._instant, Outcome.UNKNOWN, reason=reason)
