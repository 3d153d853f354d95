"""File slices with logs as a DataFrame: executors merge them, a slice at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.storage import Storage
from hudi_locks.table import FileSlice, MergeRule, read_slice

__all__ = ["MergeTask", "read_slices"]

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class MergeTask:
    """Reads the slices whose numbers it is given. Picklable; made on the driver, called on executors.

    Attributes:
        storage: Of the table.
        slices: All slices of the read.
        schema: Of the rows, meta columns included.
        rule: Which of two rows with one key wins.
    """

    storage: Storage
    slices: tuple[FileSlice, ...]
    schema: pa.Schema
    rule: MergeRule

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the slices numbered in the first column."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in read_slice(self.storage, self.slices[number], self.schema, rule=self.rule):
                    yield from rows.to_batches(max_chunksize=_BATCH_ROWS)


def read_slices(spark: SparkSession, task: MergeTask, columns: T.StructType) -> DataFrame:
    """The merged rows of the task's slices, each in a Spark task of its own. Reads when the DataFrame is used."""
    numbers = spark.range(0, len(task.slices), 1, max(1, len(task.slices)))
    return numbers.mapInArrow(lambda batches: task(batches), columns)
