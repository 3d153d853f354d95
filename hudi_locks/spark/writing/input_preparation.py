"""The input of a write: keyed, kept for every attempt, and looked at before anything is written. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from hudi_locks.spark.failures import typed_task_errors
from hudi_locks.spark.index.bucket_index import BucketIndex
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import (
    KeyColumns,
    add_missing_columns,
    check_ordering,
    count_rows,
    make_key_columns,
    select_user_columns,
    user_schema,
)
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, Table

__all__ = ["Intake", "KeyedRows", "spread_rows"]


@dataclass(frozen=True)
class KeyedRows:
    """The input with keys.

    Attributes:
        frame: The rows; of a bucket index with their buckets, those of one file group in one task.
        schema: Of the user's columns.
        columns: How the keys are made, to make them again; None where the user's columns are left out.
        counts: How many rows each partition gets; empty before they were counted.
    """

    frame: DataFrame
    schema: pa.Schema
    columns: KeyColumns | None
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Intake:
    """Takes in what is to be written to one table.

    Attributes:
        table: The table.
        settings: How to write.
    """

    table: Table
    settings: PipelineSettings

    @contextmanager
    def take(self, operation: Operation, rows: DataFrame) -> Iterator[KeyedRows]:
        """Keyed rows that every attempt and every task computed again sees alike, for the length of the block.

        Raises:
            BadInput: The rows are refused.
        """
        keyed = self._key(operation, rows)
        bucket_index = self.settings.bucket_index()
        keep = self._keep_spread(keyed, bucket_index, operation) if bucket_index else _keep_persisted(keyed.frame)
        with keep as frame:
            with typed_task_errors():
                counts = count_rows(_merge_tasks(frame) if bucket_index else frame, self.table.config)
            yield replace(keyed, frame=frame, counts=counts)

    def _key(self, operation: Operation, rows: DataFrame) -> KeyedRows:
        snapshot = Snapshot.load(self.table)
        user = select_user_columns(rows)
        if self.settings.fills_columns and operation is not Operation.DELETE and snapshot.schema is not None:
            user = add_missing_columns(user, snapshot.schema)
        columns = make_key_columns(
            user, self.table.config, composite=snapshot.prefixes_keys(value_only=self.settings.bare_keys)
        )
        frame, schema = columns.add_to(user), user_schema(user)
        if operation is Operation.DELETE:
            return KeyedRows(frame.select(RECORD_KEY, PARTITION_PATH), schema, None)
        check_ordering(user, self.table.config)
        snapshot.merge_schema(schema)
        return KeyedRows(frame, schema, columns)

    @contextmanager
    def _keep_spread(self, keyed: KeyedRows, bucket_index: BucketIndex, operation: Operation) -> Iterator[DataFrame]:
        """Buckets follow from keys alone, so the one shuffle that a write needs is its memory too."""
        located = bucket_index.locate(keyed.frame)
        tasks = self.settings.count_tasks(located.sparkSession, bucket_index.buckets.most, operation=operation)
        with typed_task_errors(), _keep_shuffled(_spread(located, keyed.columns, tasks=tasks)) as kept:
            yield kept if keyed.columns is None else keyed.columns.add_to(kept)


def spread_rows(rows: DataFrame, columns: KeyColumns | None, *, tasks: int) -> DataFrame:
    """Bring the rows of a file group together, with their keys."""
    spread = _spread(rows, columns, tasks=tasks)
    return spread if columns is None else columns.add_to(spread)


def _spread(rows: DataFrame, columns: KeyColumns | None, *, tasks: int) -> DataFrame:
    """Without key and path where they can be made again, which is cheaper than to carry them along."""
    if columns is None:
        return rows.repartition(tasks, PARTITION_PATH, GROUP)
    return rows.drop(RECORD_KEY, PARTITION_PATH).repartition(tasks, columns.path, GROUP)


def _merge_tasks(shuffled: DataFrame) -> DataFrame:
    """The same rows in one task for each core: of a few rows a task takes longer than all of them."""
    return shuffled.coalesce(shuffled.sparkSession.sparkContext.defaultParallelism)


@contextmanager
def _keep_persisted(rows: DataFrame) -> Iterator[DataFrame]:
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def _keep_shuffled(shuffled: DataFrame) -> Iterator[DataFrame]:
    """Rows whose last step is a shuffle, read again from its files by every job.

    Spark plans a DataFrame anew for each job, and then shuffles anew; over one RDD it finds the files that are there.
    Where Spark's session lacks the way from an RDD to a DataFrame, which is not public, the rows are persisted.
    """
    plan = shuffled._jdf  # noqa: SLF001  # PySpark has no public way to its plan
    rdd = plan.queryExecution().toRdd()
    try:
        again = _session(shuffled).internalCreateDataFrame(rdd, plan.schema(), False)
    except Py4JError:
        with _keep_persisted(shuffled) as kept:
            yield kept
        return
    yield DataFrame(again, shuffled.sparkSession)


def _session(rows: DataFrame) -> Any:
    return rows.sparkSession._jsparkSession  # noqa: SLF001  # as above
