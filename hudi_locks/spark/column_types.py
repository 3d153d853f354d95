"""Types of columns, between Spark and Arrow: Spark's own rules, with what their versions take for granted spelt out."""

from __future__ import annotations

import inspect
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from hudi_locks.errors import UnsupportedTable

__all__ = ["convert", "to_arrow", "to_spark", "widen"]

_ZONE: Final = "timezone"
_NEEDED: Final[dict[str, Any]] = {_ZONE: "UTC"} if _ZONE in inspect.signature(to_arrow_schema).parameters else {}
"""From 4.2 on PySpark must be told the zone that earlier ones name by themselves."""


def to_arrow(columns: T.StructType) -> pa.Schema:
    """The same columns for Arrow; timestamps with a zone are in UTC. Runs on the driver."""
    return to_arrow_schema(columns, **_NEEDED)


def to_spark(columns: pa.Schema) -> T.StructType:
    """The same columns for Spark; timestamps without a zone stay without one. Runs on the driver.

    Raises:
        UnsupportedTable: A column is of a type that Spark does not have.
    """
    return T.StructType([_to_spark(field) for field in widen(columns)])


def _to_spark(field: pa.Field) -> T.StructField:
    try:
        return from_arrow_schema(pa.schema([field]), prefer_timestamp_ntz=True).fields[0]
    except PySparkException as error:
        message = f"column {field.name!r} is of type {field.type}, which this release of Spark does not have"
        advice = "read the others, by columns=[...]"
        raise UnsupportedTable(f"{message}; {advice}", column=field.name, type=str(field.type)) from error


def widen(columns: pa.Schema) -> pa.Schema:
    """The same columns as Spark takes them from Arrow: times in microseconds, bytes of any length."""
    return pa.schema([_widen_field(field) for field in columns])


def _widen_field(field: pa.Field) -> pa.Field:
    return field.with_type(_widen(field.type))


def _widen(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_widen_field(field) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_widen_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _widen_field(kind.item_field))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def convert(column: Column, old: pa.DataType, new: pa.DataType) -> Column:
    """Values of a column that became wider, as JVM readers have them: a float keeps its digits as a double."""
    [field] = to_spark(pa.schema([pa.field("column", new)])).fields
    is_doubled = pa.types.is_float32(old) and pa.types.is_float64(new)
    return (column.cast("string") if is_doubled else column).cast(field.dataType)
