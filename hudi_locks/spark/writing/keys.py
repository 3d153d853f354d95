"""Record keys and partition paths as Spark expressions, rendered as the JVM's key generators render them.

A key that is rendered in another way doubles the row at the next upsert by a JVM writer, so every form here was read
off keys that the JVM made (SimpleKeyGenerator, ComplexKeyGenerator, NonpartitionedKeyGenerator).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's documentation uses
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.errors import BadInput

__all__ = ["field_type", "partition_path", "record_key"]

_NULL_KEY: Final = "__null__"
_EMPTY_KEY: Final = "__empty__"
_DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED: Final = "%\"#'*/:=?\\{[]^\x7f" + "".join(chr(code) for code in range(1, 32))
"""What Hive escapes in a path; "%" first, since the escapes hold it."""


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


def partition_path(schema: T.StructType, fields: Sequence[str], *, hive_style: bool, url_encode: bool) -> Column:
    """The partition path, "" without partition fields; a null or empty value is Hive's default partition."""
    parts = [_partition_part(schema, name, hive_style, url_encode) for name in fields]
    return F.concat_ws("/", *parts) if parts else F.lit("")


def _partition_part(schema: T.StructType, name: str, hive_style: bool, url_encode: bool) -> Column:  # noqa: FBT001
    value = _render(name, field_type(schema, name))
    named = F.when(value.isNull() | (value == ""), F.lit(_DEFAULT_PARTITION)).otherwise(
        _escape(value) if url_encode else value
    )
    return F.concat(F.lit(f"{name}="), named) if hive_style else named


def _escape(value: Column) -> Column:
    return reduce(lambda text, char: F.replace(text, F.lit(char), F.lit(f"%{ord(char):02X}")), _ESCAPED, value)


def _name_missing(value: Column) -> Column:
    return F.when(value.isNull(), F.lit(_NULL_KEY)).when(value == "", F.lit(_EMPTY_KEY)).otherwise(value)


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
