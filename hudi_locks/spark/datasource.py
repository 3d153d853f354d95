"""Writing with the options of a Hudi datasource job, so that such a job moves over unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from pyspark.sql import DataFrame

from hudi_locks.config import Options, datasource_keys
from hudi_locks.errors import BadInput, ConfigError, NotATable, TableExists
from hudi_locks.spark.hoodie_table import HoodieTable
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.result import WriteResult
from hudi_locks.spark.table_options import describe_from_options
from hudi_locks.storage import Storage, open_storage
from hudi_locks.table import Table

__all__ = ["write"]

_MODES = ("append", "overwrite", "ignore", "error", "errorifexists")


def write(rows: DataFrame, path: str, options: Mapping[str, object], mode: str = "errorifexists") -> WriteResult | None:
    """Write a DataFrame as `rows.write.format("hudi").options(**options).mode(mode).save(path)` would.

    Args:
        rows: The rows.
        path: Base path; the table is made if there is none.
        options: Hudi's keys: `hoodie.table.name`, `hoodie.datasource.write.recordkey.field`, `…precombine.field`,
            `…partitionpath.field`, `…operation` (upsert unless given) and so on.
        mode: Spark's save mode. `append` writes to the table; `overwrite` removes it first, with its history, so that
            no other writer may be at work; `ignore` does nothing, and `errorifexists` (or `error`) fails, where a
            table is.

    Returns:
        The result, or None where `ignore` left the table alone.

    Raises:
        TableExists: Mode `errorifexists`, and there is a table.
        ConfigError: An option or the mode cannot be used.
    """
    given = Options(options)
    operation = _read_operation(given)
    storage = open_storage(path)
    if _refuse_or_skip(storage, mode.lower()):
        return None
    with HoodieTable(rows.sparkSession, _open_or_create(storage, given), given) as table:
        return table.write(operation, rows)


def _read_operation(options: Options) -> Operation:
    key = datasource_keys.OPERATION
    asked = options.get_value(key).lower()
    if asked not in [operation.value for operation in Operation]:
        known = ", ".join(operation.value for operation in Operation)
        raise ConfigError(f"{key.name}={asked} is not offered; use one of {known}", key=key.name, value=asked)
    return Operation(asked)


def _refuse_or_skip(storage: Storage, mode: str) -> bool:
    """Do what the save mode asks where a table is; True if that is nothing."""
    if mode not in _MODES:
        raise ConfigError(f"save mode {mode!r} is none of {', '.join(_MODES)}", mode=mode)
    if mode == "append" or not _holds_table(storage):
        return False
    if mode == "overwrite":
        for entry in storage.list(""):
            (storage.delete_folder if entry.is_folder else storage.delete)(entry.name)
        return False
    if mode == "ignore":
        return True
    message = f"{storage.base} holds a table, and the save mode is {mode}; use append, or another path"
    raise TableExists(message, path=storage.base)


def _holds_table(storage: Storage) -> bool:
    try:
        Table.load(storage)
    except NotATable:
        return False
    return True


def _open_or_create(storage: Storage, options: Options) -> Table:
    """The table, made if there is none; another writer may make it at the same moment."""
    if not _holds_table(storage):
        config = describe_from_options(options)
        with suppress(TableExists):
            return Table.create(storage, config)
    table = Table.load(storage)
    _refuse_other_keys(table, options)
    return table


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
