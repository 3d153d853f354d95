"""Base files of a table as a DataFrame of Spark's own Parquet reader.

Files that hold columns with narrower types than the table are read with those, and cast: Spark 3.5 fails to read them
otherwise, and Spark 4 gives a float as a double other digits than JVM Hudi.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.errors import DamagedTable
from hudi_locks.format import META_COLUMNS
from hudi_locks.spark._compat import FileIndexes, ask_connector_for_bytes, is_on, run_in_workers
from hudi_locks.spark.reading.merged_reading import MergeTask, SlicePart, pack_slices
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.rows import column_named, convert, to_spark
from hudi_locks.storage import Storage
from hudi_locks.table import (
    PARTITION_PATH,
    RECORD_KEY,
    BaseFile,
    ColumnHistory,
    FileSlice,
    MergeRule,
    PartitionValues,
    StoredColumn,
    StoredTypes,
    VirtualKeys,
    add_meta_schema,
    find_stored_types,
)
from hudi_locks.timeline import Timeline

__all__ = [
    "Address",
    "Folders",
    "find_address",
    "read_as_stored",
    "read_base_files",
    "read_by_arrow",
    "read_files",
    "read_keys",
    "read_live_keys",
    "read_merged",
    "read_packs",
    "read_stored",
    "text_columns",
]

Address = Callable[[str], str]
"""What Spark is to open for a path of the table."""
_LARGE_BYTES: Final = 1 << 20
"""Of a smaller file the ten requests of Spark's reader outweigh what it is quicker than Arrow and Python."""
_OTHER_SCHEMES: Final = {"s3": "s3a", "s3n": "s3a"}
"""Under which the same objects have a connector."""
_opened: dict[tuple[str, str], str] = {}
"""By application and base path, the base path that a connector of Spark opened."""
Folders = Mapping[str, tuple[str | None, ...]]
"""Of each folder, as Spark is to open it, the values of its partition columns as text."""


def find_address(spark: SparkSession, storage: Storage, files: Sequence[BaseFile]) -> Address | None:
    """Where Spark's own reader finds these base files; None if Arrow is to read them.

    Object stores are read by Arrow, unless the files are large and a connector of the session opens one of them.
    """
    if storage.is_read_by_spark:
        return storage.address
    if not files or sum(file.size for file in files) < _LARGE_BYTES * len(files) or not is_on(spark, "connector"):
        return None
    root = _find_root(spark, storage, files[0])
    return None if root is None else lambda path: f"{root}/{path}"


def _find_root(spark: SparkSession, storage: Storage, file: BaseFile) -> str | None:
    """What opens is remembered, as long as the application lives; what does not is tried anew, which takes a moment."""
    known = (spark.sparkContext.applicationId, storage.base)
    if known not in _opened:
        scheme, mark, rest = storage.base.partition("://")
        for root in dict.fromkeys((storage.base, f"{_OTHER_SCHEMES.get(scheme, scheme)}{mark}{rest}")):
            if ask_connector_for_bytes(spark, f"{root}/{file.path}") == file.size:
                _opened[known] = root
                break
    return _opened.get(known)


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
    rows = java.make_rows([schema[name] for name in partitioned_by], list(known.values())) if known else None
    given = (columns, java.sources.PartitionSpec(partitions, java.place(rows, list(known))))
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


def text_columns(*names: str) -> pa.Schema:
    """A schema of columns of text."""
    return pa.schema([pa.field(name, pa.string()) for name in names])


def read_keys(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[BaseFile],
    columns: pa.Schema,
    *,
    file_id: str = "",
    virtual_keys: VirtualKeys | None = None,
) -> DataFrame:
    """Columns of these base files as they are stored, by whoever reads the storage.

    Args:
        spark: The session.
        storage: Of the table.
        files: At least one; those of which no size is known are looked for.
        columns: Some that the files, or their sources, have with these types.
        file_id: Name of a column more, with the id of each row's file group; none if empty.
        virtual_keys: See `MergeRule`; record keys and partition paths are made then.
    """
    is_apart = any(file.is_skeleton for file in files) and not set(columns.names) <= set(META_COLUMNS)
    if not storage.is_read_by_spark or virtual_keys is not None or is_apart:
        return read_by_arrow(spark, storage, files, columns, file_id=file_id, virtual_keys=virtual_keys)
    paths, sizes = [storage.address(file.path) for file in files], [file.size for file in files]
    rows = read_files(spark, paths, to_spark(columns), sizes=sizes)
    return rows.withColumn(file_id, F.substring_index(F.col("_metadata.file_name"), "_", 1)) if file_id else rows


def read_as_stored(
    storage: Storage,
    timeline: Timeline,
    files: Sequence[BaseFile],
    columns: pa.Schema,
    *,
    read: Callable[[Sequence[BaseFile], pa.Schema], DataFrame],
    history: ColumnHistory | None = None,
) -> DataFrame:
    """The rows of some files in the types of `columns`, where `read` reads files that all have the types it is given.

    Raises:
        UnsupportedTable: See `find_stored_types`.
    """
    groups = find_stored_types(storage, timeline, files, columns, history=history)
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
    there = {one.name: one.field for one in stored}
    fields = [there.get(field.name, field) for field in columns]
    rows = read(files, pa.schema([field for field in fields if field is not None]))
    changed = {one.name: _bring_up(one, columns.field(one.name)) for one in stored}
    names = rows.columns if set(rows.columns) == set(columns.names) else columns.names
    return rows.select([changed.get(name, column_named(name)) for name in names])


def _bring_up(stored: StoredColumn, column: pa.Field) -> Column:
    """A column of a file as the table has it."""
    if stored.field is None:
        [field] = to_spark(pa.schema([column])).fields
        return F.lit(None).cast(field.dataType).alias(column.name)
    return convert(column_named(stored.field.name), stored.field.type, column.type).alias(column.name)


def read_base_files(
    spark: SparkSession, address: Address, files: Sequence[BaseFile], columns: pa.Schema, values: PartitionValues
) -> DataFrame:
    """The rows of these files and no others; columns that a file lacks are null.

    A filter on partition columns spares the files of other partitions, but for those whose path does not tell the
    values: these are read, and filtered as any rows are.

    Args:
        spark: The session.
        address: See `find_address`.
        files: Some.
        columns: Of the rows, with the types that the files have.
        values: What partition paths tell.
    """
    told = {path: values.read(path) for path in dict.fromkeys(file.partition for file in files)}
    known: Folders = {address(partition): found for partition, found in told.items() if found is not None}
    frames = []
    for names, folders, is_told in ((values.columns.names, known, True), ((), {}, False)):
        some = [file for file in files if (told[file.partition] is not None) is is_told]
        if some:
            paths, sizes = [address(file.path) for file in some], [file.size for file in some]
            frames.append(
                read_files(spark, paths, to_spark(columns), sizes=sizes, partitioned_by=names, folders=folders)
            )
    return reduce(DataFrame.unionByName, frames)


def read_packs(spark: SparkSession, task: MergeTask) -> DataFrame:
    """The rows of the task's slices, each pack in a Spark task of its own. Reads when they are used."""
    numbers = spark.range(0, len(task.packs), 1, max(1, len(task.packs)))
    return run_in_workers(numbers, task, to_spark(task.columns))


def read_by_arrow(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[BaseFile],
    columns: pa.Schema,
    *,
    file_id: str = "",
    virtual_keys: VirtualKeys | None = None,
) -> DataFrame:
    """The rows of base files as they are stored, read on the executors by the storage itself.

    Args:
        spark: The session.
        storage: Of the table.
        files: Some; those whose size is not known are read in a task each.
        columns: Of the rows, in types that Spark has; null where a file lacks them.
        file_id: See `MergeTask`.
        virtual_keys: See `MergeRule`.
    """
    slices = [FileSlice(file.partition, file.file_id, file.instant, file) for file in files]
    return read_stored(spark, storage, slices, columns, file_id=file_id, rule=MergeRule(virtual_keys=virtual_keys))


def read_stored(
    spark: SparkSession,
    storage: Storage,
    slices: Sequence[FileSlice],
    columns: pa.Schema,
    *,
    file_id: str = "",
    rule: MergeRule | None = None,
) -> DataFrame:
    """The same of slices, of which `rule` merges the rows; by default the one that was logged last wins.

    Of slices without a base file it is what their logs bring, and do not take away again.
    """
    cores = spark.sparkContext.defaultParallelism
    is_known = all(file.size > 0 for piece in slices for file in (*piece.logs, piece.base) if file is not None)
    packs = pack_slices(slices, cores=cores) if is_known else tuple((SlicePart(piece),) for piece in slices)
    told = PartitionValues(pa.schema([]), hive_style=False, url_encode=False)
    return read_packs(
        spark, MergeTask(storage, packs, columns, rule or MergeRule(), tuple(columns.names), told, file_id)
    )


def read_merged(
    spark: SparkSession, snapshot: Snapshot, slices: Sequence[FileSlice], columns: pa.Schema, *, file_id: str
) -> DataFrame:
    """Columns of the rows that slices with logs show, and as `file_id` the ids of their file groups."""
    rule, schema = snapshot.table.config.merge_rule, add_meta_schema(snapshot.schema)
    deciding = [field for field in schema if field.name in rule.deciding and field.name not in columns.names]
    read = pa.schema([*columns, *deciding])
    rows = read_stored(spark, snapshot.table.storage, slices, read, file_id=file_id, rule=rule)
    return rows.select(*(column_named(name) for name in columns.names), file_id)


def read_live_keys(spark: SparkSession, snapshot: Snapshot, slices: Sequence[FileSlice], *, file_id: str) -> DataFrame:
    """Record keys and partition paths of the rows that some slices show, and as `file_id` the ids of their file groups.

    Base files alone have keys that a log took out again.
    """
    keys = text_columns(RECORD_KEY, PARTITION_PATH)
    plain = [piece.base for piece in slices if piece.base is not None and not piece.logs]
    logged = [piece for piece in slices if piece.logs]
    storage, made = snapshot.table.storage, snapshot.table.config.virtual_keys
    read = [read_keys(spark, storage, plain, keys, file_id=file_id, virtual_keys=made)] if plain else []
    read += [read_merged(spark, snapshot, logged, keys, file_id=file_id)] if logged else []
    return reduce(DataFrame.unionByName, read)
