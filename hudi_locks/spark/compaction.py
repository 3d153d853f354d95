"""Running a compaction plan as one Spark job. Runs on the driver."""

from __future__ import annotations

import pyarrow as pa

from hudi_locks.format import CommitMetadata, CompactionPlan, WriteStat, avro_schema
from hudi_locks.markers import FinalFiles
from hudi_locks.services import planned_slice
from hudi_locks.spark.compact_task import CompactTask
from hudi_locks.spark.group_writer import STAT, decode_stat
from hudi_locks.spark.log_compact_task import LogCompactTask
from hudi_locks.spark.planned_job import PlannedJob, Report
from hudi_locks.spark.result import WriteResult
from hudi_locks.spark.worker_tasks import run_in_workers
from hudi_locks.table import FileSlice, add_meta_schema
from hudi_locks.transaction import Transaction

__all__ = ["CompactionJob"]


class CompactionJob(PlannedJob[CompactionPlan]):
    """Compacts one table."""

    doing = "compacting"

    def compact(self, report: Report) -> WriteResult | None:
        """Run the plan that waits, or make one and run it; None if there is nothing to compact. Raises as `run`."""
        done = self.run(None, report)
        if done is not None:
            return done
        scheduled = self.service.schedule()
        return None if scheduled is None else self.run(scheduled, report)

    def _write(self, transaction: Transaction, plan: CompactionPlan) -> CommitMetadata:
        table = self.table
        schema = table.schema(table.timeline()) or pa.schema([])
        avro = avro_schema(schema, table.config.name, with_meta_columns=True)
        slices = tuple(map(planned_slice, plan.groups))
        task = self._make_task(transaction.files, add_meta_schema(schema), avro, slices)
        recorded = avro_schema(schema, table.config.name) if schema.names else None
        return CommitMetadata.of(self._run_job(task), transaction.operation, schema=recorded, compacted=True)

    def _make_task(
        self, files: FinalFiles, schema: pa.Schema, avro: str, slices: tuple[FileSlice, ...]
    ) -> CompactTask | LogCompactTask:
        return CompactTask(files, schema, self.settings.base_file_format(avro), self.table.config.merge_rule, slices)

    def _run_job(self, task: CompactTask | LogCompactTask) -> list[WriteStat]:
        count = len(task.slices)
        numbers = self.spark.range(0, count, 1, max(1, count))
        reported = run_in_workers(numbers, task, f"{STAT} string").collect()
        return [decode_stat(row[STAT]) for row in reported]
