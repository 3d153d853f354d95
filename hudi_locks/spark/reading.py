"""Reads as DataFrames: Spark's own vectorised Parquet reader on the base files that a snapshot shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_locks.format import META_COLUMNS, parse_moment
from hudi_locks.spark.files import read_files
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.table import COMMIT_TIME, BaseFile, Table, add_meta_schema, files_changed, latest_base_files

__all__ = ["Reader"]


@dataclass(frozen=True)
class Reader:
    """Reads one table. Runs on the driver.

    A DataFrame shows the table as it was when it was made: a later commit does not change it, and cleaning the files
    away makes it fail instead of showing less.

    Attributes:
        spark: Session of the DataFrames.
        table: The table.
        meta_columns: Whether the five meta columns come first, as in Hudi.
    """

    spark: SparkSession
    table: Table
    meta_columns: bool

    def snapshot(self, *, completed: str | None = None, requested: str | None = None) -> DataFrame:
        """The rows now, or as of a completion time, or as of a requested time as the JVM's `as.of.instant` means it."""
        snapshot = Snapshot.load(self.table)
        times = {"as_of": completed, "as_of_requested": requested}
        limits = {name: parse_moment(time) for name, time in times.items() if time is not None}
        files = latest_base_files(self.table.storage, snapshot.timeline, **limits)
        return self._select(self._open(files, snapshot.schema))

    def changes(self, begin: str, end: str | None) -> DataFrame:
        """Rows written by commits with begin < completion time <= end, each as the last of them left it."""
        snapshot = Snapshot.load(self.table)
        begin, end = parse_moment(begin), end if end is None else parse_moment(end)
        changes = files_changed(self.table.storage, snapshot.timeline, begin=begin, end=end)
        rows = self._open(changes.files, snapshot.schema)
        return self._select(rows.where(F.col(COMMIT_TIME).isin(list(changes.instants))))

    def _open(self, files: Sequence[BaseFile], schema: pa.Schema | None) -> DataFrame:
        user_schema = schema if schema is not None else pa.schema([])
        columns = from_arrow_schema(add_meta_schema(user_schema), prefer_timestamp_ntz=True)
        if not files:
            return self.spark.createDataFrame([], columns)
        return read_files(self.spark, [self.table.storage.native(file.path) for file in files], columns)

    def _select(self, rows: DataFrame) -> DataFrame:
        return rows if self.meta_columns else rows.drop(*META_COLUMNS)
