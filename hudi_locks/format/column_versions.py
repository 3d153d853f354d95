"""Columns of a table by their ids, as each ALTER TABLE left them (Hudi's InternalSchema, written by SerDeHelper)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, TypeAlias

import pyarrow as pa

from hudi_locks.errors import BadInput
from hudi_locks.format.schema import META_COLUMNS, canonical_schema

__all__ = ["ColumnVersion", "can_widen", "decode_versions", "encode_versions", "show_kind"]

_Kind: TypeAlias = Any
"""A type as JSON has it: its name, or an object of a nested one."""
_Column: TypeAlias = Mapping[str, Any]
_Ids: TypeAlias = Iterator[int]
_UTC: Final = "UTC"
_PLAIN: Final[Mapping[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", _UTC): "timestamp",
    pa.timestamp("us"): "local-timestamp-micros",
}
_NAMED: Final = {name: kind for kind, name in _PLAIN.items()}
_DECIMAL: Final = re.compile(r"decimal(?:_fixed|_bytes)?\((\d+),\s*(\d+)\)(?:\[\d+\])?")
_SIZED_SINCE: Final = 9
"""Table version of the releases that tell how many bytes a decimal has; those before cannot read that."""
_WIDER: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("long", "float", "double", "string"),
    "long": ("float", "double", "string"),
    "float": ("double",),
}
"""What every value of a type can become without a loss that readers would disagree about."""


@dataclass(frozen=True)
class ColumnVersion:
    """The columns from one ALTER TABLE to the next; files that were begun meanwhile have them so.

    Attributes:
        number: Requested time of the change; 0 for the columns before the first.
        newest_id: The greatest id that any column ever had.
        columns: Each with its id, name and type, as JSON has them; the meta columns come first as a rule.
    """

    number: int
    newest_id: int
    columns: tuple[_Column, ...]

    @classmethod
    def of(cls, schema: pa.Schema, *, table_version: int) -> ColumnVersion:
        """The columns of a table of which none was altered yet: ids are given as JVM Hudi gives them."""
        meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
        columns = _describe_all([*meta, *canonical_schema(schema)], count(), table_version)
        told = tuple({**one, "doc": ""} if one["name"] in META_COLUMNS else one for one in columns)
        return cls(0, _find_newest_id(told), told)

    @classmethod
    def decode(cls, found: Mapping[str, Any]) -> ColumnVersion:
        """Out of parsed JSON; what is missing there is a KeyError."""
        columns = tuple(found["fields"])
        newest = found["max_column_id"] if "max_column_id" in found else _find_newest_id(columns)
        return cls(int(found["version_id"]), int(newest), columns)

    def encode(self) -> dict[str, Any]:
        """As JSON has it."""
        told = {"max_column_id": self.newest_id, "version_id": self.number}
        return {**told, "type": "record", "fields": list(self.columns)}

    @property
    def text(self) -> str:
        """What a commit says of it, as `latest_schema`."""
        return _render(self.encode())

    @property
    def names(self) -> tuple[str, ...]:
        """Of the user's columns."""
        return tuple(one["name"] for one in self._own)

    @property
    def schema(self) -> pa.Schema:
        """The user's columns.

        Raises:
            ValueError: One is of a type that this package does not write.
        """
        return pa.schema([pa.field(one["name"], _read(one["type"])) for one in self._own])

    def has_type(self, field: pa.Field) -> bool:
        """Whether a column is of the type of a field of its name, as far as this package can tell."""
        try:
            kinds = (_read(self.columns[self._find(field.name)]["type"]), field.type)
            own, asked = (canonical_schema(pa.schema([pa.field(field.name, kind)])) for kind in kinds)
        except ValueError:  # of a type that this package does not write
            return True
        return bool(own.equals(asked))

    def at(self, number: int) -> ColumnVersion:
        """The same as changed at another time."""
        return replace(self, number=number)

    def add(self, name: str, kind: pa.DataType, *, table_version: int, after: str | None = None) -> ColumnVersion:
        """With a column more, which is null in every row that is there.

        Args:
            name: Of the column.
            kind: Its type.
            table_version: Of the table.
            after: The column that it follows; None for the last.

        Raises:
            BadInput: The name is taken, the type cannot be stored, or there is no column `after`.
        """
        self._refuse_taken(name)
        [field] = canonical_schema(pa.schema([pa.field(name, kind)]))
        ids = count(self.newest_id + 1)
        [column] = _describe_all([field], ids, table_version)
        place = len(self.columns) if after is None else self._find(after) + 1
        columns = (*self.columns[:place], column, *self.columns[place:])
        return replace(self, newest_id=next(ids) - 1, columns=columns)

    def rename(self, name: str, new_name: str) -> ColumnVersion:
        """With a column under another name.

        Raises:
            BadInput: There is no such column, or the other name is taken or cannot be stored.
        """
        place = self._find(name)
        self._refuse_taken(new_name)
        canonical_schema(pa.schema([pa.field(new_name, pa.string())]))  # whether it can be stored
        return self._set(place, name=new_name)

    def drop(self, name: str) -> ColumnVersion:
        """Without a column.

        Raises:
            BadInput: There is no such column, or no other.
        """
        place = self._find(name)
        if len(self.names) == 1:
            raise BadInput(f"column {name!r} is the only one: a table without columns has no rows", column=name)
        return replace(self, columns=(*self.columns[:place], *self.columns[place + 1 :]))

    def widen(self, name: str, kind: pa.DataType, *, table_version: int) -> ColumnVersion:
        """With a column of a wider type.

        Raises:
            BadInput: There is no such column, or not every value of it would stay what it is.
        """
        place = self._find(name)
        [field] = canonical_schema(pa.schema([pa.field(name, kind)]))
        new, old = _describe(field.type, count(), table_version), self.columns[place]["type"]
        if not can_widen(old, new):
            allowed = ", ".join(_WIDER.get(str(old), ())) or "a decimal with more digits on both sides of the point"
            message = f"column {name!r} is {show_kind(old)} and cannot become {show_kind(new)}"
            advice = f"it can become {allowed}" if str(old) in _WIDER or _DECIMAL.fullmatch(str(old)) else "add another"
            raise BadInput(f"{message}; {advice}", column=name, type=show_kind(old), wanted=show_kind(new))
        return self._set(place, type=new)

    @property
    def _own(self) -> Sequence[_Column]:
        return [one for one in self.columns if one["name"] not in META_COLUMNS]

    def _set(self, place: int, **changes: Any) -> ColumnVersion:
        column = {**self.columns[place], **changes}
        return replace(self, columns=(*self.columns[:place], column, *self.columns[place + 1 :]))

    def _find(self, name: str) -> int:
        found = next((n for n, one in enumerate(self.columns) if one["name"] == name), None)
        if found is None or name in META_COLUMNS:
            there = ", ".join(self.names)
            raise BadInput(f"the table has no column {name!r} to change; it has {there}", column=name)
        return found

    def _refuse_taken(self, name: str) -> None:
        taken = {one["name"].lower(): one["name"] for one in self.columns} | {one: one for one in META_COLUMNS}
        if name.lower() in taken:
            message = f"the name {name!r} is taken by column {taken[name.lower()]!r}; choose another"
            raise BadInput(message, column=name)


def can_widen(old: _Kind, new: _Kind) -> bool:
    """Whether all values of a type are values of another, to this package and to JVM Hudi."""
    decimals = [_DECIMAL.fullmatch(str(kind)) for kind in (old, new)]
    if decimals[0] and decimals[1]:
        (before, old_scale), (after, scale) = (map(int, found.groups()) for found in decimals if found)
        return after >= before and scale >= old_scale and after - scale >= before - old_scale
    return isinstance(old, str) and new in _WIDER.get(old, ())


def show_kind(kind: _Kind) -> str:
    """A type for a person."""
    return kind if isinstance(kind, str) else str(kind.get("type", kind))


def decode_versions(data: bytes) -> tuple[ColumnVersion, ...]:
    """The versions in a file of the history, the newest first; a KeyError or ValueError where it is none."""
    found = [ColumnVersion.decode(one) for one in json.loads(data)["schemas"]]
    return tuple(sorted(found, key=lambda one: one.number, reverse=True))


def encode_versions(versions: Sequence[ColumnVersion]) -> bytes:
    """A file of the history: all versions, the newest first."""
    return _render({"schemas": [one.encode() for one in versions]}).encode()


def _render(found: Mapping[str, Any]) -> str:
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _describe_all(fields: Sequence[pa.Field], ids: _Ids, version: int) -> list[dict[str, Any]]:
    """Columns, or fields of a struct: these get their ids before what is inside them."""
    own = [next(ids) for _ in fields]
    kinds = [_describe(field.type, ids, version) for field in fields]
    told = zip(own, fields, kinds, strict=True)
    return [{"id": number, "name": field.name, "optional": True, "type": kind} for number, field, kind in told]


def _describe(kind: pa.DataType, ids: _Ids, version: int) -> _Kind:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_decimal(kind):
        size = ((10**kind.precision - 1).bit_length() + 8) // 8
        digits = f"({kind.precision}, {kind.scale})"
        return f"decimal_fixed{digits}[{size}]" if version >= _SIZED_SINCE else f"decimal{digits}"
    if pa.types.is_struct(kind):
        return {"type": "record", "fields": _describe_all(list(kind), ids, version)}
    if pa.types.is_list(kind):
        array = {"type": "array", "element_id": next(ids)}
        return {**array, "element": _describe(kind.value_type, ids, version), "element_optional": True}
    pair = {"type": "map", "key_id": next(ids), "key": "string", "value_id": next(ids)}
    return {**pair, "value": _describe(kind.item_type, ids, version), "value_optional": True}


def _read(kind: _Kind) -> pa.DataType:
    if isinstance(kind, str):
        decimal = _DECIMAL.fullmatch(kind)
        if decimal is None and kind not in _NAMED:
            raise ValueError(f"columns of type {kind} are not written")
        return _NAMED[kind] if decimal is None else pa.decimal128(*map(int, decimal.groups()))
    return _NESTED[kind["type"]](kind)


_NESTED: Final[Mapping[str, Callable[[Mapping[str, Any]], pa.DataType]]] = {
    "record": lambda kind: pa.struct([pa.field(one["name"], _read(one["type"])) for one in kind["fields"]]),
    "array": lambda kind: pa.list_(pa.field("element", _read(kind["element"]))),
    "map": lambda kind: pa.map_(pa.string(), pa.field("value", _read(kind["value"]))),
}


def _find_newest_id(columns: Sequence[_Column]) -> int:
    return max((number for one in columns for number in _list_ids(one)), default=-1)


def _list_ids(column: _Column) -> Iterator[int]:
    """Of a column and of what is inside it."""
    yield int(column["id"])
    yield from _list_inner_ids(column["type"])


def _list_inner_ids(kind: _Kind) -> Iterator[int]:
    if isinstance(kind, Mapping):
        yield from (int(kind[name]) for name in ("element_id", "key_id", "value_id") if name in kind)
        for column in kind.get("fields", ()):
            yield from _list_ids(column)
        for part in ("element", "key", "value"):
            yield from _list_inner_ids(kind.get(part))
