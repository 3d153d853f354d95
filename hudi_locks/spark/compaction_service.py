"""When a table is compacted: on demand, after a commit, or on a thread beside the writes. Runs on the driver."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hudi_locks.config import Options, compaction_keys
from hudi_locks.services import Compaction
from hudi_locks.spark.compacting_service import CompactingService
from hudi_locks.spark.compaction import CompactionJob
from hudi_locks.spark.result import WriteResult
from hudi_locks.spark.writing import Writer

__all__ = ["CompactionService"]


class CompactionService(CompactingService):
    """Compaction of one table. Thread-safe.

    Args:
        spark: Session of the jobs.
        writer: Of the table; its transactions are used.
        options: Hudi's keys.
    """

    name = "compaction"

    def __init__(self, spark: SparkSession, writer: Writer, options: Options) -> None:
        planning = Compaction(writer.table, writer.transactions)
        job = CompactionJob(spark, planning, writer.settings, writer.clock)
        self._schedules_only = options.get_value(compaction_keys.SCHEDULE_INLINE)
        commits = options.get_value(compaction_keys.INLINE_MAX_DELTA_COMMITS) if writer.table.is_merge_on_read else 0
        is_inline = self._schedules_only or options.get_value(compaction_keys.INLINE)
        is_beside = options.get_value(compaction_keys.ASYNC_ENABLE)
        super().__init__(planning, job, inline_commits=commits * is_inline, async_commits=commits * is_beside)

    def _run_if_due(self, commits: int) -> WriteResult | None:
        if not self._schedules_only:
            return super()._run_if_due(commits)
        if self._is_due(commits):
            self.schedule()
        return None
