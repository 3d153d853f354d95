"""When logs of a table are merged into larger ones: on demand, or after a commit. Runs on the driver."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hudi_locks.config import Options, compaction_keys
from hudi_locks.services import LogCompaction
from hudi_locks.spark.compacting_service import CompactingService
from hudi_locks.spark.log_compaction import LogCompactionJob
from hudi_locks.spark.writing import Writer

__all__ = ["LogCompactionService"]


class LogCompactionService(CompactingService):
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
        planning = LogCompaction(writer.table, writer.transactions, threshold)
        job = LogCompactionJob(spark, planning, settings, writer.clock)
        is_inline = writer.table.is_merge_on_read and options.get_value(compaction_keys.LOG_INLINE)
        super().__init__(planning, job, inline_commits=threshold * is_inline, async_commits=0)
