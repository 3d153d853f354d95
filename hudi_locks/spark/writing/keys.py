"""Record keys and partition paths as expressions over the columns of a write.

Runs on the driver.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.config import time_partition_keys
from hudi_locks.errors import BadInput
from hudi_locks.spark._compat import find_machine_zone
from hudi_locks.spark.writing.time_paths import render_time_path
from hudi_locks.table import (
    DEFAULT_PARTITION,
    EMPTY_KEY,
    NULL_KEY,
    PARTITION_PATH,
    RECORD_KEY,
    TableConfig,
    TimePartition,
    find_zone_name,
)

__all__ = [
    "KeyColumns",
    "field_type",
    "make_key_columns",
    "partition_path",
    "record_key",
]

_ROW_BITS: Final = 33
"""Of an id that Spark gives a row; those before them are the task's."""
_ESCAPED: Final = "%\"#'*/:=?\\{[]^\x7f" + "".join(chr(code) for code in range(1, 32))
"""What Hive escapes in a path; "%" first, since the escapes hold it."""


@dataclass(frozen=True)
class KeyColumns:
    """Record key and partition path as expressions over the user's columns."""

    key: Column
    path: Column

    def add_to(self, rows: DataFrame) -> DataFrame:
        """The rows with both columns."""
        return rows.withColumn(RECORD_KEY, self.key).withColumn(PARTITION_PATH, self.path)


def make_key_columns(
    user: DataFrame, config: TableConfig, times: TimePartition | None, *, composite: bool
) -> KeyColumns:
    """How the table keys these rows.

    Raises:
        BadInput: A key or partition column is missing, or of a type that has no key form.
    """
    fields = config.record_key_fields
    key = record_key(user.schema, fields, composite=composite) if fields else _make_keys()
    return KeyColumns(key, partition_path(user, config, times))


def _make_keys() -> Column:
    """A new key for each row, of write, task and place in the task (Hudi's AutoRecordGenWrapperKeyGenerator)."""
    row = F.monotonically_increasing_id().bitwiseAND((1 << _ROW_BITS) - 1)
    return F.concat_ws("_", F.lit(uuid.uuid4().hex), F.spark_partition_id().cast("string"), row.cast("string"))


def field_type(schema: T.StructType, name: str) -> T.DataType:
    """Type of a field, which may be nested as in `trip.id`.

    Raises:
        BadInput: There is no such field; it names those that are there.
    """
    kind: T.DataType = schema
    for part in name.split("."):
        if not isinstance(kind, T.StructType) or part not in kind.names:
            raise BadInput(f"column {name!r} is not among the columns {schema.names}", column=name, found=schema.names)
        kind = kind[part].dataType
    return kind


def record_key(schema: T.StructType, fields: Sequence[str], *, composite: bool) -> Column:
    """The record key; null where the JVM refuses the row: a null or empty key, or a composite of nulls alone.

    Args:
        schema: Of the rows.
        fields: Record key fields.
        composite: Whether the key is written `name:value,…`.
    """
    values = [_render(name, field_type(schema, name)) for name in fields]
    if not composite:
        return F.when(values[0] != "", values[0])
    pairs = [F.concat(F.lit(f"{name}:"), _name_missing(value)) for name, value in zip(fields, values, strict=True)]
    useful = [value.isNotNull() & (value != "") for value in values]
    return F.when(reduce(lambda left, right: left | right, useful), F.concat_ws(",", *pairs))


def partition_path(rows: DataFrame, config: TableConfig, times: TimePartition | None) -> Column:
    """The partition path, "" without partition fields; a null or empty value is Hive's default partition.

    Args:
        rows: Which it is for.
        config: Of the table.
        times: How values become folders that are named by times; None if none is.

    Raises:
        BadInput: A partition column is missing, or of a type that names no folder.
    """
    machine_zone = _find_machine_zone(rows) if times and times.needs_machine_zone else "UTC"
    parts = []
    for name in config.partition_fields:
        kind = field_type(rows.schema, name)
        if times and name in config.time_fields:
            folder = F.expr(render_time_path(name, kind, times, machine_zone=machine_zone))
        else:
            value = _render(name, kind)
            folder = F.when(value != "", value)
        parts.append(_name_folder(name, folder, config))
    return F.concat_ws("/", *parts) if parts else F.lit("")


def _find_machine_zone(rows: DataFrame) -> str:
    key = time_partition_keys.ZONE.name
    zone = find_zone_name(find_machine_zone(rows.sparkSession), asked=f"no {key} is given, and that of this machine")
    if zone != "UTC":
        message = f"{key} is not given: folders are named by times in {zone}, the zone of this machine; say the zone"
        warnings.warn(message, UserWarning, stacklevel=2)
    return zone


def _name_folder(name: str, folder: Column, config: TableConfig) -> Column:
    if config.splits_dates:
        folder = F.translate(folder, "-", "/")
    named = F.coalesce(_escape(folder) if config.url_encode else folder, F.lit(DEFAULT_PARTITION))
    return F.concat(F.lit(f"{name}="), named) if config.hive_style else named


def _escape(value: Column) -> Column:
    return reduce(lambda text, char: F.replace(text, F.lit(char), F.lit(f"%{ord(char):02X}")), _ESCAPED, value)


def _name_missing(value: Column) -> Column:
    return F.when(value.isNull(), F.lit(NULL_KEY)).when(value == "", F.lit(EMPTY_KEY)).otherwise(value)


def _render(name: str, kind: T.DataType) -> Column:
    column = F.col(name)
    if isinstance(kind, (T.ArrayType, T.MapType, T.StructType)):
        raise BadInput(
            f"column {name!r} of type {kind.simpleString()} cannot be part of a key or a partition path", column=name
        )
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        return _micros(column, kind).cast("string")
    if isinstance(kind, T.DecimalType):
        # BigDecimal.toString, which turns to exponents for small values; a cast does so in some ANSI modes only.
        return F.when(column.isNotNull(), F.format_string("%s", column))
    if isinstance(kind, T.BinaryType):
        return F.lower(F.hex(column))
    return column.cast("string")


def _micros(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.TimestampNTZType):
        # Read as UTC by way of text: arithmetic on zoneless times passes through the session's zone.
        column = F.concat(column.cast("string"), F.lit("Z")).cast("timestamp")
    return F.unix_micros(column)
