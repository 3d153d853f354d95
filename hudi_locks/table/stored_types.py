"""The types with which base files hold columns that later writes widened (Hudi's schema evolution on write).

A base file keeps the types of the write that made it, and the schema in the metadata of that write names them. What is
archived is not looked up: types only ever widen, so where the oldest of these files has those of the table, all have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import arrow_schema
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.altered_columns import ColumnHistory
from hudi_locks.table.base_file import read_file_schema
from hudi_locks.table.data_files import BaseFile, LogFile
from hudi_locks.table.table import read_commit_files
from hudi_locks.timeline import Timeline

__all__ = ["StoredTypes", "find_stored_types", "refuse_inexact"]


@dataclasses.dataclass(frozen=True)
class StoredColumn:
    """A column that a file has in another way than the table.

    Attributes:
        name: Of the column in the table.
        field: As the file has it; None where it has none, or another one of this name.
    """

    name: str
    field: pa.Field | None


StoredTypes = tuple[StoredColumn, ...]
"""The columns that a file has in another way than the table."""

_FLOATS: Final = (pa.float32(), pa.float64())
_WIDER: Final[Mapping[pa.DataType, frozenset[pa.DataType]]] = {
    pa.int32(): frozenset((pa.int64(), *_FLOATS, pa.string())),
    pa.int64(): frozenset((*_FLOATS, pa.string())),
    pa.float32(): frozenset((pa.float64(), pa.string())),
    pa.float64(): frozenset((pa.string(),)),
    pa.binary(): frozenset((pa.string(),)),
    pa.string(): frozenset((pa.binary(),)),
}
"""What JVM writers let a column become."""
_Names = tuple[tuple[str, "str | None"], ...]
_ADVICE: Final = "read the other columns, by columns=[...], or copy the table to a new one with JVM Hudi"
_MOST: Final = 10_000
"""Of so many files whose commits are archived the types are remembered."""


def find_stored_types(
    storage: Storage,
    timeline: Timeline,
    files: Iterable[BaseFile],
    columns: pa.Schema,
    *,
    history: ColumnHistory | None = None,
) -> dict[StoredTypes, list[BaseFile]]:
    """Some base files by the columns that they hold otherwise than `columns`; () for those that have the same.

    It reads the commits that a snapshot has read before, and of files whose commits are archived one footer, or all
    where that one differs.

    Args:
        storage: Of the table.
        timeline: Says which commits are active.
        files: Some.
        columns: Those that are read, as the table has them now.
        history: Of a table in which ALTER TABLE changed some.

    Raises:
        UnsupportedTable: A column became something into which no value can be turned, or is nested and changed inside.
        DamagedTable: A schema or a footer cannot be read.
    """
    schemas = _Schemas(storage, timeline, columns, history)
    groups: dict[StoredTypes, list[BaseFile]] = {}
    untold: list[BaseFile] = []
    for file in files:
        found = schemas.find(file)
        untold.append(file) if found is None else groups.setdefault(found, []).append(file)
    for file, found in schemas.read_footers(untold):
        groups.setdefault(found, []).append(file)
    return groups


def refuse_inexact(
    storage: Storage,
    timeline: Timeline,
    files: Iterable[BaseFile | LogFile],
    columns: pa.Schema,
    *,
    history: ColumnHistory | None = None,
) -> None:
    """Refuse slices with logs in which a number with a fraction is to become text: Arrow writes it otherwise than Java.

    Raises:
        UnsupportedTable: There is such a column; it is named.
    """
    schemas = _Schemas(storage, timeline, columns, history)
    for file in files:
        for stored in schemas.find(file) or ():
            field, wanted = stored.field, columns.field(stored.name).type
            if field is not None and field.type in _FLOATS and wanted == pa.string():
                raise _refuse(file.path, field, wanted, "and rows of logs with both are not merged here")


class _Schemas:
    """What commits say of the types in their files; each schema is compared once."""

    def __init__(self, storage: Storage, timeline: Timeline, columns: pa.Schema, history: ColumnHistory | None) -> None:
        self._storage = storage
        self._columns = columns
        self._history = history
        self._named = read_commit_files(storage, timeline)
        self._known: dict[tuple[str, _Names], StoredTypes] = {}

    def find(self, file: BaseFile | LogFile) -> StoredTypes | None:
        """By the commit of the file; None if that is archived, or names no columns."""
        commit = self._named.get(file.instant)
        if commit is None or commit.schema is None:
            return None
        names = self._find_names(file)
        known = (commit.schema, names)
        if known not in self._known:
            declared = arrow_schema(commit.schema, f"the commit {file.instant}")
            self._known[known] = compare_types(declared, self._columns, file.path, names=names)
        return self._known[known]

    def read_footers(self, files: Sequence[BaseFile]) -> Iterator[tuple[BaseFile, StoredTypes]]:
        """The same by the footers of files, the oldest first."""
        ordered = sorted(files, key=lambda file: file.instant)
        if ordered and self._history is None and not self._read_footer(ordered[0]):
            yield from ((file, ()) for file in ordered)
        else:
            yield from zip(ordered, map_in_threads(self._read_footer, ordered), strict=True)

    def _read_footer(self, file: BaseFile) -> StoredTypes:
        stored = _read_stored(_Place(self._storage.place, file.path, self._storage))
        return compare_types(stored, self._columns, file.path, names=self._find_names(file))

    def _find_names(self, file: BaseFile | LogFile) -> _Names:
        return () if self._history is None else tuple(self._history.find_names(file.instant).items())


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a base file lies. Whichever storage reads it makes no difference."""

    table: Hashable
    path: str
    storage: Storage = dataclasses.field(compare=False)


@lru_cache(maxsize=_MOST)
def _read_stored(place: _Place) -> pa.Schema:
    """A base file never changes."""
    return read_file_schema(place.storage, place.path)


def compare_types(stored: pa.Schema, columns: pa.Schema, path: str, *, names: _Names = ()) -> StoredTypes:
    """The stored columns that `columns` has with a wider type; columns that only one of both has are passed over.

    Args:
        stored: Columns of the file.
        columns: Of the table.
        path: Of the file.
        names: Of columns of the table, what files of that time call them; None for those that they lack.

    Raises:
        UnsupportedTable: See `find_stored_types`; it names `path`.
    """
    called, changed = dict(names), []
    for column in columns:
        there = called.get(column.name, column.name)
        field = stored.field(there) if there is not None and there in stored.names else None
        if field is not None and _differs(field.type, column.type) and not _can_become(field.type, column.type):
            raise _refuse(path, field, column.type, "and files of both are not read together")
        if _is_elsewhere(column, field, there, stored):
            changed.append(StoredColumn(column.name, field))
    return tuple(changed)


def _is_elsewhere(column: pa.Field, field: pa.Field | None, there: str | None, stored: pa.Schema) -> bool:
    """Whether reading the column by its name and type would give something else than the file has of it."""
    if field is None:
        return there != column.name and column.name in stored.names
    return there != column.name or _differs(field.type, column.type)


def _differs(old: pa.DataType, new: pa.DataType) -> bool:
    """Names of elements, units of times and lengths of bytes make no difference to a reader."""
    kinds = pa.types
    if kinds.is_struct(old) and kinds.is_struct(new):
        there = {field.name: field.type for field in new}
        return any(field.name in there and _differs(field.type, there[field.name]) for field in old)
    if kinds.is_list(old) and kinds.is_list(new):
        return _differs(old.value_type, new.value_type)
    if kinds.is_map(old) and kinds.is_map(new):
        return _differs(old.item_type, new.item_type)
    same = (kinds.is_timestamp, kinds.is_time, _is_bytes)
    return old != new and not any(is_kind(old) and is_kind(new) for is_kind in same)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _can_become(old: pa.DataType, new: pa.DataType) -> bool:
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(old.scale <= new.scale and old.precision - old.scale <= new.precision - new.scale)
    return new in _WIDER.get(old, ())


def _refuse(path: str, field: pa.Field, wanted: pa.DataType, why: str) -> UnsupportedTable:
    message = f"column {field.name!r} is {field.type} in {path} and {wanted} in the table now, {why}; {_ADVICE}"
    return UnsupportedTable(message, path=path, column=field.name, stored=str(field.type), wanted=str(wanted))
