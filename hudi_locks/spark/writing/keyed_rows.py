"""The input of a write: rows with keys, kept for every attempt; or partitions by name.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from hudi_locks.config import Options, datasource_keys
from hudi_locks.errors import BadInput
from hudi_locks.spark._compat import is_on, reread_shuffled
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import (
    KeyColumns,
    partition_path,
)
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, Table, list_partitions

__all__ = [
    "KeyedRows",
    "check_partitions",
    "choose_deleted_partitions",
    "keep_persisted",
    "keep_shuffled",
    "merge_tasks",
    "spread_rows",
    "spread_unkeyed",
]

_SHOWN = 5


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


def choose_deleted_partitions(table: Table, options: Options, rows: DataFrame) -> list[str]:
    """What `delete_partition` of a datasource job deletes: as its option says, else the partitions of the rows.

    Raises:
        BadInput: A partition column is missing.
    """
    given = options.find(datasource_keys.PARTITIONS_TO_DELETE)
    if given is not None:
        return [path.strip() for path in given.split(",") if path.strip()]
    config = table.config
    form = {"hive_style": config.hive_style, "url_encode": config.url_encode}
    path = partition_path(rows.schema, config.partition_fields, **form)
    return [row[0] for row in rows.select(path.alias(PARTITION_PATH)).distinct().collect()]


def check_partitions(table: Table, partitions: Iterable[str]) -> list[str]:
    """The partitions, each once, if the table has every one of them.

    Raises:
        BadInput: The table is not partitioned, nothing is named, or a path is none of its partitions.
    """
    base = table.storage.base
    if not table.config.partition_fields:
        message = f"the table at {base} is not partitioned: delete its rows, or empty it by insert_overwrite_table"
        raise BadInput(message, path=base)
    named = sorted(set(partitions))
    if not named:
        raise BadInput(f"no partition of the table at {base} is named; name those to delete", path=base)
    present = list_partitions(table.storage)
    unknown = [path for path in named if path not in present]
    if unknown:
        raise BadInput(_describe_unknown(unknown, present), unknown=unknown, path=base)
    return named


def _describe_unknown(unknown: list[str], present: tuple[str, ...]) -> str:
    shown = ", ".join(present[:_SHOWN]) + (", …" if len(present) > _SHOWN else "")
    advice = "name each one, patterns are not read" if any("*" in path for path in unknown) else "look at the spelling"
    return f"{', '.join(map(repr, unknown))} is no partition of the table, which has {shown or 'none'}; {advice}"
