"""Compaction: the logs of a file slice and its base file become one base file. Planning and bookkeeping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format import (
    BaseFileName,
    CompactionOperation,
    CompactionPlan,
    Instant,
    LogFileName,
    State,
    epoch_ms,
)
from hudi_locks.services.planned import PendingPlan, PlannedService
from hudi_locks.table import BaseFile, FileSlice, LogFile, Table, latest_file_slices, read_commit
from hudi_locks.table.bootstrap import find_source
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Outcome, Transaction, Unless, list_pending_writes

__all__ = ["Compaction", "choose_slices", "planned_slice"]

_ACTION: Final = "compaction"
_SLACK_MS: Final = 1_000
"""By how much the clocks of a store and of a writer may differ."""


@dataclass(frozen=True)
class Compaction(PlannedService[CompactionPlan]):
    """Compaction of one table, but for the rows themselves. Runs on the driver."""

    action = "compaction"

    def schedule(self) -> str | None:
        """Put a plan for all file groups with logs on the timeline; None if there is nothing to compact.

        Raises:
            UnsupportedTable: The table has no logs by its type.
        """
        self._require_logs()
        return self.transactions.schedule_compaction(self.make_plan)

    def count_commits(self, timeline: Timeline) -> int:
        """Delta commits that no compaction has taken yet, planned ones included."""
        plans = [*timeline.pending((self.action,)), *timeline.completed(("commit",))]
        since = max((instant.requested for instant in plans), default="")
        return sum((instant.completion or "") > since for instant in timeline.completed(("deltacommit",)))

    def abort(self, instant: str) -> Outcome:
        """See `PlannedService.abort`; in version 6 a plan stays, since later logs are named by it.

        Raises:
            UnsupportedTable: The table is of version 6.
        """
        if not self._is_old:
            return super().abort(instant)
        message = (
            f"a compaction of a table of version 6 is not taken back, since logs of later writes are named by"
            f" {instant}: run it, or upgrade the table"
        )
        raise UnsupportedTable(message, instant=instant)

    def refuse_publish(self, transaction: Transaction, plan: CompactionPlan) -> Unless | None:
        """See `PlannedService.refuse_publish`: in version 6 a write that goes below the plan."""
        return self._look_below(plan, transaction.instant).describe if self._is_old else None

    def _look_below(self, plan: CompactionPlan, requested: str) -> OldLogsBelow:
        has_others = self.transactions.coordinator.expects_foreign_writers()
        return OldLogsBelow.of(self.table, plan, requested, has_others=has_others)

    @property
    def _is_old(self) -> bool:
        return self.table.layout.is_version_6

    def _is_taken_over(self, instant: Instant) -> bool:
        is_begun = instant.state is State.INFLIGHT and self._is_old
        return is_begun and not self.transactions.is_own_attempt(instant.requested)

    def _renew(self, pending: PendingPlan[CompactionPlan]) -> str | None:
        """In version 6 it is run again under its own time."""
        return pending.instant if self._is_old else super()._renew(pending)

    def make_plan(self, timeline: Timeline) -> CompactionPlan | None:
        """What is to be compacted of the table that `timeline` shows."""
        return self._plan(timeline, lambda piece: bool(piece.logs))

    def _plan(self, timeline: Timeline, is_wanted: Callable[[FileSlice], bool]) -> CompactionPlan | None:
        busy = self._find_busy(timeline)
        slices = latest_file_slices(self.table.storage, timeline)
        chosen = (piece for piece in slices if (piece.partition, piece.file_id) not in busy and is_wanted(piece))
        plan = CompactionPlan(tuple(map(self._plan_slice, chosen)))
        return plan if plan.groups else None

    def _plan_slice(self, piece: FileSlice) -> CompactionOperation:
        plan = piece.plan(piece.partition)
        if piece.base is None or not piece.base.is_skeleton:  # of whole files nothing is asked
            return plan
        source = find_source(self.table.storage, piece.base)
        return plan if source is None else replace(plan, source=source.address)

    def _require_logs(self) -> None:
        if not self.table.is_merge_on_read:
            path = self.table.storage.base
            raise UnsupportedTable(f"{path} is a copy-on-write table, which has no logs to compact", path=path)

    def _schedule_anew(self, pending: PendingPlan[CompactionPlan]) -> str | None:
        """Everything that has logs now, those that came since included."""
        del pending
        return self.schedule()

    def _begin(self, requested: str) -> Transaction:
        if self._is_old:
            below = self._look_below(self.read_plan(requested), requested)
            if reason := below.describe(below.merged):  # which the publish would meet
                raise WriteAborted(f"{self.action} {requested} is not run now: {reason}", instant=requested)
        return self.transactions.resume_compaction(requested)

    def _decode(self, data: bytes, path: str) -> CompactionPlan | None:
        return CompactionPlan.decode(data, path) if data else None


@dataclass(frozen=True)
class OldLogsBelow:
    """What a compaction of a table of version 6 must not replace: logs below its plan that it has not merged.

    Writers of this package look for the plan themselves. A JVM writer goes by its strategy, and by what it saw when it
    began: one that began with the plan may have missed it.

    Attributes:
        table: The table.
        plan: What is merged.
        requested: Of the plan.
        merged: The timeline before the logs were listed.
        seen_from: Whoever began at this time or later has seen the plan.
        has_others: Whether JVM writers may be at work.
    """

    table: Table
    plan: CompactionPlan
    requested: str
    merged: Timeline
    seen_from: str
    has_others: bool

    @classmethod
    def of(cls, table: Table, plan: CompactionPlan, requested: str, *, has_others: bool) -> OldLogsBelow:
        """Before the logs are listed."""
        layout = table.layout
        planned = table.storage.stat(layout.path(Instant(requested, _ACTION, State.REQUESTED)))
        made_ms = epoch_ms(requested, layout.zone) if planned is None else planned.modified_ms
        seen_from = max(requested, layout.time(made_ms + _SLACK_MS))
        return cls(table, plan, requested, table.timeline(), seen_from, has_others)

    def describe(self, now: Timeline) -> str:
        """Why the compaction is not to be published, with the timeline of now; "" if it may be.

        Raises:
            DamagedTable: A commit or a plan cannot be read.
        """
        left = next((i.requested for i in now.completed_since(self.merged) if self._is_below(now, i)), None)
        if left is not None:
            return f"the write {left} logged below the plan meanwhile: run the compaction again"
        pending = list_pending_writes(self.table.storage, now) if self.has_others else []
        early = next((i.requested for i in pending if i.requested < self.seen_from), None)
        if early is None:
            return ""
        return f"the write {early} began before the plan could be seen, and is under way: run it again after that"

    def _is_below(self, now: Timeline, write: Instant) -> bool:
        stats = read_commit(self.table.storage, now, requested=write.requested).stats
        logs = ((s, LogFileName.parse(str(s.path).rpartition("/")[2])) for s in stats if s.log_version is not None)
        groups = self.plan.file_groups
        return any(
            (stat.partition_path, stat.file_id) in groups and log is not None and log.instant < self.requested
            for stat, log in logs
        )


def choose_slices(table: Table, plan: CompactionPlan, requested: str) -> tuple[FileSlice, ...]:
    """What the plan of the compaction begun at `requested` merges, now.

    In version 6 that is all that lies below the plan, named in it or not: a JVM writer that did not see it may have
    logged there since. Whether a block counts is told by the timeline of now.

    Raises:
        DamagedTable: A file of these slices is lost or cut off.
    """
    if not table.layout.is_version_6:
        return tuple(map(planned_slice, plan.groups))
    partitions = {partition for partition, _ in plan.file_groups}
    slices = latest_file_slices(table.storage, table.timeline(), partitions=partitions)
    chosen = (piece for piece in slices if (piece.partition, piece.file_id) in plan.file_groups)
    return tuple(piece.below(requested) for piece in chosen)


def planned_slice(operation: CompactionOperation) -> FileSlice:
    """What an operation merges, as it is read; sizes are not known."""
    base = _find_base(operation)
    logs = (LogFile.parse(operation.partition, name, 0) for name in operation.log_names)
    piece = FileSlice(operation.partition, operation.file_id, operation.base_instant, base)
    return replace(piece, logs=tuple(log for log in logs if log is not None))


def _find_base(operation: CompactionOperation) -> BaseFile | None:
    name = BaseFileName.parse(operation.base_name)
    if name is None:
        return None
    path = f"{operation.partition}/{operation.base_name}" if operation.partition else operation.base_name
    return BaseFile(operation.partition, operation.file_id, name.instant, path, 0)
