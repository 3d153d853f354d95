"""Compaction: the logs of a file slice and its base file become one base file. Planning and bookkeeping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import BaseFileName, CompactionOperation, CompactionPlan
from hudi_locks.services.planned import PendingPlan, PlannedService
from hudi_locks.table import BaseFile, FileSlice, LogFile, latest_file_slices
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Transaction

__all__ = ["Compaction", "planned_slice"]


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

    def make_plan(self, timeline: Timeline) -> CompactionPlan | None:
        """What is to be compacted of the table that `timeline` shows."""
        return self._plan(timeline, lambda piece: bool(piece.logs))

    def _plan(self, timeline: Timeline, is_wanted: Callable[[FileSlice], bool]) -> CompactionPlan | None:
        busy = self._find_busy(timeline)
        slices = latest_file_slices(self.table.storage, timeline)
        chosen = (piece for piece in slices if (piece.partition, piece.file_id) not in busy and is_wanted(piece))
        plan = CompactionPlan(tuple(piece.plan(piece.partition) for piece in chosen))
        return plan if plan.groups else None

    def _require_logs(self) -> None:
        if not self.table.is_merge_on_read:
            path = self.table.storage.base
            raise UnsupportedTable(f"{path} is a copy-on-write table, which has no logs to compact", path=path)

    def _schedule_anew(self, pending: PendingPlan[CompactionPlan]) -> str | None:
        """Everything that has logs now, those that came since included."""
        del pending
        return self.schedule()

    def _begin(self, requested: str) -> Transaction:
        return self.transactions.resume_compaction(requested)

    def _decode(self, data: bytes, path: str) -> CompactionPlan | None:
        return CompactionPlan.decode(data, path) if data else None


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
