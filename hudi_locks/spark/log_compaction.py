"""Running a log compaction plan as one Spark job. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from hudi_locks.markers import FinalFiles
from hudi_locks.spark.compaction import CompactionJob
from hudi_locks.spark.log_compact_task import LogCompactTask
from hudi_locks.table import FileSlice, LogFormat

__all__ = ["LogCompactionJob"]


@dataclass(frozen=True)
class LogCompactionJob(CompactionJob):
    """Merges the logs of one table.

    Attributes:
        make_format: How logs are encoded whose rows have an Avro schema.
    """

    make_format: Callable[[str], LogFormat]

    doing = "merging the logs of"

    def _make_task(
        self, files: FinalFiles, schema: pa.Schema, avro: str, slices: tuple[FileSlice, ...]
    ) -> LogCompactTask:
        return LogCompactTask(files, schema, self.make_format(avro), self.table.config.merge_rule, slices)
