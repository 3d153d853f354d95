"""Parquet files as a DataFrame of Spark's own reader, with the values of their partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.errors import DamagedTable
from hudi_locks.spark._compat import FileIndexes

__all__ = ["Folders", "read_files", "text_columns"]

Folders = Mapping[str, tuple[str | None, ...]]
"""Of each folder, as Spark is to open it, the values of its partition columns as text."""


def read_files(
    spark: SparkSession,
    paths: Sequence[str],
    schema: T.StructType,
    *,
    sizes: Sequence[int] = (),
    partitioned_by: Sequence[str] = (),
    folders: Folders | None = None,
) -> DataFrame:
    """The rows of these files and no others; columns that a file lacks are null.

    The reader takes paths as they are, where `spark.read.parquet` would take them for patterns.

    Args:
        spark: The session.
        paths: Of the files.
        schema: Of the rows.
        sizes: Of the files in bytes, where they were listed a moment ago: then Spark does not look for them again.
        partitioned_by: Columns of `schema` whose values are those of the file's folder: filters on them spare files.
        folders: All folders of the files, if there are such columns.

    Raises:
        DamagedTable: A file is gone.
    """
    java = FileIndexes(spark)
    columns = java.translate(schema)
    partitions = java.translate(T.StructType([schema[name] for name in partitioned_by]))
    known = folders or {}
    rows = java.make_rows([schema[name] for name in partitioned_by], list(known.values()))
    found = [java.sources.PartitionPath(row, folder) for row, folder in zip(rows, java.qualify(known), strict=True)]
    given = (columns, java.sources.PartitionSpec(partitions, java.listed(found)))
    files = java.know(paths, sizes, *given) if sizes else None
    if files is None:
        files = java.index(paths, *given)
        _refuse_missing(files, paths)
    return java.read_parquet(files, partitions, columns)


def _refuse_missing(index: Any, paths: Sequence[str]) -> None:
    """Spark's index leaves files out that are not there, and says nothing."""
    if index.allFiles().size() == len(paths):
        return
    found = {unquote(path).rpartition("/")[2] for path in index.inputFiles()}
    lost = next((path for path in paths if path.rpartition("/")[2] not in found), paths[0])
    raise DamagedTable(f"{lost} is gone: cleaned or removed since the timeline was loaded", path=lost)


def text_columns(*names: str) -> T.StructType:
    """A schema of columns of text."""
    return T.StructType([T.StructField(name, T.StringType()) for name in names])
