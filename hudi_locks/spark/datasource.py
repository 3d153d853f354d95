"""Writing with the options of a Hudi datasource job, so that such a job moves over unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession

from hudi_locks.config import Options, datasource_keys
from hudi_locks.errors import BadInput, ConfigError, NotATable, TableExists
from hudi_locks.spark.hoodie_table import HoodieTable
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.result import WriteResult
from hudi_locks.spark.settings import check_pipeline
from hudi_locks.spark.table_options import describe_from_options
from hudi_locks.storage import Storage, open_storage
from hudi_locks.table import Table, check_creatable

__all__ = ["open_table", "read_operation", "write"]

_MODES = ("append", "overwrite", "ignore", "error", "errorifexists")


def write(rows: DataFrame, path: str, options: Mapping[str, object], mode: str = "errorifexists") -> WriteResult | None:
    """Write a DataFrame as `rows.write.format("hudi").options(**options).mode(mode).save(path)` would.

    Args:
        rows: The rows.
        path: Base path; the table is made if there is none.
        options: Hudi's keys: `hoodie.table.name`, `hoodie.datasource.write.recordkey.field`, `…precombine.field`,
            `…partitionpath.field`, `…operation` (upsert unless given) and so on.
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
    given, mode = Options(options), mode.lower()
    operation = read_operation(given)
    storage = open_storage(path)
    present = _find_table(storage)
    if _refuse_or_skip(storage, mode, is_there=present is not None):
        return None
    keeps = mode == "append" or operation.replaces
    table = present if present and keeps else _make(storage, given, mode)
    _refuse_other_keys(table, given)
    with HoodieTable(rows.sparkSession, table, given) as target:
        return target.write(operation, rows)


def open_table(spark: SparkSession, path: str, options: Options) -> HoodieTable:
    """The table at `path`, made with the options of a Hudi job if there is none.

    Raises:
        ConfigError: An option cannot be used.
        BadInput: Options mean another key or partitioning than the table's.
    """
    storage = open_storage(path)
    table = _find_table(storage) or _make(storage, options, "append")
    _refuse_other_keys(table, options)
    return HoodieTable(spark, table, options)


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


def _find_table(storage: Storage) -> Table | None:
    try:
        return Table.load(storage)
    except NotATable:
        return None


def _make(storage: Storage, options: Options, mode: str) -> Table:
    """A new table, once every option is known to be good; another writer may make it at the same moment."""
    config = describe_from_options(options)
    check_creatable(config)
    check_pipeline(options, config, storage.base, for_writing=True)
    if mode == "overwrite":
        for entry in storage.list(""):
            (storage.delete_folder if entry.is_folder else storage.delete)(entry.name)
    with suppress(TableExists):
        return Table.create(storage, config)
    return Table.load(storage)


def _refuse_other_keys(table: Table, options: Options) -> None:
    """Refuse options that mean another key or partitioning than the table's: rows would be doubled."""
    config = table.config
    for key, present in (
        (datasource_keys.RECORDKEY_FIELD, config.record_key_fields),
        (datasource_keys.PARTITIONPATH_FIELD, config.partition_fields),
    ):
        asked = options.find(key) if options.has(key) else None
        if asked is not None and tuple(name.strip() for name in asked.split(",") if name.strip()) != present:
            raise BadInput(
                f"{key.name}={asked}, but the table at {table.storage.base} was made with {','.join(present)};"
                " leave the option out or write to another path",
                key=key.name,
                asked=asked,
                present=list(present),
            )
