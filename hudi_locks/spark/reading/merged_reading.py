"""File slices with logs as a DataFrame: executors merge them, several in a task, or a share of a large one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hudi_locks.spark.column_types import to_spark
from hudi_locks.spark.worker_tasks import run_in_workers
from hudi_locks.spark.writing.sizing import Pack, SlicePart
from hudi_locks.storage import Storage
from hudi_locks.table import MergeRule, PartitionValues, read_slice

__all__ = ["MergeTask", "read_slices"]

_BATCH_ROWS: Final = 1 << 16
_PIECE_ROWS: Final = 1 << 17
"""The JVM turns the rows of one piece into its own while the next is merged."""


@dataclass(frozen=True)
class MergeTask:
    """Reads the packs of slices whose numbers it is given. Picklable; made on the driver, called on executors.

    Attributes:
        storage: Of the table.
        packs: All slices of the read, by the task that reads them.
        schema: Of the rows that are read, with the columns that decide between them.
        rule: Which of two rows with one key wins.
        shown: The columns that are given, in their order: Spark would drop others only after it copied them.
        values: What partition paths tell of the rows.
    """

    storage: Storage
    packs: tuple[Pack, ...]
    schema: pa.Schema
    rule: MergeRule
    shown: tuple[str, ...]
    values: PartitionValues

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the packs numbered in the first column."""
        for batch in batches:
            for one in (one for number in batch.column(0).to_pylist() for one in self.packs[number]):
                for rows in self._read(one):
                    yield from rows.select(self.shown).to_batches(max_chunksize=_BATCH_ROWS)

    def _read(self, one: SlicePart) -> Iterator[pa.Table]:
        storage, piece = self.storage, one.slice
        found = read_slice(storage, piece, self.schema, rule=self.rule, piece_rows=_PIECE_ROWS, part=one.part)
        return (self.values.apply(rows, piece.partition) for rows in found)


def read_slices(spark: SparkSession, task: MergeTask) -> DataFrame:
    """The merged rows of the task's slices, each pack in a Spark task of its own. Reads when the DataFrame is used."""
    numbers = spark.range(0, len(task.packs), 1, max(1, len(task.packs)))
    columns = to_spark(pa.schema(map(task.schema.field, task.shown)))
    return run_in_workers(numbers, task, columns)
