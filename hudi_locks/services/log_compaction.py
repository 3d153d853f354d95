"""Log compaction: many logs of a file slice become one log, and its base file stays. Planning and bookkeeping."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hudi_locks.config import compaction_keys
from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import CompactionPlan, parse_instant_name
from hudi_locks.services.compaction import Compaction
from hudi_locks.table import FileSlice
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Transaction

__all__ = ["LogCompaction"]

_COMPACTOR: Final = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
"""Without it a JVM that runs the plan would make base files."""


@dataclass(frozen=True)
class LogCompaction(Compaction):
    """Log compaction of one table, but for the rows themselves. Runs on the driver.

    Attributes:
        threshold: A file slice is taken if it has so many logs that no log compaction has merged.
    """

    threshold: int = compaction_keys.LOG_BLOCKS_THRESHOLD.default or 0

    action = "logcompaction"

    def schedule(self) -> str | None:
        """Put a plan for all file slices with enough logs on the timeline.

        None if there is nothing to do, or a write is under way: what that logs, of an earlier time than the plan, would
        be read below the result, though it completes later.

        Raises:
            UnsupportedTable: The table has no logs, or its rows fill columns of the rows below.
        """
        if self.table.config.merge_rule.fills:
            path = self.table.storage.base
            message = f"rows of {path} take the values of nulls from rows below them, so that logs cannot be merged"
            raise UnsupportedTable(f"{message} without their base file; compact it instead", path=path)
        self._require_logs()
        if self.transactions.coordinator.settings.cleans_failed_writes:
            self.transactions.roll_back_failed()  # what dead writers left would be under way for ever
        return self.transactions.schedule_log_compaction(self.make_plan)

    def count_commits(self, timeline: Timeline) -> int:
        """Delta commits that neither a compaction nor a log compaction has taken yet, planned ones included."""
        ours = self._list_instants()
        compactions = [*timeline.pending(("compaction",)), *timeline.completed(("commit",))]
        since = max((*ours, *(instant.requested for instant in compactions)), default="")
        logged = (i for i in timeline.completed(("deltacommit",)) if i.requested not in ours)
        return sum((instant.completion or "") > since for instant in logged)

    def make_plan(self, timeline: Timeline) -> CompactionPlan | None:
        """What is to be merged of the table that `timeline` shows."""
        ours = self._list_instants()
        plan = self._plan(timeline, lambda piece: _count_unmerged(piece, ours) >= self.threshold)
        return None if plan is None else replace(plan, compactor=_COMPACTOR)

    def _begin(self, requested: str) -> Transaction:
        return self.transactions.resume_log_compaction(requested)

    def _list_instants(self) -> frozenset[str]:
        """Log compactions on the active timeline: a completed one is a deltacommit, and its plan is still there."""
        names = self.table.storage.list_names(self.table.layout.folder)
        instants = filter(None, map(parse_instant_name, names))
        return frozenset(instant.requested for instant in instants if instant.action == self.action)


def _count_unmerged(piece: FileSlice, log_compactions: frozenset[str]) -> int:
    """Logs behind the last one that a log compaction made: it came right behind those that it merged."""
    made = max((log.instant for log in piece.logs if log.instant in log_compactions), default="")
    return sum(log.instant > made for log in piece.logs)
