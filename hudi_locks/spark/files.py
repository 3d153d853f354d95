"""Base files of a table as a DataFrame of Spark's own Parquet reader."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.spark.file_index import Folders, read_files
from hudi_locks.storage import Storage
from hudi_locks.table import BaseFile, PartitionValues

__all__ = ["read_base_files"]


def read_base_files(
    spark: SparkSession, storage: Storage, files: Sequence[BaseFile], schema: T.StructType, values: PartitionValues
) -> DataFrame:
    """The rows of these files and no others; columns that a file lacks are null.

    A filter on partition columns spares the files of other partitions, but for those whose path does not tell the
    values: these are read, and filtered as any rows are.

    Args:
        spark: The session.
        storage: Of the table.
        files: Some.
        schema: Of the rows.
        values: What partition paths tell.
    """
    told = {file.partition: values.read(file.partition) for file in files}
    known: Folders = {storage.native(partition): found for partition, found in told.items() if found is not None}
    frames = []
    for names, folders, is_told in ((values.columns.names, known, True), ((), {}, False)):
        paths = [storage.native(file.path) for file in files if (told[file.partition] is not None) is is_told]
        if paths:
            frames.append(read_files(spark, paths, schema, partitioned_by=names, folders=folders))
    return reduce(DataFrame.unionByName, frames)
