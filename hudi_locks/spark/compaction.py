"""Running a compaction plan as one Spark job. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from hudi_locks.clock import Clock
from hudi_locks.format import CommitMetadata, CompactionPlan, WriteStat, avro_schema
from hudi_locks.services import Compaction, planned_slice
from hudi_locks.spark.cancelling import cancelled_when_vain
from hudi_locks.spark.compact_task import CompactTask
from hudi_locks.spark.failures import typed_task_errors
from hudi_locks.spark.group_writer import STAT, decode_stat
from hudi_locks.spark.result import Attempt, WriteResult
from hudi_locks.table import BaseFileFormat, add_meta_schema
from hudi_locks.transaction import Transaction

__all__ = ["CompactionJob"]

Report = Callable[[str], None]


@dataclass(frozen=True)
class CompactionJob:
    """Compacts one table.

    Attributes:
        spark: Session of the job.
        compaction: Plans and publishes.
        codec: Compression of base files.
        clock: Its source of time.
    """

    spark: SparkSession
    compaction: Compaction
    codec: str
    clock: Clock

    def compact(self, report: Report) -> WriteResult | None:
        """Run the plan that waits, or make one and run it; None if there is nothing to compact. Raises as `run`."""
        done = self.run(None, report)
        if done is not None:
            return done
        scheduled = self.compaction.schedule()
        return None if scheduled is None else self.run(scheduled, report)

    def run(self, instant: str | None, report: Report) -> WriteResult | None:
        """Run a plan that waits; None if none waits.

        Raises:
            WriteConflict: A write replaced one of the file groups first; the plan is taken back.
            WriteAborted: `instant` cannot be run, or was rolled back meanwhile.
            OutcomeUnknown: The store did not say.
        """
        taken = self.compaction.take(instant)
        return None if taken is None else self._run(*taken, report)

    def _run(self, transaction: Transaction, plan: CompactionPlan, report: Report) -> WriteResult:
        began_ms = self.clock.wall_ms()
        with transaction, cancelled_when_vain(transaction, self.spark), typed_task_errors():
            report(f"compacting {len(plan.groups)} file groups")
            metadata = self._write(transaction, plan)
            report("publishing")
            published = transaction.publish(metadata)
        attempt = Attempt(
            transaction.instant, began_ms, self.clock.wall_ms(), published.outcome, conflict=published.conflict
        )
        return WriteResult.of(published.raise_unless_committed(), metadata, attempts=[attempt])

    def _write(self, transaction: Transaction, plan: CompactionPlan) -> CommitMetadata:
        table = self.compaction.table
        schema = table.schema(table.timeline()) or pa.schema([])
        task = CompactTask(
            transaction.files,
            add_meta_schema(schema),
            BaseFileFormat(avro_schema(schema, table.config.name, with_meta_columns=True), self.codec),
            table.config.merge_rule,
            tuple(map(planned_slice, plan.groups)),
        )
        recorded = avro_schema(schema, table.config.name) if schema.names else None
        return CommitMetadata.of(self._run_job(task), transaction.operation, schema=recorded, compacted=True)

    def _run_job(self, task: CompactTask) -> list[WriteStat]:
        count = len(task.slices)
        numbers = self.spark.range(0, count, 1, max(1, count))
        reported = numbers.mapInArrow(lambda batches: task(batches), f"{STAT} string").collect()
        return [decode_stat(row[STAT]) for row in reported]
