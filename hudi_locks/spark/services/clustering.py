"""Clustering of a table: how it is run, and when. Runs on the driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.errors import WriteAborted
from hudi_locks.format import ClusteringGroup, ClusteringPlan, CommitMetadata, WriteStat, avro_schema
from hudi_locks.format.ring_change import RingChange
from hudi_locks.services import TableWriter, find_planned_slices
from hudi_locks.spark.operation import WriteResult
from hudi_locks.spark.reading.files import read_as_stored, read_files, read_stored
from hudi_locks.spark.services.resizing import change_ring, spread_by_ring
from hudi_locks.spark.services.scheduled_service import Cadence, PlanJob, ScheduledService
from hudi_locks.spark.services.tasks import ClusterTask
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.key_changes import KeyLogs
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import column_named, to_spark, widen
from hudi_locks.storage import map_in_threads
from hudi_locks.table import (
    RECORD_KEY,
    BaseFile,
    FileSlice,
    add_meta_schema,
    describe_base_file,
    latest_file_slices,
    refuse_inexact,
)
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Transaction

__all__ = ["ClusteringJob", "ClusteringService"]


class ClusteringService(ScheduledService[ClusteringPlan]):
    """Joining the small files of each partition into large ones, sorted. Otherwise as `ScheduledService`.

    Of a table with consistent hashing it splits buckets that are too large, and merges small ones.

    Of a merge-on-read table what logs say is in the new base files, and the logs end with their file groups.
    From the moment that a plan is on the timeline, a write that changes one of its file groups meets a conflict, until
    the plan was run or taken back. Readers see the same rows, and `incremental` none again.

    Args:
        spark: Session of the jobs.
        writer: Of the table.
        settings: How files are encoded.
    """

    def __init__(self, spark: SparkSession, writer: TableWriter, settings: PipelineSettings) -> None:
        self._writer = writer
        clustering = writer.clustering()
        job = ClusteringJob(spark, writer.table, settings)
        cadence = Cadence(clustering.settings.inline_commits, clustering.settings.async_commits)
        super().__init__(clustering, job, writer.clock, cadence=cadence)

    def run(self, *, sort_by: Sequence[str] | None = None) -> WriteResult | None:
        """Run the plan that waits, with its own columns, or make one and run it.

        Args:
            sort_by: Columns to sort by, in place of `hoodie.clustering.plan.strategy.sort.columns`.

        Returns:
            What was done; None if there is nothing to cluster.

        Raises:
            BadInput: There is no such column.
            UnsupportedTable: The table has a bucket index, and not with consistent hashing.
            WriteAborted: It was rolled back meanwhile, or wrote another number of rows than the files have that it was
                to replace; then nothing is replaced.
            WriteConflict: A write changed one of the file groups first; the plan is taken back.
            OutcomeUnknown: The store did not say; `HoodieTable.resolve` finds out.
        """
        return self._run_or_plan(lambda: self.schedule(sort_by=sort_by))

    def schedule(self, *, sort_by: Sequence[str] | None = None) -> str | None:
        """Put a plan on the timeline, to be run here or elsewhere; its instant, or None if there is nothing to do.

        For arguments and errors see `run`.
        """
        return self._writer.clustering(sort_by=sort_by).schedule()


class ClusteringJob(PlanJob[ClusteringPlan]):
    """Clusters one table."""

    name = "clustering"
    doing = "clustering"

    def write(self, transaction: Transaction, plan: ClusteringPlan, logs: KeyLogs | None = None) -> CommitMetadata:
        """See `PlanJob.write`."""
        table, snapshot = self.table, Snapshot.load(self.table)
        schema = snapshot.schema or pa.schema([])
        told = snapshot.tell_columns(schema, instant=transaction.instant)
        current = self._find_current(snapshot.timeline, plan)
        read = [find_planned_slices(group, current) for group in plan.groups]
        parts = [
            self._arrange(group, number, plan, self._read(snapshot, slices, schema))
            if group.ring_change is None
            else self._resize(transaction, snapshot, group.ring_change, plan, self._read(snapshot, slices, schema))
            for number, (group, slices) in enumerate(zip(plan.groups, read, strict=True))
        ]
        stats = self._run_job(self._make_task(transaction, schema), parts, logs)
        expected = self._count([piece for slices in read for piece in slices], snapshot, schema)
        self._refuse_other_count(transaction, plan, sum(stat.num_writes for stat in stats), expected=expected)
        replaced: dict[str, tuple[str, ...]] = {}
        for partition, file_id in sorted(plan.file_groups):
            replaced[partition] = (*replaced.get(partition, ()), file_id)
        recorded = avro_schema(schema, table.config.name)
        return CommitMetadata.of(stats, transaction.operation, schema=recorded, extra=told, replaced_file_ids=replaced)

    def _run_job(self, task: ClusterTask, parts: Sequence[DataFrame], logs: KeyLogs | None) -> list[WriteStat]:
        if not parts:
            return []

        def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            """Record batches to one batch of stats."""
            return task(batches, TaskContext.get().partitionId())

        return self._collect_stats(reduce(DataFrame.unionByName, parts), write, logs)

    def _arrange(self, group: ClusteringGroup, number: int, plan: ClusteringPlan, found: DataFrame) -> DataFrame:
        """The rows of a group in as many parts as it is to have files, each in order."""
        rows = found.withColumn(GROUP, F.lit(number))
        order = [column_named(name) for name in plan.sort_columns]
        if group.output_groups == 1:
            spread = rows.coalesce(1)
        elif order:
            spread = rows.repartitionByRange(group.output_groups, *order)
        else:
            spread = rows.repartition(group.output_groups, F.xxhash64(RECORD_KEY))
        return spread.sortWithinPartitions(*order) if order else spread

    def _resize(
        self, transaction: Transaction, snapshot: Snapshot, change: RingChange, plan: ClusteringPlan, found: DataFrame
    ) -> DataFrame:
        ring = change_ring(snapshot, change, instant=transaction.instant)
        return spread_by_ring(found, ring, change, hash_fields=self.settings.hash_fields, order=plan.sort_columns)

    def _find_current(self, timeline: Timeline, plan: ClusteringPlan) -> dict[tuple[str, str], FileSlice]:
        if not plan.has_logs:
            return {}
        partitions = {partition for partition, _ in plan.file_groups}
        slices = latest_file_slices(self.table.storage, timeline, partitions=partitions)
        return {(piece.partition, piece.file_id): piece for piece in slices}

    def _read(self, snapshot: Snapshot, slices: Sequence[FileSlice], schema: pa.Schema) -> DataFrame:
        timeline, history = snapshot.timeline, snapshot.history
        storage, files = self.table.storage, [piece.base for piece in slices if piece.base is not None]
        logs = [log for piece in slices for log in piece.logs]
        is_plain = all(piece.is_plain for piece in slices) and self.table.config.virtual_keys is None
        if not (is_plain and storage.is_read_by_spark):
            columns = widen(add_meta_schema(schema))
            refuse_inexact(storage, timeline, (*files, *logs), columns, history=history)
            return self._merge(slices, snapshot, columns)

        def read(files: Sequence[BaseFile], columns: pa.Schema) -> DataFrame:
            """The values as they are: what a partition's path says of them is for readers."""
            return read_files(self.spark, [storage.address(file.path) for file in files], to_spark(columns))

        return read_as_stored(storage, timeline, files, add_meta_schema(schema), read=read, history=history)

    def _merge(self, slices: Sequence[FileSlice], snapshot: Snapshot, columns: pa.Schema) -> DataFrame:
        rule = replace(self.table.config.merge_rule, history=snapshot.history)
        return read_stored(self.spark, self.table.storage, slices, columns, rule=rule)

    def _count(self, slices: Sequence[FileSlice], snapshot: Snapshot, schema: pa.Schema) -> int:
        """The rows that slices show: by the footers of base files, and where there are logs by merging the keys."""
        storage, rule = self.table.storage, self.table.config.merge_rule
        plain = [piece.base.path for piece in slices if piece.base is not None and not piece.logs]
        counted = sum(map_in_threads(lambda path: describe_base_file(storage, path)[0], plain))
        logged = [piece for piece in slices if piece.logs]
        if not logged:
            return counted
        keys = pa.schema([field for field in add_meta_schema(schema) if field.name in (RECORD_KEY, *rule.deciding)])
        return counted + int(self._merge(logged, snapshot, widen(keys)).count())

    def _refuse_other_count(
        self, transaction: Transaction, plan: ClusteringPlan, written: int, *, expected: int
    ) -> None:
        """Readers go by the new files alone: a row that the job missed would be gone without a trace.

        Raises:
            WriteAborted: So many rows are not those of the files that would be replaced.
        """
        path = self.table.storage.base
        if written == expected:
            return
        files = sum(len(piece.relative_paths) for group in plan.groups for piece in group.slices)
        message = (
            f"clustering {transaction.instant} of {path} wrote {written} rows, and the {files} files that it was"
            f" to replace have {expected}: nothing is replaced, and the table is as before. Look for damaged files with"
            " `hudi-locks verify`; if there are none, report it with the plan and the versions of Spark and hudi-locks"
        )
        facts = {"rows_written": written, "rows_expected": expected, "path": path}
        raise WriteAborted(message, instant=transaction.instant, **facts)

    def _make_task(self, transaction: Transaction, schema: pa.Schema) -> ClusterTask:
        avro = avro_schema(schema, self.table.config.name, with_meta_columns=True)
        seed = uuid.uuid5(uuid.NAMESPACE_OID, transaction.instant)
        form = self.settings.base_file_format(avro, self.table.config)
        return ClusterTask(transaction.files, add_meta_schema(schema), form, seed)
