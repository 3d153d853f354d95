"""When a table is compacted: on demand, after a commit, or on a thread beside the writes. Runs on the driver."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hudi_locks.config import Options, compaction_keys
from hudi_locks.services import Compaction
from hudi_locks.spark.compaction import CompactionJob
from hudi_locks.spark.following_service import FollowingService
from hudi_locks.spark.progress import show_progress
from hudi_locks.spark.result import WriteResult
from hudi_locks.spark.writing import Writer
from hudi_locks.transaction import Outcome

__all__ = ["CompactionService"]


class CompactionService(FollowingService):
    """Compaction of one table. Thread-safe.

    Args:
        spark: Session of the jobs.
        writer: Of the table; its transactions are used.
        options: Hudi's keys.
    """

    name = "compaction"

    def __init__(self, spark: SparkSession, writer: Writer, options: Options) -> None:
        self._compaction = Compaction(writer.table, writer.transactions)
        self._job = CompactionJob(spark, self._compaction, writer.settings.codec, writer.clock)
        self._schedules_only = options.get_value(compaction_keys.SCHEDULE_INLINE)
        commits = options.get_value(compaction_keys.INLINE_MAX_DELTA_COMMITS) if writer.table.is_merge_on_read else 0
        is_inline = self._schedules_only or options.get_value(compaction_keys.INLINE)
        is_beside = options.get_value(compaction_keys.ASYNC_ENABLE)
        super().__init__(inline_commits=commits * is_inline, async_commits=commits * is_beside)

    def schedule(self) -> str | None:
        """See `HoodieTable.schedule_compaction`."""
        return self._compaction.schedule()

    def run(self, instant: str | None = None) -> WriteResult | None:
        """See `HoodieTable.run_compaction`."""
        with show_progress(f"compaction of {self._job.table.storage.base}") as report:
            return self._job.run(instant, report)

    def compact(self) -> WriteResult | None:
        """See `HoodieTable.compact`."""
        with show_progress(f"compaction of {self._job.table.storage.base}") as report:
            return self._job.compact(report)

    def abort(self, instant: str) -> Outcome:
        """See `HoodieTable.abort_compaction`."""
        return self._compaction.abort(instant)

    def _run_if_due(self, commits: int) -> WriteResult | None:
        is_due = self._compaction.count_commits(self._compaction.table.timeline()) >= commits
        if not self._schedules_only:
            return self.compact() if is_due else self.run()
        if is_due:
            self.schedule()
        return None
