"""Running a clustering plan as one Spark job. Runs on the driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from functools import reduce

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.format import ClusteringGroup, ClusteringPlan, CommitMetadata, WriteStat, avro_schema
from hudi_locks.spark.cluster_task import ClusterTask
from hudi_locks.spark.column_types import to_spark
from hudi_locks.spark.file_index import read_files
from hudi_locks.spark.group_writer import STAT, decode_stat
from hudi_locks.spark.placement import GROUP
from hudi_locks.spark.planned_job import PlannedJob
from hudi_locks.spark.rows import column_named
from hudi_locks.spark.worker_tasks import run_in_workers
from hudi_locks.table import RECORD_KEY, Table, add_meta_schema
from hudi_locks.transaction import Transaction

__all__ = ["ClusteringJob"]


class ClusteringJob(PlannedJob[ClusteringPlan]):
    """Clusters one table."""

    doing = "clustering"

    def _write(self, transaction: Transaction, plan: ClusteringPlan) -> CommitMetadata:
        table = self.table
        schema = table.schema(table.timeline()) or pa.schema([])
        stats = self._run_job(self._make_task(transaction, schema), plan, schema)
        replaced: dict[str, tuple[str, ...]] = {}
        for partition, file_id in sorted(plan.file_groups):
            replaced[partition] = (*replaced.get(partition, ()), file_id)
        recorded = avro_schema(schema, table.config.name)
        return CommitMetadata.of(stats, transaction.operation, schema=recorded, replaced_file_ids=replaced)

    def _run_job(self, task: ClusterTask, plan: ClusteringPlan, schema: pa.Schema) -> list[WriteStat]:
        parts = [self._arrange(group, number, plan, schema) for number, group in enumerate(plan.groups)]
        if not parts:
            return []

        def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            """Record batches to one batch of stats."""
            return task(batches, TaskContext.get().partitionId())

        reported = run_in_workers(reduce(DataFrame.unionByName, parts), write, f"{STAT} string").collect()
        return [decode_stat(row[STAT]) for row in reported]

    def _arrange(self, group: ClusteringGroup, number: int, plan: ClusteringPlan, schema: pa.Schema) -> DataFrame:
        """The rows of a group in as many parts as it is to have files, each in order."""
        rows = self._read(self.table, group, schema).withColumn(GROUP, F.lit(number))
        order = [column_named(name) for name in plan.sort_columns]
        if group.output_groups == 1:
            spread = rows.coalesce(1)
        elif order:
            spread = rows.repartitionByRange(group.output_groups, *order)
        else:
            spread = rows.repartition(group.output_groups, F.xxhash64(RECORD_KEY))
        return spread.sortWithinPartitions(*order) if order else spread

    def _read(self, table: Table, group: ClusteringGroup, schema: pa.Schema) -> DataFrame:
        columns = to_spark(add_meta_schema(schema))
        paths = [table.storage.native(piece.relative_path) for piece in group.slices]
        return read_files(self.spark, paths, columns)

    def _make_task(self, transaction: Transaction, schema: pa.Schema) -> ClusterTask:
        avro = avro_schema(schema, self.table.config.name, with_meta_columns=True)
        seed = uuid.uuid5(uuid.NAMESPACE_OID, transaction.instant)
        return ClusterTask(transaction.files, add_meta_schema(schema), self.settings.base_file_format(avro), seed)
