"""The input of a write: keyed, kept for every attempt, and looked at before anything is written; or partitions by name.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from hudi_locks.config import Options, datasource_keys
from hudi_locks.errors import BadInput
from hudi_locks.spark._compat import is_on, reread_shuffled
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.session import typed_task_errors
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import (
    KeyColumns,
    add_missing_columns,
    check_ordering,
    count_rows,
    make_key_columns,
    partition_path,
    select_user_columns,
    user_schema,
)
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, Table, list_partitions

if TYPE_CHECKING:
    from hudi_locks.spark.index.index import Index  # which keeps rows by what is here

__all__ = [
    "InputPreparer",
    "KeyedRows",
    "check_partitions",
    "choose_partitions",
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


@dataclass(frozen=True)
class InputPreparer:
    """Prepares what is to be written to one table.

    Attributes:
        table: The table.
        index: Of the table.
    """

    table: Table
    index: Index

    def prepare(self, operation: Operation, rows: DataFrame) -> AbstractContextManager[KeyedRows]:
        """Keyed rows that every attempt and every task computed again sees alike, for the length of the block.

        Raises:
            BadInput: The rows are refused.
        """
        return self.index.keep(self._key(operation, rows), operation, count=self._count)

    def _count(self, frame: DataFrame) -> dict[str, int]:
        with typed_task_errors(reading_into=self.table.storage.address("")):
            return count_rows(frame, self.table.config)

    def _key(self, operation: Operation, rows: DataFrame) -> KeyedRows:
        snapshot, settings = Snapshot.load(self.table), self.index.settings
        user = select_user_columns(rows)
        if settings.fills_columns and operation is not Operation.DELETE and snapshot.schema is not None:
            user = add_missing_columns(user, snapshot.schema)
        columns = make_key_columns(
            user, self.table.config, composite=snapshot.prefixes_keys(value_only=settings.bare_keys)
        )
        frame, schema = columns.add_to(user), user_schema(user)
        if operation is Operation.DELETE:
            return KeyedRows(frame.select(RECORD_KEY, PARTITION_PATH), schema, None)
        check_ordering(user, self.table.config)
        snapshot.merge_schema(schema)
        return KeyedRows(frame, schema, columns)


def choose_partitions(table: Table, options: Options, rows: DataFrame) -> list[str]:
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
