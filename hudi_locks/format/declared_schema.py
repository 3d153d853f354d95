"""The columns that a stored Avro schema declares, with the types in which they are stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

import pyarrow as pa

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.damage import interpreting
from hudi_locks.format.schema import META_COLUMNS

__all__ = ["arrow_schema"]

_UTC: Final = "UTC"
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

_Json = Any


def arrow_schema(avro: str, path: str) -> pa.Schema:
    """The user's columns that a stored Avro schema declares; meta columns are left out.

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
