"""Statistics of columns, as the footers of base files tell them (Hudi's ParquetUtils and HoodieTableMetadataUtil).

A filter passes over a file whose range cannot hold what it looks for. So a range that is too narrow hides rows, and
where the range is not known there must be no statistics at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import Any, Final

import pyarrow.parquet as pq

from hudi_locks.format.metadata_record import Bound, ColumnStatistics, order_value
from hudi_locks.format.records import reading_parquet
from hudi_locks.storage import Storage

__all__ = ["ColumnRange", "ValueKind", "describe_range", "hides_some", "read_ranges", "unite_ranges"]

_VERSION_9: Final = 9
_DECIMAL_DIGITS: Final = 15
"""Digits before and behind the point that a decimal may have in a table of version 8."""
_EXACT: Final = Context(prec=80)


@dataclass(frozen=True)
class ValueKind:
    """What the values of a column are.

    Attributes:
        name: One of those below.
        ordinal: The number that version 9 has for it.
        wrapper: Record in which version 8 wraps a bound.
        precision: Digits of a decimal; else 0.
        scale: How many of them are behind its point.
    """

    name: str
    ordinal: int
    wrapper: str
    precision: int = 0
    scale: int = 0

    @property
    def detail(self) -> str | None:
        """What version 9 says of it besides."""
        return f"{self.precision},{self.scale}" if self.name == "decimal" else None


_BOOLEAN: Final = ValueKind("boolean", 2, "BooleanWrapper")
_INT: Final = ValueKind("int", 3, "IntWrapper")
_LONG: Final = ValueKind("long", 4, "LongWrapper")
_FLOAT: Final = ValueKind("float", 5, "FloatWrapper")
_DOUBLE: Final = ValueKind("double", 6, "DoubleWrapper")
_STRING: Final = ValueKind("string", 7, "StringWrapper")
_BYTES: Final = ValueKind("bytes", 8, "BytesWrapper")
_DATE: Final = ValueKind("date", 12, "DateWrapper")
_INSTANT: Final = ValueKind("timestamp", 16, "LongWrapper")
_LOCAL: Final = ValueKind("local timestamp", 19, "LongWrapper")
_PLAIN: Final[Mapping[tuple[str, str], ValueKind]] = {
    ("BOOLEAN", "NONE"): _BOOLEAN,
    ("INT32", "NONE"): _INT,
    ("INT32", "DATE"): _DATE,
    ("INT64", "NONE"): _LONG,
    ("FLOAT", "NONE"): _FLOAT,
    ("DOUBLE", "NONE"): _DOUBLE,
    ("BYTE_ARRAY", "STRING"): _STRING,
    ("BYTE_ARRAY", "NONE"): _BYTES,
}
"""By Parquet's physical and logical type."""


@dataclass(frozen=True)
class ColumnRange:
    """What is known of the values of a column in one file or several.

    Attributes:
        kind: What they are.
        low: No value is less, in Python's form: int, float, bool, str, bytes; of a decimal the unscaled int, of a date
            days, of a timestamp microseconds. None where every value is null. NaN is greater than every number.
        high: No value is greater.
        values: How many there are, nulls among them.
        nulls: How many of them are null.
        size: Bytes on disk.
        plain_size: The same before they were packed.
    """

    kind: ValueKind
    low: Any
    high: Any
    values: int
    nulls: int
    size: int = 0
    plain_size: int = 0


def read_ranges(storage: Storage, path: str, columns: Collection[str]) -> dict[str, ColumnRange]:
    """What the footer of a base file tells of some columns; one that it does not tell all of is left out.

    Args:
        storage: Of the table.
        path: Of the file, relative to the base path.
        columns: Names of columns that are not nested.

    Raises:
        DamagedTable: It is no Parquet file.
        NoSuchFile: It is gone.
        StorageError: The store failed.
    """
    with storage.open_input(path) as source, reading_parquet("a base file", path):
        metadata = pq.ParquetFile(source).metadata
        places = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
        found = ((name, _read_range(metadata, places[name])) for name in columns if name in places)
        return {name: told for name, told in found if told is not None}


def _find_kind(column: pq.ColumnSchema) -> ValueKind | None:
    """What the values of a column of a Parquet file are; None for those of which Hudi keeps no statistics."""
    logical = column.logical_type.type
    if column.max_repetition_level:
        return None
    if logical == "DECIMAL":
        return ValueKind("decimal", 10, "DecimalWrapper", column.precision, column.scale)
    if logical == "TIMESTAMP":
        told = json.loads(column.logical_type.to_json())
        is_exact = column.physical_type == "INT64" and told["timeUnit"] == "microseconds"
        return (_INSTANT if told["isAdjustedToUTC"] else _LOCAL) if is_exact else None
    if logical == "INT" and column.physical_type in ("INT32", "INT64"):
        is_signed = json.loads(column.logical_type.to_json())["isSigned"]
        return (_INT if column.physical_type == "INT32" else _LONG) if is_signed else None
    return _PLAIN.get((column.physical_type, logical))


def _read_range(metadata: pq.FileMetaData, at: int) -> ColumnRange | None:
    kind = _find_kind(metadata.schema.column(at))
    found = None if kind is None else ColumnRange(kind, None, None, 0, 0)
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(at)
        told = None if found is None else _read_chunk(chunk, found.kind)
        found = None if found is None or told is None else unite_ranges(found, told)
    return found


def _read_chunk(chunk: pq.ColumnChunkMetaData, kind: ValueKind) -> ColumnRange | None:
    stats = chunk.statistics
    if stats is None or not stats.has_null_count:
        return None
    sizes = (chunk.num_values, stats.null_count, chunk.total_compressed_size, chunk.total_uncompressed_size)
    if stats.null_count == chunk.num_values:
        return ColumnRange(kind, None, None, *sizes)
    if not stats.has_min_max:
        return None
    return ColumnRange(kind, _plain(stats.min_raw, kind), _plain(stats.max_raw, kind), *sizes)


def _plain(raw: Any, kind: ValueKind) -> Any:
    if kind.name == "string":
        return raw.decode()
    return int.from_bytes(raw, "big", signed=True) if kind.name == "decimal" and isinstance(raw, bytes) else raw


def unite_ranges(one: ColumnRange, other: ColumnRange) -> ColumnRange | None:
    """What is known of the values of both together; None if they cannot be compared."""
    if one.kind != other.kind:
        return None
    return ColumnRange(
        one.kind,
        _choose(one.low, other.low, partial(min, key=order_value)),
        _choose(one.high, other.high, partial(max, key=order_value)),
        one.values + other.values,
        one.nulls + other.nulls,
        one.size + other.size,
        one.plain_size + other.plain_size,
    )


def _choose(one: Any, other: Any, choose: Callable[[Any, Any], Any]) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def describe_range(found: ColumnRange, column: str, *, file_name: str, version: int) -> ColumnStatistics:
    """The statistics of a column in a file, as a metadata table of `version` has them.

    Raises:
        ValueError: A decimal has more digits than records of version 8 have room for.
    """
    low, high = (None if value is None else _wrap(value, found.kind, version) for value in (found.low, found.high))
    return ColumnStatistics(
        file_name,
        column,
        low,
        high,
        values=found.values,
        nulls=found.nulls,
        size=found.size,
        plain_size=found.plain_size,
        value_type=(found.kind.ordinal, found.kind.detail) if version >= _VERSION_9 else None,
    )


def _wrap(value: Any, kind: ValueKind, version: int) -> Bound:
    if version >= _VERSION_9:
        if kind.name == "decimal":
            return Bound("BytesWrapper", _shortest(value))
        return Bound("IntWrapper" if kind.name == "date" else kind.wrapper, value)
    if kind.name != "decimal":
        return Bound(kind.wrapper, value)
    if max(kind.scale, kind.precision - kind.scale) > _DECIMAL_DIGITS:
        raise ValueError(f"a decimal({kind.precision},{kind.scale}) has no place in a metadata table of version 8")
    return Bound(kind.wrapper, _EXACT.scaleb(Decimal(value), -kind.scale))


def _shortest(value: int) -> bytes:
    """An int in two's complement, in as few bytes as it needs, as Java's BigInteger has it."""
    bits = (value if value >= 0 else ~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def hides_some(told: ColumnStatistics, found: ColumnRange) -> bool:
    """Whether a filter that goes by `told` may pass over values that are there, which `found` tells."""
    if told.is_deleted:
        return False
    if found.low is None:
        return found.nulls > 0 and told.nulls == 0
    if told.low is None or told.high is None:
        return True
    low, high = (order_value(_unwrap(bound, found.kind)) for bound in (told.low, told.high))
    return bool(low > order_value(found.low) or high < order_value(found.high))


def _unwrap(bound: Bound, kind: ValueKind) -> Any:
    if isinstance(bound.value, Decimal):
        return int(_EXACT.scaleb(bound.value, kind.scale))
    if kind.name == "decimal" and isinstance(bound.value, bytes):
        return int.from_bytes(bound.value, "big", signed=True)
    return bound.value
