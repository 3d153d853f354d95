"""Plans of services on the timeline: claimed when they are made, and begun later, perhaps by another process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Generic, TypeVar

from hudi_locks.errors import WriteAborted
from hudi_locks.format import (
    LAST_TIME,
    ClusteringPlan,
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    Instant,
    LogFileName,
    State,
    WriteStat,
    clustered_file_groups,
)
from hudi_locks.format.claim import Claim, ClaimKind, Content, FileGroupId
from hudi_locks.markers import drop_staged
from hudi_locks.timeline import Timeline, TimelineLayout, create_instant, read_instant
from hudi_locks.timeline.archive import list_archived_since, list_archived_times
from hudi_locks.timeline.heartbeat import WriterHeartbeat, find_expired, heartbeat_path
from hudi_locks.transaction.conflicts import ConcurrentOperation
from hudi_locks.transaction.context import View
from hudi_locks.transaction.coordinator import TableCoordinator
from hudi_locks.transaction.hooks import StopPoint
from hudi_locks.transaction.operations import (
    INGESTION,
    archived_operations,
    completed_operation,
    find_plan,
    list_pending_writes,
    planned_operations,
)
from hudi_locks.transaction.settings import refuse_old
from hudi_locks.transaction.write_state import WriteState

__all__ = [
    "ClusteringPlanning",
    "CompactionPlanning",
    "LogCompactionPlanning",
    "MakeCompactionPlan",
    "MakePlan",
    "ServicePlanning",
    "name_clustering",
]

P = TypeVar("P", ClusteringPlan, CompactionPlan)
MakePlan = Callable[[Timeline], ClusteringPlan | None]
MakeCompactionPlan = Callable[[Timeline], CompactionPlan | None]

_ATTEMPT = "hudi_locks.attempt"
_REPLACING = ("clustering", "replacecommit")


def name_clustering(layout: TimelineLayout) -> str:
    """The action of a clustering that is planned or under way."""
    return "replacecommit" if layout.is_version_6 else "clustering"


class ServicePlanning(Generic[P]):
    """Schedules a service and begins what was scheduled. Runs on the driver; holds the lock for the decision alone."""

    action: str
    operation: ClassVar[str]
    is_for_old: ClassVar[bool] = False
    """Whether tables of version 6 have the service here."""

    def __init__(self, coordinator: TableCoordinator) -> None:
        self._table = coordinator

    def schedule(self, make_plan: Callable[[Timeline], P | None]) -> str | None:
        """See `Transactions.schedule_clustering` and `Transactions.schedule_compaction`."""
        if not self.is_for_old:
            refuse_old(self._table.layout, self.action)
        since = self._find_since(self._table.load_timeline())
        archived = self._list_archived(since)  # first, so that nothing is among it that the snapshot lacks
        before = self._table.load_timeline()
        plan = make_plan(before)
        self._table.trace(StopPoint.SCHEDULE_PLANNED)
        with self._table.hold():
            while plan is not None and plan.groups:
                view = self._look()
                taken = self._find_taken(before, view.timeline) | self._find_archived(since, before, archived=archived)
                plan = self._bring_up_to_date(plan.without(taken), before, view.timeline)
                if plan.groups and (requested := self._claim(plan, view)):
                    return requested
        return None

    def resume(self, requested: str) -> WriteState:
        """See `Transactions.resume` and `Transactions.resume_compaction`."""
        with self._table.hold() as hold:
            timeline = self._look().timeline
            self._check(timeline, requested)
            claim = self._find_claim(requested)
            attempt = self._end_attempts(requested)
            heartbeat = self._beat(requested)
            with heartbeat.pause_on_error():
                state = self._start(claim, timeline, heartbeat)
        return replace(state, attempt=attempt, lock_wait_ms=hold.wait_ms, lock_held_ms=hold.held_ms)

    def _end_attempts(self, requested: str) -> int:
        """Let no earlier attempt to run the plan publish any more; the number of a claim before this one."""
        del requested
        return 0

    def _look(self) -> View:
        view = self._table.look()
        if restoring := view.timeline.pending(("restore",)):
            message = f"restore {restoring[0].requested} is pending: let it finish before {self.action}"
            raise WriteAborted(message, instant=restoring[0].requested)
        return view

    def _bring_up_to_date(self, plan: P, before: Timeline, now: Timeline) -> P:
        """The plan with what came since it was made and belongs to it."""
        del before, now
        return plan

    def _stands(self, other: Instant) -> bool:
        """Whether the plan for a file group stands although `other` changed it meanwhile."""
        del other
        return False

    def _list_fresh(self, before: Timeline, now: Timeline) -> list[Instant]:
        known = {instant.requested for instant in before.completed()}
        return [i for i in now.completed_between("") if i.requested not in known]

    def _find_taken(self, before: Timeline, now: Timeline) -> frozenset[tuple[str, str]]:
        """File groups that changed since the plan was made, or that another plan has."""
        storage = self._table.storage
        fresh = [instant for instant in self._list_fresh(before, now) if not self._stands(instant)]
        others = [completed_operation(storage, now, instant) for instant in fresh]
        others += planned_operations(storage, now)
        return _groups_of(others)

    def _find_since(self, timeline: Timeline) -> str:
        """Before all that is completed from now on, also if it was claimed long ago: its time is that of the claim."""
        now = self._table.earliest(self._table.later_than())
        begun = timeline.pending()
        return min(now, begun[0].requested) if begun else now

    def _find_archived(self, since: str, before: Timeline, *, archived: frozenset[str]) -> frozenset[tuple[str, str]]:
        """File groups that changed since the plan was made, by writes that were archived at once."""
        found = list_archived_since(self._table.storage, self._table.layout, completed_after=since)
        return _groups_of(archived_operations(found, before, archived=archived))

    def _list_archived(self, since: str, until: str = LAST_TIME) -> frozenset[str]:
        """What was archived until now, as far as it was completed between these times."""
        storage, layout = self._table.storage, self._table.layout
        return list_archived_times(storage, layout, completed_after=since, completed_before=until)

    def _claim(self, plan: P, view: View) -> str | None:
        """Claim the plan at a time after all that it knows; None if another claim came first."""
        heartbeat = self._table.reserve(self._table.time_after(view))
        try:
            claim = self._make_claim(plan, heartbeat.requested)
            is_made = self._table.claim(view, claim, (StopPoint.SCHEDULE_CLAIMED, StopPoint.SCHEDULE_REQUESTED))
        finally:
            heartbeat.stop()
        return heartbeat.requested if is_made else None

    def _make_claim(self, plan: P, requested: str) -> Claim:
        instant = Instant(requested, self.action, State.REQUESTED)
        return replace(
            self._table.new_claim(ClaimKind.SCHEDULE, instant, time=requested),
            replaces=frozenset(FileGroupId(*group) for group in plan.file_groups),
            content=Content.of(instant.file_name(self._table.layout.version), plan.encode()),
        )

    def _check(self, timeline: Timeline, requested: str) -> None:
        found = timeline.get(requested)
        if found is None or found.is_completed or found.action != self.action:
            state = "is not on the timeline" if found is None else f"is a {found.state.name.lower()} {found.action}"
            message = f"{requested} {state}, and no {self.action} that waits to be run"
            raise WriteAborted(message, instant=requested)
        if found.state is State.INFLIGHT:
            message = f"{self.action} {requested} is under way, or its process has died: roll it back before it is"
            message += " planned anew"
            raise WriteAborted(message, instant=requested)

    def _find_claim(self, requested: str) -> Claim:
        claim = find_plan(self._table.log, requested)
        if claim is None:
            message = f"{self.action} {requested} was planned by a JVM writer: let that run it, or roll it back there"
            raise WriteAborted(message, instant=requested)
        return claim

    def _beat(self, requested: str) -> WriterHeartbeat:
        heartbeat = self._table.heartbeat(requested)
        if heartbeat.start():
            return heartbeat
        limit_ms = self._table.settings.heartbeat_limit_ms
        if find_expired(self._table.storage, [requested], limit_ms=limit_ms):
            self._table.storage.delete(heartbeat_path(requested))
            if heartbeat.start():
                return heartbeat
        raise WriteAborted(f"{self.action} {requested} is being begun by another process", instant=requested)

    def _start(self, claim: Claim, timeline: Timeline, heartbeat: WriterHeartbeat) -> WriteState:
        """Make it inflight, with a content that tells this attempt from one of a JVM that runs the plan too."""
        self._table.trace(StopPoint.RESUME_HEARTBEAT)
        instant = Instant(claim.instant, self.action, State.INFLIGHT)
        attempt = CommitMetadata.of((), self.operation, schema=None, extra={_ATTEMPT: uuid.uuid4().hex})
        mark = attempt.encode(self.action, layout_version=self._table.layout.version)
        if not create_instant(self._table.storage, self._table.layout, instant=instant, data=mark):
            raise WriteAborted(f"another process made {claim.instant} inflight", instant=claim.instant)
        self._table.trace(StopPoint.RESUME_INFLIGHT)
        self._refuse_restored(instant)
        return self._describe(claim, timeline, heartbeat, mark=mark)

    def _refuse_restored(self, inflight: Instant) -> None:
        """A look behind: without its plan an inflight file is one that nobody can read or run."""
        storage, layout = self._table.storage, self._table.layout
        if not storage.exists(layout.path(inflight.as_requested())):
            storage.delete(layout.path(inflight))
            message = f"the plan of {inflight.requested} was taken back meanwhile, as by a restore"
            raise WriteAborted(message, instant=inflight.requested)

    def _describe(self, claim: Claim, timeline: Timeline, heartbeat: WriterHeartbeat, *, mark: bytes) -> WriteState:
        instant = Instant(claim.instant, self.action, State.INFLIGHT)
        known = [i for i in timeline.instants if not i.is_completed or (i.completion or "") < claim.time]
        archived = self._list_foreign_archived(claim)
        shown = replace(timeline, instants=tuple(known))
        return WriteState(instant, shown, claim.number, heartbeat, archived=archived, mark=mark)

    def _list_foreign_archived(self, claim: Claim) -> frozenset[str]:
        """What was archived before the plan, where the claims do not tell all that came since."""
        if not self._table.expects_foreign_writers():
            return frozenset()
        return self._list_archived(self._table.earliest(claim.instant), claim.time)


class ClusteringPlanning(ServicePlanning[ClusteringPlan]):
    """Of clustering, which gives way to every write: a file group that changed meanwhile is left out."""

    operation = "CLUSTER"
    is_for_old = True

    def __init__(self, coordinator: TableCoordinator) -> None:
        super().__init__(coordinator)
        self.action: str = name_clustering(coordinator.layout)

    def adopt(self, requested: str, find_changed: Callable[[Timeline], Collection[tuple[str, str]]]) -> None:
        """See `Transactions.adopt_clustering`."""
        with self._table.hold():
            while find_plan(self._table.log, requested) is None:
                view = self._look()
                self._check(view.timeline, requested)
                if changed := sorted(find_changed(view.timeline)):
                    message = (
                        f"{self.action} {requested} was planned by a JVM writer, and file group {changed[0][1]} of"
                        f" partition {changed[0][0]!r} was written since: let a JVM writer run it, or roll it back"
                    )
                    raise WriteAborted(message, instant=requested, file_groups=changed)
                self._claim_found(requested, view)

    def _claim_found(self, requested: str, view: View) -> None:
        """Claim what is on the timeline already, at a time after all that it was compared with."""
        instant = Instant(requested, self.action, State.REQUESTED)
        path = self._table.layout.path(instant)
        groups = clustered_file_groups(self._table.storage.read(path) or b"", path)
        heartbeat = self._table.reserve(self._table.time_after(view))
        with heartbeat.stop_at_end():
            claim = self._table.new_claim(ClaimKind.SCHEDULE, instant, time=heartbeat.requested)
            replaces = frozenset(FileGroupId(*group) for group in groups)
            points = (StopPoint.SCHEDULE_CLAIMED, StopPoint.SCHEDULE_REQUESTED)
            self._table.claim(view, replace(claim, replaces=replaces), points)

    def _bring_up_to_date(self, plan: ClusteringPlan, before: Timeline, now: Timeline) -> ClusteringPlan:
        """A ring changes by one clustering at a time: partitions that another has, or had meanwhile, are left out."""
        if not plan.ring_changes:
            return plan
        storage = self._table.storage
        others = [completed_operation(storage, now, i) for i in self._list_fresh(before, now) if i.action in _REPLACING]
        others += [other for other in planned_operations(storage, now) if other.action in _REPLACING]
        partitions = {group.partition for other in others for group in other.groups}
        return plan.without([group for group in plan.file_groups if group[0] in partitions])


class CompactionPlanning(ServicePlanning[CompactionPlan]):
    """Of compaction, which takes along what was logged until it is decided.

    Its requested time is a barrier: what completed before belongs to the base file that it makes, and would be hidden
    by it otherwise; what completes later lies on top. In version 6 what begins later lies on top, and its logs are
    named by the plan. So the plan stays until it is run to its end, under the same time by whoever comes after one that
    died.
    """

    action = "compaction"
    operation = "COMPACT"
    is_for_old = True

    def is_own_attempt(self, requested: str) -> bool:
        """Whether this package made the instant inflight; a JVM writer that runs the plan makes that file anew."""
        return _ATTEMPT.encode() in (self._read_mark(requested) or b"")

    def _stands(self, other: Instant) -> bool:
        return other.action == "deltacommit"

    def _bring_up_to_date(self, plan: CompactionPlan, before: Timeline, now: Timeline) -> CompactionPlan:
        if self._is_old and not self._table.settings.is_multi_writer and list_pending_writes(self._table.storage, now):
            return replace(plan, groups=())  # as JVM Hudi: a single writer looks for no plan that came meanwhile
        logged = [instant for instant in self._list_fresh(before, now) if self._stands(instant)]
        commits = (self._read_commit(now, instant) for instant in logged)
        stats = [stat for commit in commits for stat in commit.stats if stat.path]
        rewritten = {(stat.partition_path, stat.file_id) for stat in stats if stat.log_version is None}
        return _add_logs(plan.without(rewritten), [stat for stat in stats if stat.log_version is not None])

    @property
    def _is_old(self) -> bool:
        return self._table.layout.is_version_6

    def _read_mark(self, requested: str) -> bytes | None:
        layout = self._table.layout
        return self._table.storage.read(layout.path(Instant(requested, self.action, State.INFLIGHT)))

    def _check(self, timeline: Timeline, requested: str) -> None:
        found = timeline.get(requested)
        is_again = self._is_old and found is not None and found.state is State.INFLIGHT
        if not is_again:
            super()._check(timeline, requested)
        elif not self.is_own_attempt(requested):
            message = f"a JVM writer runs {self.action} {requested}, or died while it did: let that end it"
            raise WriteAborted(message, instant=requested)

    def _start(self, claim: Claim, timeline: Timeline, heartbeat: WriterHeartbeat) -> WriteState:
        mark = self._read_mark(claim.instant) if self._is_old else None
        if mark is None:
            return super()._start(claim, timeline, heartbeat)
        self._table.trace(StopPoint.RESUME_HEARTBEAT)
        drop_staged(self._table.storage, [claim.instant])
        self._table.trace(StopPoint.RESUME_INFLIGHT)
        return self._describe(claim, timeline, heartbeat, mark=mark)

    def _end_attempts(self, requested: str) -> int:
        if not self._is_old or self._read_mark(requested) is None:
            return self._look().head.number if self._is_old else 0
        limit_ms = self._table.settings.heartbeat_limit_ms
        if not find_expired(self._table.storage, [requested], limit_ms=limit_ms):
            raise WriteAborted(f"{self.action} {requested} is being run by another process", instant=requested)
        instant, rollback = Instant(requested, self.action, State.INFLIGHT), self._table.rollback
        while True:
            view = self._look()
            self._check(view.timeline, requested)
            entry = rollback.append(rollback.draft(view, instant, kind=ClaimKind.ROLLBACK))
            if entry is not None:
                return entry.number

    def _read_commit(self, timeline: Timeline, instant: Instant) -> CommitMetadata:
        data = read_instant(self._table.storage, timeline, instant=instant)
        return CommitMetadata.decode(data, timeline.paths[instant])


class LogCompactionPlanning(CompactionPlanning):
    """Of log compaction, whose log must come right behind those that it merges.

    Logs are applied in the order of their requested times, by the readers of others also those that were merged. So
    there is no plan while a write is under way that began before it: what that logs would lie below.
    """

    action = "logcompaction"
    operation = "LOG_COMPACT"
    is_for_old = False

    def _bring_up_to_date(self, plan: CompactionPlan, before: Timeline, now: Timeline) -> CompactionPlan:
        if now.pending(INGESTION):
            return replace(plan, groups=())
        return super()._bring_up_to_date(plan, before, now)


def _add_logs(plan: CompactionPlan, stats: Iterable[WriteStat]) -> CompactionPlan:
    added: dict[tuple[str, str], dict[str, int]] = {}
    for stat in stats:
        name = str(stat.path).rpartition("/")[2]
        added.setdefault((stat.partition_path, stat.file_id), {})[name] = stat.file_size_bytes
    groups = (_add_to(operation, added.get((operation.partition, operation.file_id), {})) for operation in plan.groups)
    return replace(plan, groups=tuple(groups))


def _add_to(operation: CompactionOperation, sizes: Mapping[str, int]) -> CompactionOperation:
    """Logs are applied in the order of their writes, whatever completed first."""
    new = [name for name in sizes if name not in operation.log_names]
    names = sorted((*operation.log_names, *new), key=_order_of)
    return replace(operation, log_names=tuple(names), log_bytes=operation.log_bytes + sum(sizes[n] for n in new))


def _order_of(name: str) -> tuple[str, int, str]:
    parsed = LogFileName.parse(name)
    return (parsed.instant, parsed.version, parsed.write_token) if parsed else ("", 0, name)


def _groups_of(others: Iterable[ConcurrentOperation]) -> frozenset[tuple[str, str]]:
    return frozenset((group.partition, group.file_id) for other in others for group in other.groups)
