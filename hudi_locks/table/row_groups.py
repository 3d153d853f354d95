"""Row groups of a base file that cannot hold a row which is wanted, as its footer tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timezone
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.format.column_range import ColumnRange
from hudi_locks.storage import Storage
from hudi_locks.table.base_file import open_base_file
from hudi_locks.table.conditions import Condition
from hudi_locks.table.value_ranges import find_kind, to_plain

__all__ = ["choose_row_groups"]

_COMPARED: Final = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32)
"""Besides decimals and times; of floats a footer does not tell NaN."""


def choose_row_groups(
    storage: Storage, path: str, wanted: Condition, *, among: Iterable[int] | None = None
) -> list[int]:
    """Those of a base file that may hold a row which meets the condition.

    Args:
        storage: Of the table.
        path: Of the file.
        wanted: Asked of the ranges that the footer tells.
        among: Only these; all if None.

    Raises:
        DamagedTable: See `read_base_file`.
        StorageError: The store failed.
    """
    with open_base_file(storage, path) as (_, file):
        types = {field.name: field.type for field in file.schema_arrow if _is_compared(field.type)}
        groups = range(file.metadata.num_row_groups) if among is None else among
        return [group for group in groups if wanted.may_hold(dict(_read_ranges(file.metadata.row_group(group), types)))]


def _is_compared(of: pa.DataType) -> bool:
    known = (*_COMPARED, pa.types.is_decimal128, pa.types.is_timestamp)
    return find_kind(of) is not None and any(is_of(of) for is_of in known)


def _read_ranges(group: pq.RowGroupMetaData, types: dict[str, pa.DataType]) -> Iterator[tuple[str, ColumnRange]]:
    for at in range(group.num_columns):
        chunk = group.column(at)
        of, told = types.get(chunk.path_in_schema), chunk.statistics
        if of is not None and told is not None and told.has_min_max and told.has_null_count:
            found = _read_range(told, of, rows=group.num_rows)
            if found is not None:
                yield chunk.path_in_schema, found


def _read_range(told: pq.Statistics, of: pa.DataType, *, rows: int) -> ColumnRange | None:
    """None where the footer has the values in a form that is not known here."""
    kind = find_kind(of)
    try:
        low, high = (pa.scalar(_drop_zone(value, of), of) for value in (told.min, told.max))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    return None if kind is None else ColumnRange(kind, to_plain(low, kind), to_plain(high, kind), rows, told.null_count)


def _drop_zone(value: object, of: pa.DataType) -> object:
    """Times without a zone as such, whatever the footer's reader gives them."""
    if pa.types.is_timestamp(of) and of.tz is None and getattr(value, "tzinfo", None) is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)  # type: ignore[attr-defined]
    return value
