"""Clustering plans on the timeline: claimed when they are made, and begun later, perhaps by another process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace

from hudi_locks.errors import WriteAborted
from hudi_locks.format import ClusteringPlan, CommitMetadata, Instant, State
from hudi_locks.format.claim import Claim, ClaimKind, Content, FileGroupId
from hudi_locks.timeline import Timeline, create_instant
from hudi_locks.timeline.archive import list_archived_since, list_archived_times
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.timeline.heartbeat import WriterHeartbeat, find_expired, heartbeat_path
from hudi_locks.transaction.begun import Begun
from hudi_locks.transaction.candidates import archived_operations, completed_operation
from hudi_locks.transaction.conflicts import ConcurrentOperation
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.forward import RollForward
from hudi_locks.transaction.pending import find_plan, planned_operations
from hudi_locks.transaction.stop import StopPoint
from hudi_locks.transaction.table_lock import Locks, hold_table

__all__ = ["MakePlan", "Planning"]

MakePlan = Callable[[Timeline], ClusteringPlan | None]

_ACTION = "clustering"
_ATTEMPT = "hudi_locks.attempt"
_LAST = "9" * 17


class Planning:
    """Schedules clustering and begins what was scheduled. Runs on the driver; holds the lock for the decision alone."""

    def __init__(self, context: Context, forward: RollForward, *, locks: Locks | None) -> None:
        self._context = context
        self._forward = forward
        self._locks = locks

    def schedule(self, make_plan: MakePlan) -> str | None:
        """See `Transactions.schedule_clustering`."""
        since = self._context.earliest(self._context.later_than())
        archived = self._list_archived(since)  # first, so that nothing is among it that the snapshot lacks
        before = self._context.load_timeline()
        plan = make_plan(before)
        self._context.trace(StopPoint.SCHEDULE_PLANNED)
        with hold_table(self._locks, self._context.clock):
            while plan is not None and plan.groups:
                head, timeline = self._look()
                taken = self._find_taken(before, timeline) | self._find_archived(since, before, archived=archived)
                plan = plan.without(taken)
                if plan.groups and (entry := self._claim(plan, head, timeline)):
                    return self._put(entry)
        return None

    def resume(self, requested: str) -> Begun:
        """See `Transactions.resume`."""
        with hold_table(self._locks, self._context.clock) as hold:
            _, timeline = self._look()
            self._check(timeline, requested)
            claim = self._find_claim(requested)
            heartbeat = self._beat(requested)
            try:
                begun = self._start(claim, timeline, heartbeat)
            except BaseException:
                heartbeat.pause()
                raise
        return replace(begun, lock_wait_ms=hold.wait_ms, lock_held_ms=hold.held_ms)

    def _look(self) -> tuple[ClaimEntry, Timeline]:
        self._context.notices.check()
        head = self._forward.to_head()
        timeline = self._context.load_timeline()
        self._context.check_clock(timeline)
        if restoring := timeline.pending(("restore",)):
            message = f"restore {restoring[0].requested} is pending: let it finish before clustering"
            raise WriteAborted(message, instant=restoring[0].requested)
        return head, timeline

    def _find_taken(self, before: Timeline, now: Timeline) -> frozenset[tuple[str, str]]:
        """File groups that changed since the plan was made, or that another plan has."""
        storage = self._context.storage
        known = {instant.requested for instant in before.completed()}
        fresh = [i for i in now.completed_between("") if i.requested not in known]
        others = [completed_operation(storage, now, instant) for instant in fresh]
        others += planned_operations(storage, now)
        return _groups_of(others)

    def _find_archived(self, since: str, before: Timeline, *, archived: frozenset[str]) -> frozenset[tuple[str, str]]:
        """File groups that JVM writers changed since the plan was made, and archived at once."""
        if not self._context.expects_foreign_writers():
            return frozenset()
        found = list_archived_since(self._context.storage, self._context.layout, completed_after=since)
        return _groups_of(archived_operations(found, before, archived=archived))

    def _list_archived(self, since: str, until: str = _LAST) -> frozenset[str]:
        """What was archived until now, as far as it was completed between these times."""
        if not self._context.expects_foreign_writers():
            return frozenset()
        storage, layout = self._context.storage, self._context.layout
        return list_archived_times(storage, layout, completed_after=since, completed_before=until)

    def _claim(self, plan: ClusteringPlan, head: ClaimEntry, timeline: Timeline) -> ClaimEntry | None:
        """Claim the plan at a time after all that it knows; None if another claim came first."""
        requested, heartbeat = self._reserve(self._context.later_than(head.time, timeline.newest_time()))
        try:
            self._context.wait_for_skew(requested)
            draft = self._context.log.draft(head, self._make_claim(plan, requested))
            return self._context.log.append(draft)
        finally:
            heartbeat.stop()

    def _make_claim(self, plan: ClusteringPlan, requested: str) -> Claim:
        name = Instant(requested, _ACTION, State.REQUESTED).file_name(self._context.layout.version)
        return Claim(
            kind=ClaimKind.SCHEDULE,
            instant=requested,
            action=_ACTION,
            time=requested,
            replaces=frozenset(FileGroupId(*group) for group in plan.file_groups),
            content=Content.of(name, plan.encode()),
            owner=self._context.owner,
            lock_key=self._context.settings.lock_provider,
        )

    def _put(self, entry: ClaimEntry) -> str | None:
        """The plan's time, once its requested file is there."""
        self._context.trace(StopPoint.SCHEDULE_CLAIMED)
        self._forward.to_head()
        self._context.trace(StopPoint.SCHEDULE_REQUESTED)
        self._context.log.write_hint()
        return entry.claim.instant if entry.claim else None

    def _reserve(self, requested: str) -> tuple[str, WriterHeartbeat]:
        """A time that no other instant has, held by its heartbeat file."""
        while True:
            heartbeat = self._context.heartbeat(requested)
            if heartbeat.start():
                if self._context.is_free(requested):
                    return requested, heartbeat
                heartbeat.stop()
            requested = self._context.later_than(requested)

    def _check(self, timeline: Timeline, requested: str) -> None:
        found = timeline.get(requested)
        if found is None or found.is_completed or found.action != _ACTION:
            state = "is not on the timeline" if found is None else f"is a {found.state.name.lower()} {found.action}"
            message = f"{requested} {state}, and no clustering that waits to be run"
            raise WriteAborted(message, instant=requested)
        if found.state is State.INFLIGHT:
            message = (
                f"clustering {requested} is under way, or its process has died: roll it back before it is planned anew"
            )
            raise WriteAborted(message, instant=requested)

    def _find_claim(self, requested: str) -> Claim:
        claim = find_plan(self._context.log, requested)
        if claim is None:
            message = f"clustering {requested} was planned by a JVM writer: let that run it, or roll it back there"
            raise WriteAborted(message, instant=requested)
        return claim

    def _beat(self, requested: str) -> WriterHeartbeat:
        heartbeat = self._context.heartbeat(requested)
        if heartbeat.start():
            return heartbeat
        limit_ms = self._context.settings.heartbeat_limit_ms
        if find_expired(self._context.storage, [requested], limit_ms=limit_ms):
            self._context.storage.delete(heartbeat_path(requested))
            if heartbeat.start():
                return heartbeat
        raise WriteAborted(f"clustering {requested} is being begun by another process", instant=requested)

    def _start(self, claim: Claim, timeline: Timeline, heartbeat: WriterHeartbeat) -> Begun:
        """Make it inflight, with a content that tells this attempt from one of a JVM that runs the plan too."""
        self._context.trace(StopPoint.RESUME_HEARTBEAT)
        instant = Instant(claim.instant, _ACTION, State.INFLIGHT)
        attempt = CommitMetadata.of((), "CLUSTER", schema=None, extra={_ATTEMPT: uuid.uuid4().hex})
        mark = attempt.encode(_ACTION, layout_version=self._context.layout.version)
        if not create_instant(self._context.storage, self._context.layout, instant=instant, data=mark):
            raise WriteAborted(f"another process made {claim.instant} inflight", instant=claim.instant)
        self._context.trace(StopPoint.RESUME_INFLIGHT)
        known = [i for i in timeline.instants if not i.is_completed or (i.completion or "") < claim.instant]
        archived = self._list_archived(self._context.earliest(claim.instant), claim.instant)
        shown = replace(timeline, instants=tuple(known))
        return Begun(instant, shown, claim.number, heartbeat, archived=archived, mark=mark)


def _groups_of(others: Iterable[ConcurrentOperation]) -> frozenset[tuple[str, str]]:
    return frozenset((group.partition, group.file_id) for other in others for group in other.groups)
