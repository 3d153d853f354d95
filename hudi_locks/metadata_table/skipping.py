"""Ranges of the values in file slices, as the metadata table tells them, for readers that pass over files.

Not all that it tells is believed: see docs/pipeline.md, "Filters".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hudi_locks.format import MetadataPartition
from hudi_locks.format.column_range import ColumnRange, ValueKind, unite_ranges
from hudi_locks.format.metadata_keys import column_stats_key
from hudi_locks.format.metadata_record import ColumnStatistics, MetadataRecord
from hudi_locks.metadata_table.metadata_table import MetadataView
from hudi_locks.metadata_table.statistics import unwrap_bound
from hudi_locks.table import FileSlice

__all__ = ["find_slice_ranges"]

_BELIEVED: Final = frozenset({"boolean", "int", "long", "date", "timestamp", "local timestamp", "decimal"})
"""JVM Hudi makes ranges of floats and long texts too narrow: it passes over row groups whose footer tells none."""
_VERSION_9: Final = 9


def find_slice_ranges(
    view: MetadataView, slices: Sequence[FileSlice], kinds: Mapping[str, ValueKind]
) -> list[dict[str, ColumnRange]]:
    """For each slice the range of each column that is known of all of its files.

    Args:
        view: Of the metadata table.
        slices: Some of the table, with the files that are read.
        kinds: The columns in question, and what their values are.

    Raises:
        DamagedTable: Its records cannot be read.
        StorageError: The store failed.
    """
    wanted = {column: kind for column, kind in kinds.items() if kind.name in _BELIEVED}
    if not wanted or not slices or MetadataPartition.COLUMN_STATS.value not in view.table.names:
        return [{} for _ in slices]
    keys = {_find_key(column, piece, path) for piece in slices for path in piece.paths for column in wanted}
    records = view.read(MetadataPartition.COLUMN_STATS, keys=keys)
    return [_unite_files(piece, wanted, records, version=view.table.version) for piece in slices]


def _find_key(column: str, piece: FileSlice, path: str) -> str:
    return column_stats_key(column, piece.partition, path.rpartition("/")[2])


def _unite_files(
    piece: FileSlice, kinds: Mapping[str, ValueKind], records: Mapping[str, MetadataRecord], *, version: int
) -> dict[str, ColumnRange]:
    found = {}
    for column, kind in kinds.items():
        told = (records.get(_find_key(column, piece, path)) for path in piece.paths)
        ranges = (None if one is None else _read_range(one.statistics, kind, version=version) for one in told)
        if (united := _unite(ranges)) is not None:
            found[column] = united
    return found


def _unite(ranges: Iterable[ColumnRange | None]) -> ColumnRange | None:
    """None if one of them is not known."""
    united: ColumnRange | None = None
    for found in ranges:
        if found is None:
            return None
        united = found if united is None else unite_ranges(united, found)
    return united


def _read_range(told: ColumnStatistics | None, kind: ValueKind, *, version: int) -> ColumnRange | None:
    """None where the statistics are not of this kind, as those of a file that is older than a change of the type."""
    if told is None or told.is_deleted or told.values <= 0 or not _fits(told, kind, version=version):
        return None
    if told.nulls == told.values:
        return ColumnRange(kind, None, None, told.values, told.nulls)
    if told.low is None or told.high is None:
        return None
    low, high = unwrap_bound(told.low, kind), unwrap_bound(told.high, kind)
    return ColumnRange(kind, low, high, told.values, told.nulls)


def _fits(told: ColumnStatistics, kind: ValueKind, *, version: int) -> bool:
    if version >= _VERSION_9:
        return told.value_type == (kind.ordinal, kind.detail)
    return all(bound is None or bound.wrapper == kind.wrapper for bound in (told.low, told.high))
