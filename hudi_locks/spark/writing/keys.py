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

from hudi_locks import errors
from hudi_locks.config import datasource_keys, time_partition_keys
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

_EPOCH: Final = "1970-01-01 00:00:00"
_FIRST_MS: Final = -12_212_553_600_000 + 86_400_000
"""A day after 1 January 1583: before, Java writes times by another calendar."""
_END_MS: Final = 253_402_300_800_000 - 86_400_000
"""A day before the year 10000."""
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
    user: DataFrame, config: TableConfig, times: TimePartition | None, *, composite: bool, as_text: bool = False
) -> KeyColumns:
    """How the table keys these rows.

    Args:
        user: The rows.
        config: Of the table.
        times: See `partition_path`.
        composite: See `record_key`.
        as_text: Whether timestamps are written as text in the zone of this machine, and not as microseconds since 1970.

    Raises:
        BadInput: A key or partition column is missing, or of a type that has no key form.
    """
    fields = config.record_key_fields
    zone = _find_text_zone(user, fields) if as_text else None
    key = record_key(user.schema, fields, composite=composite, zone=zone) if fields else _make_keys()
    return KeyColumns(key, partition_path(user, config, times, as_text=as_text))


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


def record_key(schema: T.StructType, fields: Sequence[str], *, composite: bool, zone: str | None = None) -> Column:
    """The record key; null where the JVM refuses the row: a null or empty key, or a composite of nulls alone.

    Args:
        schema: Of the rows.
        fields: Record key fields.
        composite: Whether the key is written `name:value,…`.
        zone: In which timestamps are written as text; None for microseconds since 1970.
    """
    values = [_render(name, field_type(schema, name), zone) for name in fields]
    if not composite:
        return F.when(values[0] != "", values[0])
    pairs = [F.concat(F.lit(f"{name}:"), _name_missing(value)) for name, value in zip(fields, values, strict=True)]
    useful = [value.isNotNull() & (value != "") for value in values]
    return F.when(reduce(lambda left, right: left | right, useful), F.concat_ws(",", *pairs))


def partition_path(
    rows: DataFrame, config: TableConfig, times: TimePartition | None, *, as_text: bool = False
) -> Column:
    """The partition path, "" without partition fields; a null or empty value is Hive's default partition.

    Args:
        rows: Which it is for.
        config: Of the table.
        times: How values become folders that are named by times; None if none is.
        as_text: See `make_key_columns`.

    Raises:
        BadInput: A partition column is missing, or of a type that names no folder.
    """
    zone = _find_text_zone(rows, config.partition_fields) if as_text else None
    machine_zone = _find_folder_zone(rows) if times and times.needs_machine_zone else "UTC"
    parts = []
    for name in config.partition_fields:
        kind = field_type(rows.schema, name)
        if times and name in config.time_fields:
            folder = F.expr(render_time_path(name, kind, times, machine_zone=machine_zone))
        else:
            value = _render(name, kind, zone)
            folder = F.when(value != "", value)
        parts.append(_name_folder(name, folder, config))
    return F.concat_ws("/", *parts) if parts else F.lit("")


def _find_folder_zone(rows: DataFrame) -> str:
    key = time_partition_keys.ZONE.name
    return _find_machine_zone(rows, f"{key} is not given", done="folders are named", advice="say the zone")


def _find_text_zone(rows: DataFrame, fields: Sequence[str]) -> str | None:
    """The zone of this machine, if a timestamp is among the fields."""
    if not any(isinstance(field_type(rows.schema, name), T.TimestampType) for name in fields):
        return None
    key = datasource_keys.CONSISTENT_LOGICAL_TIMESTAMP.name
    advice = "all writers need the same zone"
    return _find_machine_zone(rows, f"{key}=true is given", done="keys are written", advice=advice)


def _find_machine_zone(rows: DataFrame, given: str, *, done: str, advice: str) -> str:
    """It, with a warning where it is not UTC, which says what is done by it."""
    zone = find_zone_name(find_machine_zone(rows.sparkSession), asked=f"{given}, and the zone of this machine")
    if zone != "UTC":
        message = f"{given}: {done} by times in {zone}, the zone of this machine; {advice}"
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


def _render(name: str, kind: T.DataType, zone: str | None) -> Column:
    column = F.col(name)
    if isinstance(kind, (T.ArrayType, T.MapType, T.StructType)):
        raise BadInput(
            f"column {name!r} of type {kind.simpleString()} cannot be part of a key or a partition path", column=name
        )
    if isinstance(kind, T.TimestampType) and zone is not None:
        return _write_time(column, name, zone)
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        return _micros(column, kind).cast("string")
    if isinstance(kind, T.DecimalType):
        # BigDecimal.toString, which turns to exponents for small values; a cast does so in some ANSI modes only.
        return F.when(column.isNotNull(), F.format_string("%s", column))
    if isinstance(kind, T.BinaryType):
        return F.lower(F.hex(column))
    return column.cast("string")


def _write_time(column: Column, name: str, zone: str) -> Column:
    """As java.sql.Timestamp writes it: to the millisecond, towards zero, with one digit of a fraction at least."""
    past_ms = (F.unix_micros(column).cast("decimal(20, 0)") / F.lit(1000)).cast("long")  # exact, unlike a double
    since = F.make_dt_interval(secs=past_ms.cast("decimal(18, 3)") / F.lit(1000))
    local = F.convert_timezone(F.lit("UTC"), F.lit(zone), F.lit(_EPOCH).cast("timestamp_ntz") + since)
    text = local.cast("string")
    written = F.when(text.contains("."), text).otherwise(F.concat(text, F.lit(".0")))
    reason = f"{errors.__name__}.BadInput: column {name!r} is part of a key, and has a time before 1583 or after 9999"
    in_range = (past_ms >= _FIRST_MS) & (past_ms < _END_MS)
    return F.when(column.isNull(), F.lit(None)).when(in_range, written).otherwise(F.raise_error(F.lit(reason)))


def _micros(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.TimestampNTZType):
        # Read as UTC by way of text: arithmetic on zoneless times passes through the session's zone.
        column = F.concat(column.cast("string"), F.lit("Z")).cast("timestamp")
    return F.unix_micros(column)
