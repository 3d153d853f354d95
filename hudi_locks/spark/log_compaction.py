"""Running a log compaction plan as one Spark job. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from hudi_locks.format import CommitMetadata, CompactionPlan, avro_schema
from hudi_locks.services import planned_slice
from hudi_locks.spark.compaction import CompactionJob
from hudi_locks.spark.log_compact_task import LogCompactTask
from hudi_locks.table import LogFormat, add_meta_schema
from hudi_locks.transaction import Transaction

__all__ = ["LogCompactionJob"]


@dataclass(frozen=True)
class LogCompactionJob(CompactionJob):
    """Merges the logs of one table.

    Attributes:
        make_format: How logs are encoded whose rows have an Avro schema.
    """

    make_format: Callable[[str], LogFormat]

    doing = "merging the logs of"

    def _write(self, transaction: Transaction, plan: CompactionPlan) -> CommitMetadata:
        table = self.table
        schema = table.schema(table.timeline()) or pa.schema([])
        task = LogCompactTask(
            transaction.files,
            add_meta_schema(schema),
            self.make_format(avro_schema(schema, table.config.name, with_meta_columns=True)),
            table.config.merge_rule,
            tuple(map(planned_slice, plan.groups)),
        )
        recorded = avro_schema(schema, table.config.name) if schema.names else None
        return CommitMetadata.of(self._run_job(task), transaction.operation, schema=recorded, compacted=True)
