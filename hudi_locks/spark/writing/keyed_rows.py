"""Rows with their keys: how they are kept for every attempt, and how those of a file group are brought together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from hudi_locks.spark._compat import is_on, reread_shuffled
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import KeyColumns
from hudi_locks.table import PARTITION_PATH, RECORD_KEY

__all__ = ["KeyedRows", "keep_persisted", "keep_shuffled", "merge_tasks", "spread_rows", "spread_unkeyed"]


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


def spread_rows(rows: DataFrame, columns: KeyColumns | None, *, tasks: int) -> DataFrame:
    """Bring the rows of a file group together, with their keys."""
    spread = spread_unkeyed(rows, columns, tasks=tasks)
    return spread if columns is None else columns.add_to(spread)


def spread_unkeyed(rows: DataFrame, columns: KeyColumns | None, *, tasks: int) -> DataFrame:
    """Without key and path where they can be made again, which is cheaper than to carry them along."""
    if columns is None:
        return rows.repartition(tasks, PARTITION_PATH, GROUP)
    return rows.drop(RECORD_KEY, PARTITION_PATH).repartition(tasks, columns.path, GROUP)


def merge_tasks(shuffled: DataFrame) -> DataFrame:
    """The same rows in one task for each core: of a few rows a task takes longer than all of them."""
    return shuffled.coalesce(shuffled.sparkSession.sparkContext.defaultParallelism)


@contextmanager
def keep_persisted(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, computed once for the length of the block."""
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def keep_shuffled(shuffled: DataFrame) -> Iterator[DataFrame]:
    """Rows whose last step is a shuffle, computed once for the length of the block: that shuffle is their memory."""
    again = reread_shuffled(shuffled) if is_on(shuffled.sparkSession, "shuffle") else None
    if again is not None:
        yield again
        return
    with keep_persisted(shuffled) as kept:
        yield kept
