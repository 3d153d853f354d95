"""Base files of a table as a DataFrame of Spark's own Parquet reader.

Files that hold columns with narrower types than the table are read with those, and cast: Spark 3.5 fails to read them
otherwise, and Spark 4 gives a float as a double other digits than JVM Hudi.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hudi_locks.spark.column_types import convert, to_spark
from hudi_locks.spark.reading.file_index import Folders, read_files
from hudi_locks.spark.writing.rows import column_named
from hudi_locks.storage import Storage
from hudi_locks.table import BaseFile, PartitionValues, StoredTypes, find_stored_types
from hudi_locks.timeline import Timeline

__all__ = ["read_as_stored", "read_base_files"]


def read_as_stored(
    storage: Storage,
    timeline: Timeline,
    files: Sequence[BaseFile],
    columns: pa.Schema,
    *,
    read: Callable[[Sequence[BaseFile], pa.Schema], DataFrame],
) -> DataFrame:
    """The rows of some files in the types of `columns`, where `read` reads files that all have the types it is given.

    Raises:
        UnsupportedTable: See `find_stored_types`.
    """
    groups = find_stored_types(storage, timeline, files, columns)
    frames = [_read_widened(some, stored, columns, read) for stored, some in groups.items()]
    return reduce(DataFrame.unionByName, frames)


def _read_widened(
    files: Sequence[BaseFile],
    stored: StoredTypes,
    columns: pa.Schema,
    read: Callable[[Sequence[BaseFile], pa.Schema], DataFrame],
) -> DataFrame:
    if not stored:
        return read(files, columns)
    narrow = {field.name: field.type for field in stored}
    rows = read(files, pa.schema([field.with_type(narrow.get(field.name, field.type)) for field in columns]))
    changed = {
        name: convert(column_named(name), kind, columns.field(name).type).alias(name) for name, kind in narrow.items()
    }
    return rows.select([changed.get(name, column_named(name)) for name in rows.columns])


def read_base_files(
    spark: SparkSession, storage: Storage, files: Sequence[BaseFile], columns: pa.Schema, values: PartitionValues
) -> DataFrame:
    """The rows of these files and no others; columns that a file lacks are null.

    A filter on partition columns spares the files of other partitions, but for those whose path does not tell the
    values: these are read, and filtered as any rows are.

    Args:
        spark: The session.
        storage: Of the table.
        files: Some.
        columns: Of the rows, with the types that the files have.
        values: What partition paths tell.
    """
    told = {file.partition: values.read(file.partition) for file in files}
    known: Folders = {storage.address(partition): found for partition, found in told.items() if found is not None}
    frames = []
    for names, folders, is_told in ((values.columns.names, known, True), ((), {}, False)):
        some = [file for file in files if (told[file.partition] is not None) is is_told]
        if some:
            paths, sizes = [storage.address(file.path) for file in some], [file.size for file in some]
            frames.append(
                read_files(spark, paths, to_spark(columns), sizes=sizes, partitioned_by=names, folders=folders)
            )
    return reduce(DataFrame.unionByName, frames)
