"""Where the columns of a source are written down (Hudi's schema providers). Runs on the driver."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.types import StructType

from hudi_locks.config import Options, ingest_keys, local_path
from hudi_locks.errors import BadInput, ConfigError, DamagedTable
from hudi_locks.format import arrow_schema
from hudi_locks.ingest.registry import ask_schema
from hudi_locks.spark.writing.rows import to_spark

__all__ = ["find_schema", "find_schema_text", "interpret"]


def find_schema(options: Options) -> StructType | None:
    """The columns as a file or a registry tells them; None if neither is named.

    Raises:
        ConfigError: Both are named, or the named one does not answer, or the target is to have other columns.
        BadInput: What it tells is no Avro record whose columns a table can have.
    """
    text = find_schema_text(options)
    if text is None:
        return None
    key = ingest_keys.SCHEMA_FILE if options.find(ingest_keys.SCHEMA_FILE) else ingest_keys.SCHEMA_REGISTRY_URL
    columns = interpret(text, key.name)
    _check_target(options, columns)
    return columns


def find_schema_text(options: Options) -> str | None:
    """The Avro schema as a file or a registry has it; None if neither is named.

    Raises:
        ConfigError: Both are named, or the named one does not answer.
    """
    given = [key for key in (ingest_keys.SCHEMA_FILE, ingest_keys.SCHEMA_REGISTRY_URL) if options.find(key)]
    if len(given) > 1:
        names = " and ".join(key.name for key in given)
        raise ConfigError(f"{names} both name the columns of the source; leave one of them out", key=given[1].name)
    if not given:
        return None
    where = options.get_value(given[0])
    return _read(where, given[0].name) if given[0] is ingest_keys.SCHEMA_FILE else ask_schema(where, given[0].name)


def _check_target(options: Options, columns: StructType) -> None:
    """Hudi's providers may name other columns for the table, which its transformers make."""
    for key, is_file in ((ingest_keys.TARGET_SCHEMA_FILE, True), (ingest_keys.TARGET_REGISTRY_URL, False)):
        where = options.find(key)
        if not where:
            continue
        name = str(options.name_used(key))
        if interpret(_read(where, name) if is_file else ask_schema(where, name), name) != columns:
            message = (
                f"{name} names other columns than the source's, and rows are written as they come: leave it out, or"
                " transform the stream in a Python program and hand it to IngestJob"
            )
            raise ConfigError(message, key=name)


def _read(path: str, key: str) -> str:
    try:
        return Path(local_path(path)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key}={path} cannot be read: {error}", key=key, path=path) from error


def interpret(text: str, where: str) -> StructType:
    """The columns of an Avro record.

    Raises:
        BadInput: It is none, or a table cannot have them.
    """
    try:
        return to_spark(arrow_schema(text, where))
    except DamagedTable as error:
        raise BadInput(f"what {where} names is no Avro record: {error}", path=where) from error
