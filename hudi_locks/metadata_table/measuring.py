"""Ranges of the values in files that are there, for a metadata table that is made after them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from hudi_locks.errors import NoSuchFile
from hudi_locks.format import META_COLUMNS
from hudi_locks.format import column_range as kinds
from hudi_locks.format.column_range import ColumnRange, ValueKind
from hudi_locks.metadata_table.statistics import has_room, read_ranges
from hudi_locks.storage import Storage
from hudi_locks.table import BaseFile, LogFile, read_base_file, read_log
from hudi_locks.table.value_ranges import ValueRanges, find_kind

__all__ = ["MEASURED_COLUMNS", "choose_columns", "measure_file"]

MEASURED_COLUMNS: Final = 32
"""Of so many of the user's columns JVM Hudi keeps statistics, unless it is told otherwise."""
_ALWAYS: Final = (META_COLUMNS[0], META_COLUMNS[3], META_COLUMNS[2])
"""In the order in which JVM Hudi lists them: commit time, partition path, record key."""
_INEXACT: Final = (kinds.FLOAT, kinds.DOUBLE)
"""Of these a footer of Arrow leaves NaN out."""


def choose_columns(
    schema: pa.Schema, *, version: int, names: Collection[str] = (), most: int = MEASURED_COLUMNS
) -> dict[str, ValueKind]:
    """The columns of which JVM Hudi would keep statistics, and what their values are.

    Args:
        schema: Of the user's columns.
        version: Of the metadata table.
        names: Of these columns, as far as they have ranges; of the first that have, if none is named.
        most: How many of the first.
    """
    found = {field.name: kind for field in schema if (kind := find_kind(field.type)) and has_room(kind, version)}
    chosen = [name for name in found if name in names] if names else list(found)[:most]
    return dict.fromkeys(_ALWAYS, kinds.STRING) | {name: found[name] for name in chosen}


def measure_file(
    storage: Storage, file: BaseFile | LogFile, columns: Mapping[str, ValueKind], *, is_mixed: bool = False
) -> Mapping[str, ColumnRange] | None:
    """The range of each column in a file; none of a log without rows. A column that the file lacks is null there.

    A column is left out if the file has it with values of another kind, as before its type was widened.

    Args:
        storage: Of the table.
        file: Which.
        columns: What the values of each column are.
        is_mixed: Whether a log may hold blocks of several writes, and such as take others out, as in version 6.

    Returns:
        None if the file is gone.

    Raises:
        DamagedTable: It cannot be read.
        StorageError: The store failed.
        UnsupportedTable: A block of a log is of a kind that is not read here.
    """
    if not columns:
        return {}
    try:
        if isinstance(file, LogFile):
            return _measure_log(storage, file.path, columns, is_mixed=is_mixed)
        return _measure_base_file(storage, file.path, columns)
    except NoSuchFile:
        return None


def _measure_base_file(storage: Storage, path: str, columns: Mapping[str, ValueKind]) -> Mapping[str, ColumnRange]:
    told = read_ranges(storage, path, columns)
    exact = {name: found for name, found in told.items() if found.kind not in _INEXACT}
    lacking = [name for name in columns if name not in exact]
    if not lacking:
        return _choose(exact, columns)
    rows = read_base_file(storage, path, columns=lacking)
    return _choose({**exact, **_measure(rows, lacking, columns)}, columns)


def _measure_log(
    storage: Storage, path: str, columns: Mapping[str, ValueKind], *, is_mixed: bool
) -> Mapping[str, ColumnRange]:
    data = storage.read(path)
    if data is None:
        raise NoSuchFile(f"cannot open {path!r}: it is not there", path=path)
    entries = read_log(data, path, columns=tuple(columns), takes=(lambda _: True) if is_mixed else None)
    rows = (entry.whole for entry in entries if entry.orderings is None)
    return _choose(_measure(rows, list(columns), columns), columns)


def _measure(
    tables: Iterable[pa.Table], names: Sequence[str], columns: Mapping[str, ValueKind]
) -> dict[str, ColumnRange]:
    """Of columns that no table has, that all is null."""
    ranges, seen, count = ValueRanges(names), set[str](), 0
    for rows in tables:
        ranges.add(rows)
        seen.update(rows.column_names)
        count += rows.num_rows
    nulls = {name: ColumnRange(columns[name], None, None, count, count) for name in names if name not in seen}
    return {**nulls, **ranges.found()} if count else {}


def _choose(found: Mapping[str, ColumnRange], columns: Mapping[str, ValueKind]) -> Mapping[str, ColumnRange]:
    return {name: told for name, told in found.items() if told.kind == columns[name]}
