"""Compaction and log compaction of a merge-on-read table: how they are run, and when. Runs on the driver."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from hudi_locks.config import compaction_keys
from hudi_locks.format import CommitMetadata, CompactionPlan, WriteStat, avro_schema
from hudi_locks.markers import StagedFiles
from hudi_locks.services import TableWriter, choose_slices
from hudi_locks.spark.services.scheduled_service import Cadence, PlanJob, ScheduledService
from hudi_locks.spark.services.tasks import CompactTask, LogCompactTask
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.key_changes import KeyLogs
from hudi_locks.table import FileSlice, add_meta_schema
from hudi_locks.transaction import Transaction

__all__ = ["CompactionJob", "CompactionService", "LogCompactionJob", "LogCompactionService"]


class CompactionService(ScheduledService[CompactionPlan]):
    """Merging the logs of each file group into a new base file, while others write. Otherwise as `ScheduledService`.

    What completes before its plan is decided is part of it, what completes later is read on top.

    Args:
        spark: Session of the jobs.
        writer: Of the table.
        settings: How files are encoded.
    """

    def __init__(self, spark: SparkSession, writer: TableWriter, settings: PipelineSettings) -> None:
        options = writer.options
        commits = options.get_value(compaction_keys.INLINE_MAX_DELTA_COMMITS) if writer.table.is_merge_on_read else 0
        is_only_scheduled = options.get_value(compaction_keys.SCHEDULE_INLINE)
        is_inline = is_only_scheduled or options.get_value(compaction_keys.INLINE)
        is_beside = options.get_value(compaction_keys.ASYNC_ENABLE)
        cadence = Cadence(commits * is_inline, commits * is_beside, is_only_scheduled=is_only_scheduled)
        job = CompactionJob(spark, writer.table, settings)
        super().__init__(writer.compaction, job, writer.clock, cadence=cadence)


class LogCompactionService(ScheduledService[CompactionPlan]):
    """Merging the logs of each file slice that has many into one log. Otherwise as `ScheduledService`.

    The base file stays. It costs less than a compaction, and spares readers the work of merging the same logs again and
    again. Enough are `hoodie.log.compaction.blocks.threshold` logs that no log compaction has merged. Nothing is done
    while a write is under way: readers apply logs in the order in which their writes began, so that no write may be
    left that began before and completes after it. Tables whose rows fill columns of the rows below are refused.

    Args:
        spark: Session of the jobs.
        writer: Of the table.
        settings: How files are encoded.
    """

    def __init__(self, spark: SparkSession, writer: TableWriter, settings: PipelineSettings) -> None:
        planning = writer.log_compaction
        is_inline = writer.table.is_merge_on_read and writer.options.get_value(compaction_keys.LOG_INLINE)
        job = LogCompactionJob(spark, writer.table, settings)
        super().__init__(planning, job, writer.clock, cadence=Cadence(planning.threshold * is_inline))


class CompactionJob(PlanJob[CompactionPlan]):
    """Compacts one table."""

    name = "compaction"
    doing = "compacting"

    def write(self, transaction: Transaction, plan: CompactionPlan, logs: KeyLogs | None = None) -> CommitMetadata:
        """See `PlanJob.write`: one file for each slice, whose keys stay where they are."""
        del logs
        table, snapshot = self.table, Snapshot.load(self.table)
        schema = snapshot.schema or pa.schema([])
        told = snapshot.tell_columns(schema, instant=transaction.instant)
        avro = avro_schema(schema, table.config.name, with_meta_columns=True)
        slices = choose_slices(table, plan, transaction.instant)
        made = self._make_task(transaction.files, add_meta_schema(schema), avro, slices)
        task = replace(made, rule=replace(made.rule, history=snapshot.history))
        recorded = avro_schema(schema, table.config.name) if schema.names else None
        return CommitMetadata.of(
            self._run_job(task), transaction.operation, schema=recorded, extra=told, compacted=True
        )

    def _make_task(
        self, files: StagedFiles, schema: pa.Schema, avro: str, slices: tuple[FileSlice, ...]
    ) -> CompactTask | LogCompactTask:
        config = self.table.config
        return CompactTask(files, schema, self.settings.base_file_format(avro, config), config.merge_rule, slices)

    def _run_job(self, task: CompactTask | LogCompactTask) -> list[WriteStat]:
        count = len(task.slices)
        numbers = self.spark.range(0, count, 1, max(1, count))
        return self._collect_stats(numbers, task)


class LogCompactionJob(CompactionJob):
    """Merges the logs of one table."""

    name = "log compaction"
    doing = "merging the logs of"

    def _make_task(
        self, files: StagedFiles, schema: pa.Schema, avro: str, slices: tuple[FileSlice, ...]
    ) -> LogCompactTask:
        config = self.table.config
        return LogCompactTask(files, schema, self.settings.log_format(schema, avro, config), config.merge_rule, slices)
