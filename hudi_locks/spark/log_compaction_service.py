"""When logs of a table are merged into larger ones: on demand, or after a commit. Runs on the driver."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hudi_locks.config import Options, compaction_keys
from hudi_locks.services import LogCompaction
from hudi_locks.spark.following_service import FollowingService
from hudi_locks.spark.log_compaction import LogCompactionJob
from hudi_locks.spark.progress import show_progress
from hudi_locks.spark.result import WriteResult
from hudi_locks.spark.writing import Writer
from hudi_locks.transaction import Outcome

__all__ = ["LogCompactionService"]


class LogCompactionService(FollowingService):
    """Log compaction of one table. Thread-safe.

    Args:
        spark: Session of the jobs.
        writer: Of the table; its transactions are used.
        options: Hudi's keys.
    """

    name = "log compaction"

    def __init__(self, spark: SparkSession, writer: Writer, options: Options) -> None:
        threshold = options.get_value(compaction_keys.LOG_BLOCKS_THRESHOLD)
        settings = writer.settings
        self._merging = LogCompaction(writer.table, writer.transactions, threshold)
        self._job = LogCompactionJob(spark, self._merging, settings.codec, writer.clock, settings.log_format)
        is_inline = writer.table.is_merge_on_read and options.get_value(compaction_keys.LOG_INLINE)
        super().__init__(inline_commits=threshold * is_inline, async_commits=0)

    def schedule(self) -> str | None:
        """See `HoodieTable.schedule_log_compaction`."""
        return self._merging.schedule()

    def run(self, instant: str | None = None) -> WriteResult | None:
        """See `HoodieTable.run_log_compaction`."""
        with show_progress(f"log compaction of {self._job.table.storage.base}") as report:
            return self._job.run(instant, report)

    def compact(self) -> WriteResult | None:
        """See `HoodieTable.compact_logs`."""
        with show_progress(f"log compaction of {self._job.table.storage.base}") as report:
            return self._job.compact(report)

    def abort(self, instant: str) -> Outcome:
        """See `HoodieTable.abort_log_compaction`."""
        return self._merging.abort(instant)

    def _run_if_due(self, commits: int) -> WriteResult | None:
        is_due = self._merging.count_commits(self._merging.table.timeline()) >= commits
        return self.compact() if is_due else self.run()
