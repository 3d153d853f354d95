"""Running a log compaction plan as one Spark job. Runs on the driver."""

from __future__ import annotations

import pyarrow as pa

from hudi_locks.markers import FinalFiles
from hudi_locks.spark.compaction import CompactionJob
from hudi_locks.spark.log_compact_task import LogCompactTask
from hudi_locks.table import FileSlice

__all__ = ["LogCompactionJob"]


class LogCompactionJob(CompactionJob):
    """Merges the logs of one table."""

    doing = "merging the logs of"

    def _make_task(
        self, files: FinalFiles, schema: pa.Schema, avro: str, slices: tuple[FileSlice, ...]
    ) -> LogCompactTask:
        form = self.settings.log_format(avro)
        return LogCompactTask(files, schema, form, self.table.config.merge_rule, slices)
