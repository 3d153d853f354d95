"""Statistics of columns, as the footers of base files tell them (Hudi's ParquetUtils and HoodieTableMetadataUtil)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow.parquet as pq

from hudi_locks.format import column_range as kinds
from hudi_locks.format.column_range import ColumnRange, ValueKind, decimal_kind, unite_ranges
from hudi_locks.format.metadata_record import Bound, ColumnStatistics, order_value
from hudi_locks.format.records import reading_parquet
from hudi_locks.storage import Storage

__all__ = ["describe_range", "has_room", "hides_some", "read_ranges", "unwrap_bound"]

_VERSION_9: Final = 9
_DECIMAL_DIGITS: Final = 15
"""Digits before and behind the point that a decimal may have in a table of version 8."""
_EXACT: Final = Context(prec=80)


_PLAIN: Final[Mapping[tuple[str, str], ValueKind]] = {
    ("BOOLEAN", "NONE"): kinds.BOOLEAN,
    ("INT32", "NONE"): kinds.INT,
    ("INT32", "DATE"): kinds.DATE,
    ("INT64", "NONE"): kinds.LONG,
    ("FLOAT", "NONE"): kinds.FLOAT,
    ("DOUBLE", "NONE"): kinds.DOUBLE,
    ("BYTE_ARRAY", "STRING"): kinds.STRING,
    ("BYTE_ARRAY", "NONE"): kinds.BYTES,
}
"""By Parquet's physical and logical type."""


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
        return decimal_kind(column.precision, column.scale)
    if logical == "TIMESTAMP":
        told = json.loads(column.logical_type.to_json())
        is_exact = column.physical_type == "INT64" and told["timeUnit"] == "microseconds"
        return (kinds.TIMESTAMP if told["isAdjustedToUTC"] else kinds.LOCAL_TIMESTAMP) if is_exact else None
    if logical == "INT" and column.physical_type in ("INT32", "INT64"):
        is_signed = json.loads(column.logical_type.to_json())["isSigned"]
        return (kinds.INT if column.physical_type == "INT32" else kinds.LONG) if is_signed else None
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
    if not has_room(kind, version):
        raise ValueError(f"a decimal({kind.precision},{kind.scale}) has no place in a metadata table of version 8")
    return Bound(kind.wrapper, _EXACT.scaleb(Decimal(value), -kind.scale))


def has_room(kind: ValueKind, version: int) -> bool:
    """Whether records of a metadata table of `version` can hold values of a kind; JVM Hudi keeps none of the others."""
    digits = max(kind.scale, kind.precision - kind.scale)
    return version >= _VERSION_9 or kind.name != "decimal" or digits <= _DECIMAL_DIGITS


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
    low, high = (order_value(unwrap_bound(bound, found.kind)) for bound in (told.low, told.high))
    return bool(low > order_value(found.low) or high < order_value(found.high))


def unwrap_bound(bound: Bound, kind: ValueKind) -> Any:
    """The value of a bound in the form of `ColumnRange`."""
    if isinstance(bound.value, Decimal):
        return int(_EXACT.scaleb(bound.value, kind.scale))
    if kind.name == "decimal" and isinstance(bound.value, bytes):
        return int.from_bytes(bound.value, "big", signed=True)
    return bound.value
