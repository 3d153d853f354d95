"""Where the columns of a source are written down (Hudi's schema providers). Runs on the driver."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Final

from pyspark.sql.types import StructType

from hudi_locks.config import Key, Options, ingest_keys
from hudi_locks.errors import BadInput, ConfigError, DamagedTable
from hudi_locks.format import arrow_schema
from hudi_locks.spark.column_types import to_spark

__all__ = ["find_schema"]

_TIMEOUT_S: Final = 30.0
_SCHEMES: Final = ("http://", "https://")


def find_schema(options: Options) -> StructType | None:
    """The columns as a file or a registry tells them; None if neither is named.

    Raises:
        ConfigError: Both are named, or the named one does not answer.
        BadInput: What it tells is no Avro record whose columns a table can have.
    """
    given = [key for key in (ingest_keys.SCHEMA_FILE, ingest_keys.SCHEMA_REGISTRY_URL) if options.find(key)]
    if len(given) > 1:
        names = " and ".join(key.name for key in given)
        raise ConfigError(f"{names} both name the columns of the source; leave one of them out", key=given[1].name)
    if not given:
        return None
    where = options.get_value(given[0])
    text = _read(where) if given[0] is ingest_keys.SCHEMA_FILE else _ask(where, given[0])
    return _interpret(text, where)


def _read(path: str) -> str:
    try:
        return Path(path.removeprefix("file://")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        key = ingest_keys.SCHEMA_FILE.name
        raise ConfigError(f"{key}={path} cannot be read: {error}", key=key, path=path) from error


def _ask(url: str, key: Key[str]) -> str:
    if not url.startswith(_SCHEMES):
        raise ConfigError(f"{key.name}={url} is no address: it begins with http:// or https://", key=key.name)
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310  # the scheme was looked at
            return str(json.load(answer)["schema"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        message = f"the schema registry at {url} does not give a schema: {type(error).__name__}: {error}"
        raise ConfigError(message, key=key.name, url=url) from error


def _interpret(text: str, where: str) -> StructType:
    try:
        return to_spark(arrow_schema(text, where))
    except DamagedTable as error:
        raise BadInput(f"{where} is no Avro record: {error}", path=where) from error
