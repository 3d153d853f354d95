"""The columns of a table in a user's hands: what ALTER TABLE of Spark SQL does. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.clock import Clock
from hudi_locks.errors import BadInput
from hudi_locks.format.column_versions import ColumnVersion
from hudi_locks.services import Change, SchemaChanger, TableWriter
from hudi_locks.spark.merge import Mergeable
from hudi_locks.spark.operation import Attempt, WriteResult
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.writing.rows import user_schema
from hudi_locks.spark.writing.writer import Report

__all__ = ["Alterable", "TableSchema"]

Kind: TypeAlias = "str | T.DataType"
"""A type of Spark, or as SQL writes it: "bigint", "decimal(12,2)"."""


class Alterable(Mergeable, ABC):
    """A table whose columns can be changed."""

    _clock: Clock

    @property
    def schema(self) -> TableSchema:
        """Its columns: added, renamed, dropped and widened without a file being written anew."""
        return TableSchema(self)

    def _change_columns(self, change: Change, touched: Sequence[str]) -> WriteResult:
        """Make one change of the columns."""
        with self._one_write("alter_schema of") as (report, follow):
            opened, began_ms = self._open(), self._clock.wall_ms()
            report("publishing")
            retries = PipelineSettings.of(self.options, self.table.config).conflict_retries
            changer = SchemaChanger(opened.table, opened.transactions, retries)
            published, metadata = changer.run(change, touched=touched)
            attempt = Attempt(published.instant, began_ms, self._clock.wall_ms(), published.outcome)
            return follow(WriteResult.of(published, metadata, attempts=[attempt]))

    @abstractmethod
    def _one_write(self, title: str) -> AbstractContextManager[tuple[Report, Callable[[WriteResult], WriteResult]]]:
        """What a write reports to, and what follows it."""

    @abstractmethod
    def _open(self) -> TableWriter:
        """The table, opened for writing."""


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table (Hudi's schema on read). Each change is one commit, seen by every read that begins later.

    Files stay as they are, and are read by the history of columns in `.hoodie/.schema`. JVM readers and writers need
    `hoodie.schema.on.read.enable=true` from then on: without it they show a renamed column as null in older files.

    All methods raise BadInput for a change that Hudi refuses (nothing was written), TableError while a plan of a table
    service waits, UnsupportedTable for tables that could not be read rightly afterwards, and what `HoodieTable.upsert`
    raises for a commit that fails.

    Attributes:
        table: The table.
    """

    table: Alterable

    def add_column(self, name: str, kind: Kind, *, after: str | None = None) -> WriteResult:
        """Add a column, which is null in all rows that are there.

        Args:
            name: Of the column.
            kind: Its type.
            after: The column that it follows; None for the last.
        """
        made, version = self._read_kind(name, kind), self.table.table.config.version
        add = partial(_add, name=name, kind=made, version=version, after=after)
        return self.table._change_columns(add, ())  # noqa: SLF001  # its other half

    def rename(self, name: str, new_name: str) -> WriteResult:
        """Give a column another name. Its values stay, in files of all times."""
        return self.table._change_columns(lambda now: now.rename(name, new_name), (name,))  # noqa: SLF001

    def drop(self, name: str) -> WriteResult:
        """Take a column away. A later one of its name is another, and begins with null."""
        return self.table._change_columns(lambda now: now.drop(name), (name,))  # noqa: SLF001

    def widen(self, name: str, kind: Kind) -> WriteResult:
        """Give a column a wider type.

        An int becomes a bigint, float, double or string, a bigint a float, double or string, a float a double, and a
        decimal one with more digits.
        """
        made, version = self._read_kind(name, kind), self.table.table.config.version
        change = partial(_widen, name=name, kind=made, version=version)
        return self.table._change_columns(change, (name,))  # noqa: SLF001

    def _read_kind(self, name: str, kind: Kind) -> pa.DataType:
        try:
            one = self.table.spark.range(0).select(F.lit(None).cast(kind).alias(name))
        except PySparkException as error:
            said = str(error).strip().splitlines()[0]
            message = f"{kind!r} is no type of Spark: {said}; give one such as 'bigint' or 'decimal(12,2)'"
            raise BadInput(message, column=name) from error
        [field] = user_schema(one)
        return field.type


def _add(now: ColumnVersion, *, name: str, kind: pa.DataType, version: int, after: str | None) -> ColumnVersion:
    return now.add(name, kind, table_version=version, after=after)


def _widen(now: ColumnVersion, *, name: str, kind: pa.DataType, version: int) -> ColumnVersion:
    return now.widen(name, kind, table_version=version)
