"""Running a clustering plan as one Spark job. Runs on the driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.format import ClusteringGroup, ClusteringPlan, CommitMetadata, WriteStat, avro_schema
from hudi_locks.spark.cluster_task import ClusterTask
from hudi_locks.spark.column_types import to_spark
from hudi_locks.spark.file_index import read_files
from hudi_locks.spark.files import read_as_stored
from hudi_locks.spark.group_writer import STAT, decode_stat
from hudi_locks.spark.placement import GROUP
from hudi_locks.spark.planned_job import PlannedJob
from hudi_locks.spark.rows import column_named
from hudi_locks.spark.worker_tasks import run_in_workers
from hudi_locks.table import RECORD_KEY, BaseFile, add_meta_schema
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Transaction

__all__ = ["ClusteringJob"]


class ClusteringJob(PlannedJob[ClusteringPlan]):
    """Clusters one table."""

    doing = "clustering"

    def _write(self, transaction: Transaction, plan: ClusteringPlan) -> CommitMetadata:
        table, timeline = self.table, self.table.timeline()
        schema = table.schema(timeline) or pa.schema([])
        parts = [
            self._arrange(group, number, plan, self._read(timeline, group, schema))
            for number, group in enumerate(plan.groups)
        ]
        stats = self._run_job(self._make_task(transaction, schema), parts)
        replaced: dict[str, tuple[str, ...]] = {}
        for partition, file_id in sorted(plan.file_groups):
            replaced[partition] = (*replaced.get(partition, ()), file_id)
        recorded = avro_schema(schema, table.config.name)
        return CommitMetadata.of(stats, transaction.operation, schema=recorded, replaced_file_ids=replaced)

    def _run_job(self, task: ClusterTask, parts: Sequence[DataFrame]) -> list[WriteStat]:
        if not parts:
            return []

        def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            """Record batches to one batch of stats."""
            return task(batches, TaskContext.get().partitionId())

        reported = run_in_workers(reduce(DataFrame.unionByName, parts), write, f"{STAT} string").collect()
        return [decode_stat(row[STAT]) for row in reported]

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

    def _read(self, timeline: Timeline, group: ClusteringGroup, schema: pa.Schema) -> DataFrame:
        storage = self.table.storage
        named = [BaseFile.parse(one.partition, one.relative_path.rpartition("/")[2], 0) for one in group.slices]

        def read(files: Sequence[BaseFile], columns: pa.Schema) -> DataFrame:
            """The values as they are: what a partition's path says of them is for readers."""
            return read_files(self.spark, [storage.address(file.path) for file in files], to_spark(columns))

        files = [file for file in named if file is not None]
        return read_as_stored(storage, timeline, files, add_meta_schema(schema), read=read)

    def _make_task(self, transaction: Transaction, schema: pa.Schema) -> ClusterTask:
        avro = avro_schema(schema, self.table.config.name, with_meta_columns=True)
        seed = uuid.uuid5(uuid.NAMESPACE_OID, transaction.instant)
        return ClusterTask(transaction.files, add_meta_schema(schema), self.settings.base_file_format(avro), seed)
