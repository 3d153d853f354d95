"""Writing with the options of a Hudi datasource job, so that such a job moves over unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from hudi_locks.config import Key, Options, add_defaults, datasource_keys, read_keys
from hudi_locks.errors import ConfigError, NotATable, TableExists
from hudi_locks.spark.executors import check_executors
from hudi_locks.spark.hoodie_table import HoodieTable
from hudi_locks.spark.operation import Operation, WriteResult
from hudi_locks.spark.reading.query import ReadQuery, leave_out_query
from hudi_locks.spark.session import open_table_storage, prepare_session
from hudi_locks.spark.settings import check_pipeline
from hudi_locks.spark.table_options import describe_from_options
from hudi_locks.spark.writing.keys import make_key_columns
from hudi_locks.spark.writing.rows import check_ordering, refuse_unreadable_types
from hudi_locks.spark.writing.writer import CommitTerms
from hudi_locks.storage import Storage, refuse_unwritable
from hudi_locks.table import StagedInput, Table, TimePartition, check_creatable

__all__ = ["PATH", "leave_out_path", "open_table", "prepare_write", "read", "read_operation", "write", "write_staged"]

PATH: Final = "path"
"""Of the options that Spark gives to a format: the base path."""

_SQL_NAMES: Final[Mapping[str, Key[str]]] = {
    "primaryKey": datasource_keys.RECORDKEY_FIELD,
    "preCombineField": datasource_keys.PRECOMBINE_FIELD,
    "type": datasource_keys.WRITE_TABLE_TYPE,
}
_SQL_TYPES: Final = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_MODES = ("append", "overwrite", "ignore", "error", "errorifexists")


def write(
    rows: DataFrame, path: str | PathLike[str], options: Mapping[str, object], mode: str = "errorifexists"
) -> WriteResult | None:
    """Write a DataFrame as `rows.write.format("hudi").options(**options).mode(mode).save(path)` would.

    Args:
        rows: The rows.
        path: Base path; the table is made if there is none.
        options: Hudi's keys, or the short names of its SQL (`primaryKey`, `preCombineField`, `type` = cow or mor):
            `hoodie.table.name`, `hoodie.datasource.write.recordkey.field`, `…precombine.field`,
            `…partitionpath.field`, `…operation` (upsert unless given) and so on. They count before those of this
            machine's `hudi-defaults.conf`.
        mode: Spark's save mode. `append` writes to the table; `overwrite` removes it first, with its history, so that
            no other writer may be at work, but keeps it where the operation itself replaces rows (`insert_overwrite`,
            `insert_overwrite_table`, `delete_partition`); `ignore` does nothing, and `errorifexists` (or `error`)
            fails, where a table is.

    Returns:
        The result, or None where `ignore` left the table alone.

    Raises:
        TableExists: Mode `errorifexists`, and there is a table.
        ConfigError: An option or the mode cannot be used.
    """
    return _write(rows, path, options, mode)


def _write(
    rows: DataFrame, path: str | PathLike[str], options: Mapping[str, object], mode: str, *, kept: str = ""
) -> WriteResult | None:
    """As `write`; a folder that is kept stays where a table is removed."""
    prepare_session(rows.sparkSession)
    given, mode = _fill(Options(options)), mode.lower()
    operation = read_operation(given)
    storage = open_table_storage(rows.sparkSession, path, given)
    present = _find_table(storage)
    if _refuse_or_skip(storage, mode, is_there=present is not None):
        return None
    keeps = mode == "append" or operation.replaces
    if not (present and keeps):
        _refuse_lacking(rows, given)
    table = present if present and keeps else _make(storage, given, mode, kept=kept)
    with HoodieTable(rows.sparkSession, table, given) as target:
        return target.write(operation, rows, terms=CommitTerms(extra=_choose_notes(given)))


def _choose_notes(options: Options) -> dict[str, str]:
    """The options that are kept in the commit (`hoodie.datasource.write.commitmeta.key.prefix`), secrets left out."""
    prefix, shown = options.get_value(datasource_keys.COMMIT_METADATA_PREFIX), options.redacted()
    return {name: value for name, value in options.items() if name.startswith(prefix) and shown[name] == value}


def write_staged(rows: DataFrame, options: Mapping[str, str], *, overwrites: bool, staged: StagedInput) -> None:
    """As `write`, of rows that are staged below the table.

    Args:
        rows: They.
        options: Of `write`, and the path.
        overwrites: Whether the mode is `overwrite`, else it is `append`.
        staged: Stays where a table is removed.

    Raises:
        HudiLocksError: See `write`.
    """
    _write(rows, options[PATH], leave_out_path(options), "overwrite" if overwrites else "append", kept=staged.folder)


def prepare_write(empty: DataFrame, options: Mapping[str, str], *, overwrites: bool) -> Storage:
    """Refuse before any row what `write_staged` would refuse of it, and make the table if there is none.

    Args:
        empty: No rows, with the columns of those to come.
        options: Of `write`, and the path.
        overwrites: See `write_staged`.

    Raises:
        HudiLocksError: See `write`.
    """
    spark = empty.sparkSession
    prepare_session(spark)
    given = _fill(Options(leave_out_path(options)))
    operation = read_operation(given)
    storage = open_table_storage(spark, options[PATH], given)
    present = _find_table(storage)
    if present is None or (overwrites and not operation.replaces):
        _refuse_lacking(empty, given)
    table = (present or _make(storage, given, "append")).with_writer_options(given)
    table.check_writable()
    check_pipeline(given, table.config, storage.base, for_writing=True)
    check_executors(spark, storage)
    return storage


def leave_out_path(options: Mapping[str, str]) -> dict[str, str]:
    """The options of `write`, of those that Spark gives to a format."""
    return {name: value for name, value in options.items() if name != PATH}


def read(spark: SparkSession, path: str | PathLike[str], options: Mapping[str, object] | None = None) -> DataFrame:
    """Read as `spark.read.format("hudi").options(**options).load(path)` would.

    Args:
        spark: The session.
        path: Base path.
        options: Hudi's keys: `hoodie.datasource.query.type` (snapshot, read_optimized or incremental), `as.of.instant`,
            `hoodie.datasource.read.begin.instanttime` and `…end.instanttime` and so on. They count before those of
            this machine's `hudi-defaults.conf`.

    Raises:
        NotATable: There is no table.
        ConfigError: An option cannot be used, or two contradict each other.
    """
    given = add_defaults(options)
    table = HoodieTable.load(spark, path, options=leave_out_query(given))
    query = ReadQuery.of(given)
    if query.is_cdc:
        return table.change_log(query.begin, query.end)
    if query.is_incremental:
        return table.incremental(query.begin, query.end)
    return table.as_of(requested=query.moment) if query.moment else table.read(read_optimized=query.is_read_optimized)


def open_table(spark: SparkSession, path: str | PathLike[str], options: Options) -> HoodieTable:
    """The table at `path`, made with the options of a Hudi job if there is none.

    Raises:
        ConfigError: An option cannot be used.
        BadInput: Options mean another key or partitioning than the table's.
    """
    prepare_session(spark)
    options = _fill(options)
    storage = open_table_storage(spark, path, options)
    table = _find_table(storage) or _make(storage, options, "append")
    return HoodieTable(spark, table, options)


def _fill(options: Options) -> Options:
    """The options of a writer, with Hudi's keys for the short names, and what this machine gives to all jobs."""
    return add_defaults(_take_sql_names(options), without=read_keys.READ_KEYS)


def _take_sql_names(options: Options) -> Options:
    """The options with the short names of Hudi's SQL as the keys for which they stand.

    Raises:
        ConfigError: The key is there too, with another value; or the type is none.
    """
    values = dict(options)
    for short, key in _SQL_NAMES.items():
        written = next((name for name in (short, short.lower()) if name in values), None)  # Spark's formats get it so
        if written is None:
            continue
        asked = values.pop(written)
        meant = _SQL_TYPES.get(asked.strip().lower(), asked) if short == "type" else asked
        given = options.name_used(key)
        if given is not None and options[given] != meant:
            message = f"{short}={asked} and {given}={options[given]} contradict each other; leave one of them out"
            raise ConfigError(message, key=given)
        values[key.name] = meant
    return Options(values)


def read_operation(options: Options) -> Operation:
    """The operation that options ask for.

    Raises:
        ConfigError: It is not offered.
    """
    key = datasource_keys.OPERATION
    if options.get(key.name, "").lower() == "bootstrap":
        message = (
            f"{key.name}=bootstrap is not offered: bootstrap the table with JVM Hudi, or load its rows by bulk_insert"
        )
        raise ConfigError(message, key=key.name, value="bootstrap")
    asked = options.get_value(key).lower()
    if asked not in [operation.value for operation in Operation]:
        known = ", ".join(operation.value for operation in Operation)
        raise ConfigError(f"{key.name}={asked} is not offered; use one of {known}", key=key.name, value=asked)
    return Operation(asked)


def _refuse_or_skip(storage: Storage, mode: str, *, is_there: bool) -> bool:
    """Whether the save mode asks for nothing, since a table is there."""
    if mode not in _MODES:
        raise ConfigError(f"save mode {mode!r} is none of {', '.join(_MODES)}", mode=mode)
    if is_there and mode.startswith("error"):
        message = f"{storage.base} holds a table, and the save mode is {mode}; use append, or another path"
        raise TableExists(message, path=storage.base)
    return is_there and mode == "ignore"


def _refuse_lacking(rows: DataFrame, options: Options) -> None:
    """Refuse rows without the columns that a table is to be made with, before it is made."""
    config = describe_from_options(options)
    refuse_unreadable_types(rows)
    make_key_columns(rows, config, TimePartition.of(options, config), composite=False)
    check_ordering(rows, config)


def _find_table(storage: Storage) -> Table | None:
    try:
        return Table.load(storage)
    except NotATable:
        return None


def _make(storage: Storage, options: Options, mode: str, *, kept: str = "") -> Table:
    """A new table, once every option is known to be good; another writer may make it at the same moment."""
    config = describe_from_options(options)
    check_creatable(config)
    refuse_unwritable(storage)
    check_pipeline(options, config, storage.base, for_writing=True)
    if mode == "overwrite":
        _clear(storage, "", kept=kept)
    with suppress(TableExists):
        return Table.create(storage, config)
    return Table.load(storage)


def _clear(storage: Storage, folder: str, *, kept: str) -> None:
    """Remove all that is in a folder but for another one below it."""
    for entry in storage.list(folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if kept.startswith(f"{path}/"):
            _clear(storage, path, kept=kept)
        elif path != kept:
            (storage.delete_folder if entry.is_folder else storage.delete)(path)
