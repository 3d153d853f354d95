"""Column types: Arrow on one side, Avro JSON as Hudi stores it on the other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NoReturn

import pyarrow as pa

from hudi_locks.errors import BadInput, UnsupportedTable
from hudi_locks.format.records import interpreting

__all__ = ["META_COLUMNS", "add_meta_schema", "arrow_schema", "avro_schema", "canonical_schema", "merge_schemas"]

META_COLUMNS: Final = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""What Hudi puts before the user's columns; nullable strings."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ILLEGAL = re.compile(r"^[^A-Za-z_]|[^A-Za-z0-9_]")
_UTC: Final = "UTC"

_Json = Any

_CANONICAL: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[], pa.DataType]], ...]] = (
    (pa.types.is_boolean, pa.bool_),
    (pa.types.is_int8, pa.int32),
    (pa.types.is_int16, pa.int32),
    (pa.types.is_int32, pa.int32),
    (pa.types.is_int64, pa.int64),
    (pa.types.is_float32, pa.float32),
    (pa.types.is_float64, pa.float64),
    (pa.types.is_string, pa.string),
    (pa.types.is_large_string, pa.string),
    (pa.types.is_binary, pa.binary),
    (pa.types.is_large_binary, pa.binary),
    (pa.types.is_date32, pa.date32),
)
_TO_AVRO: Final[Mapping[pa.DataType, _Json]] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", _UTC): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}
_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL: Final[Mapping[str, pa.DataType]] = {
    "date": pa.date32(),
    "timestamp-micros": pa.timestamp("us", _UTC),
    "timestamp-millis": pa.timestamp("ms", _UTC),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "time-micros": pa.time64("us"),
    "time-millis": pa.time32("ms"),
}


def add_meta_schema(user_schema: pa.Schema) -> pa.Schema:
    """The schema of a base file: the meta columns, nullable strings, then the user's."""
    return pa.schema([pa.field(name, pa.string()) for name in META_COLUMNS] + list(user_schema))


def canonical_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of `schema` with the types that the table stores, all nullable, without metadata.

    Small integers become int, large strings strings, timestamps microseconds: what Spark would give.

    Raises:
        BadInput: A column's name or type has no place in a Hudi table, or two names differ in case alone.
    """
    _check_names(schema.names, "")
    return pa.schema([pa.field(field.name, _canonical(field.type, field.name)) for field in schema])


def _check_names(names: list[str], where: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if not _NAME.fullmatch(name):
            message = f"column {where + name!r} cannot be stored: Hudi takes letters, digits and _, and no digit first"
            raise BadInput(message, column=where + name)
        if name.lower() in seen:
            message = f"columns {where + seen[name.lower()]!r} and {where + name!r} are one to Spark; rename one"
            raise BadInput(message, column=where + name)
        seen[name.lower()] = name


def _canonical(kind: pa.DataType, column: str) -> pa.DataType:
    for matches, make in _CANONICAL:
        if matches(kind):
            return make()
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", _UTC if kind.tz else None)
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_dictionary(kind):
        return _canonical(kind.value_type, column)
    return _canonical_nested(kind, column)


def _canonical_nested(kind: pa.DataType, column: str) -> pa.DataType:
    if pa.types.is_struct(kind):
        _check_names([field.name for field in kind], f"{column}.")
        return pa.struct([pa.field(field.name, _canonical(field.type, f"{column}.{field.name}")) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _canonical(kind.value_type, f"{column}.element")))
    if pa.types.is_map(kind) and _canonical(kind.key_type, f"{column}.key") == pa.string():
        return pa.map_(pa.string(), pa.field("value", _canonical(kind.item_type, f"{column}.value")))
    message = f"column {column!r} of type {kind} cannot be stored in a Hudi table; cast it to a type that Spark knows"
    advice = " (maps need text keys)" if pa.types.is_map(kind) else ""
    raise BadInput(message + advice, column=column, type=str(kind))


def merge_schemas(table: pa.Schema, incoming: pa.Schema) -> pa.Schema:
    """The table's columns after a write of `incoming`: new ones are appended, also within structs.

    Raises:
        BadInput: A column changed its type (it names both), is missing, or is spelt in another case than in the table.
    """
    return pa.schema(_merge_fields(list(canonical_schema(table)), list(canonical_schema(incoming)), ""))


def avro_schema(schema: pa.Schema, table_name: str, *, with_meta_columns: bool = False) -> str:
    """The Avro JSON of `schema` as the JVM writes it for a table of this name.

    Without meta columns it is what commit metadata holds under `schema`, with them the footer `parquet.avro.schema`.

    Raises:
        BadInput: A column's name or type has no place in a Hudi table.
    """
    stem = _ILLEGAL.sub("__", table_name)
    record, namespace = f"{stem}_record", f"hoodie.{stem}"
    meta = [_avro_field(name, "string", doc="") for name in META_COLUMNS] if with_meta_columns else []
    fields = _avro_fields(canonical_schema(schema), f"{namespace}.{record}")
    return _render({"type": "record", "name": record, "namespace": namespace, "fields": meta + fields})


def _avro_fields(fields: Iterable[pa.Field], record: str) -> list[_Json]:
    return [_avro_field(field.name, _avro_type(field.type, field.name, record)) for field in fields]


def _avro_field(name: str, kind: _Json, **attributes: str) -> _Json:
    return {"name": name, "type": ["null", kind], **attributes, "default": None}


def _avro_type(kind: pa.DataType, name: str, record: str) -> _Json:
    """Nested records and fixed types are named after the column that holds them, below the record around it."""
    if kind in _TO_AVRO:
        return _TO_AVRO[kind]
    if pa.types.is_decimal(kind):
        size = ((10**kind.precision - 1).bit_length() + 8) // 8
        shape = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return {"type": "fixed", "name": "fixed", "namespace": f"{record}.{name}", "size": size, **shape}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type, name, record)]}
    if pa.types.is_map(kind):
        return {"type": "map", "values": ["null", _avro_type(kind.item_type, name, record)]}
    return {"type": "record", "name": name, "namespace": record, "fields": _avro_fields(kind, f"{record}.{name}")}


def _render(schema: _Json) -> str:
    return json.dumps(schema, separators=(",", ":"))


def _merge_fields(old: list[pa.Field], new: list[pa.Field], where: str) -> list[pa.Field]:
    given = {field.name: field.type for field in new}
    known = {field.name for field in old}
    added = [field for field in new if field.name not in known]
    _check_names([field.name for field in old + added], where)
    for column in old:
        if column.name not in given:
            message = f"column {where + column.name!r} of the table is missing in the rows; add it as {column.type}"
            raise BadInput(message, column=where + column.name, table_type=str(column.type))
    kept = [pa.field(f.name, _merge_types(f.type, given[f.name], where + f.name)) for f in old]
    return kept + added


def _merge_types(old: pa.DataType, new: pa.DataType, column: str) -> pa.DataType:
    if old == new:
        return old
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return pa.struct(_merge_fields(list(old), list(new), f"{column}."))
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(pa.field("element", _merge_types(old.value_type, new.value_type, f"{column}.element")))
    if pa.types.is_map(old) and pa.types.is_map(new):
        value = _merge_types(old.item_type, new.item_type, f"{column}.value")
        return pa.map_(pa.string(), pa.field("value", value))
    message = f"column {column!r} is {old} in the table and {new} in the rows to write; cast the rows to {old}"
    raise BadInput(message, column=column, table_type=str(old), incoming_type=str(new))


@lru_cache(maxsize=64)
def arrow_schema(avro: str, path: str) -> pa.Schema:
    """The user's columns that a stored Avro schema declares; meta columns are left out. What it found is remembered.

    Args:
        avro: JSON, from commit metadata or a footer.
        path: Where it was found, for the error.

    Raises:
        DamagedTable: It is no Avro record schema.
        UnsupportedTable: It holds a type that this package cannot carry: a union of several types, a recursive record.
    """
    with interpreting("Avro schema", path):
        record = json.loads(avro)
        types = _Types(path).within(record)
        declared = [one for one in record["fields"] if one["name"] not in META_COLUMNS]
        fields = [types.read_field(one) for one in declared]
    return pa.schema(fields)


@dataclass(frozen=True)
class _Types:
    """Reads types, and remembers those that have names."""

    path: str
    namespace: str = ""
    named: dict[str, pa.DataType] = field(default_factory=dict)

    def within(self, avro: Mapping[str, _Json]) -> _Types:
        """For what a named type encloses: simple names mean those of its namespace."""
        return replace(self, namespace=self._full_name(avro).rpartition(".")[0])

    def read_field(self, avro: Mapping[str, _Json]) -> pa.Field:
        return pa.field(avro["name"], self.read(avro["type"]))

    def read(self, avro: _Json) -> pa.DataType:
        if isinstance(avro, list):
            branches = [branch for branch in avro if branch != "null"]
            return self.read(branches[0]) if len(branches) == 1 else self._refuse(avro)
        if isinstance(avro, str):
            return _PRIMITIVES.get(avro) or self._find_named(avro) or self._refuse(avro)
        found = self._read_logical(avro) or self._read_complex(avro)
        if "name" in avro:
            self.named[self._full_name(avro)] = found
        return found

    def _read_logical(self, avro: Mapping[str, _Json]) -> pa.DataType | None:
        logical = avro.get("logicalType", "")
        if logical == "decimal":
            return pa.decimal128(avro["precision"], avro.get("scale", 0))
        return _LOGICAL.get(logical)

    def _read_complex(self, avro: Mapping[str, _Json]) -> pa.DataType:
        kind = avro["type"]
        if kind == "record":
            return pa.struct(list(map(self.within(avro).read_field, avro["fields"])))
        if kind == "array":
            return pa.list_(pa.field("element", self.read(avro["items"])))
        if kind == "map":
            return pa.map_(pa.string(), pa.field("value", self.read(avro["values"])))
        if kind == "fixed":
            return pa.binary(avro["size"])
        return self.read(kind)

    def _find_named(self, name: str) -> pa.DataType | None:
        return self.named.get(f"{self.namespace}.{name}" if self.namespace and "." not in name else name)

    def _full_name(self, avro: Mapping[str, _Json]) -> str:
        name = avro.get("name", "")
        namespace = "" if "." in name else avro.get("namespace", self.namespace)
        return f"{namespace}.{name}" if namespace else name

    def _refuse(self, avro: _Json) -> NoReturn:
        message = f"{self.path} declares the Avro type {json.dumps(avro)[:200]}, which has no column type in Spark"
        raise UnsupportedTable(message, path=self.path)
