"""Ranges of the values that a task writes, while it has them as Arrow columns.

A footer does not tell them all: Arrow's Parquet writer leaves NaN and long texts out of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Context
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_locks.format import column_range as kinds
from hudi_locks.format.column_range import ColumnRange, ValueKind, decimal_kind, unite_ranges

__all__ = ["ValueRanges", "find_kind", "to_plain"]

_EXACT: Final = Context(prec=80)
"""Python's own has room for fewer digits than a decimal of Arrow."""
_PLAIN: Final[Mapping[pa.DataType, ValueKind]] = {
    pa.bool_(): kinds.BOOLEAN,
    pa.int8(): kinds.INT,
    pa.int16(): kinds.INT,
    pa.int32(): kinds.INT,
    pa.int64(): kinds.LONG,
    pa.float32(): kinds.FLOAT,
    pa.float64(): kinds.DOUBLE,
    pa.string(): kinds.STRING,
    pa.large_string(): kinds.STRING,
    pa.binary(): kinds.BYTES,
    pa.large_binary(): kinds.BYTES,
    pa.date32(): kinds.DATE,
    pa.timestamp("us"): kinds.LOCAL_TIMESTAMP,
}


def find_kind(of: pa.DataType) -> ValueKind | None:
    """What values of an Arrow type are in statistics; None for those of which Hudi keeps none, as of nested ones."""
    if pa.types.is_dictionary(of):
        return find_kind(of.value_type)
    if pa.types.is_decimal128(of):
        return decimal_kind(of.precision, of.scale)
    if pa.types.is_timestamp(of) and of.unit == "us" and of.tz is not None:
        return kinds.TIMESTAMP
    return _PLAIN.get(of)


def _unite(before: ColumnRange, seen: ColumnRange, name: str) -> ColumnRange:
    """Both together; a range that left one out would hide rows."""
    united = unite_ranges(before, seen)
    if united is None:
        raise TypeError(f"column {name} of one file has values of kind {before.kind} and of kind {seen.kind}")
    return united


class ValueRanges:
    """What is known of some columns of the rows that it was shown; not thread-safe. Runs on executors.

    Args:
        columns: Names of the columns; those that rows lack are null in all of them.
    """

    def __init__(self, columns: Collection[str]) -> None:
        self._columns = tuple(columns)
        self._found: dict[str, ColumnRange] = {}

    def add(self, rows: pa.Table) -> None:
        """Widen the ranges to the values of these rows, which all have the same types."""
        for name in self._columns:
            if name not in rows.column_names or (kind := find_kind(rows.schema.field(name).type)) is None:
                continue
            seen = _measure(rows.column(name), kind)
            before = self._found.get(name)
            self._found[name] = seen if before is None else _unite(before, seen, name)

    def found(self, footer: pq.FileMetaData | None = None) -> dict[str, ColumnRange]:
        """The range of each column of which there may be statistics.

        Args:
            footer: Of the file that the rows went to, which tells how many bytes they take; unknown if None.
        """
        sizes = {} if footer is None else _read_sizes(footer)
        return {name: _with_sizes(told, sizes.get(name)) for name, told in self._found.items()}


def _measure(values: pa.ChunkedArray, kind: ValueKind) -> ColumnRange:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    low, high = _bound(values, kind)
    return ColumnRange(kind, low, high, len(values), values.null_count)


def _bound(values: pa.ChunkedArray, kind: ValueKind) -> tuple[Any, Any]:
    """Arrow's least and greatest pass over NaN, which is greater than every number for Spark."""
    found = pc.min_max(values)
    low, high = (to_plain(found[name], kind) for name in ("min", "max"))
    if kind in (kinds.FLOAT, kinds.DOUBLE) and pc.any(pc.is_nan(values)).as_py():
        return (float("nan") if low is None or low != low else low), float("nan")  # NaN is not itself
    return low, high


def to_plain(value: pa.Scalar, kind: ValueKind) -> Any:
    """As `ColumnRange` has it."""
    if not value.is_valid:
        return None
    if kind.name == "decimal":
        return int(_EXACT.scaleb(value.as_py(), kind.scale))
    if kind is kinds.DATE:
        return value.cast(pa.int32()).as_py()
    if kind in (kinds.TIMESTAMP, kinds.LOCAL_TIMESTAMP):
        return value.cast(pa.int64()).as_py()
    return value.as_py()


def _read_sizes(footer: pq.FileMetaData) -> dict[str, tuple[int, int]]:
    sizes: dict[str, tuple[int, int]] = {}
    for group in range(footer.num_row_groups):
        for at in range(footer.num_columns):
            chunk = footer.row_group(group).column(at)
            packed, plain = sizes.get(chunk.path_in_schema, (0, 0))
            sizes[chunk.path_in_schema] = (
                packed + chunk.total_compressed_size,
                plain + chunk.total_uncompressed_size,
            )
    return sizes


def _with_sizes(told: ColumnRange, sizes: tuple[int, int] | None) -> ColumnRange:
    return told if sizes is None else replace(told, size=sizes[0], plain_size=sizes[1])
