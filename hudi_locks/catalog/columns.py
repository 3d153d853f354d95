"""Columns as catalogs declare them: by the names of Hive's types, and as the JSON that Spark keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import interpreting

__all__ = ["Column", "read_columns"]

_Json = Any
_PRIMITIVES: Final[Mapping[str, tuple[str, _Json]]] = {
    "boolean": ("boolean", "boolean"),
    "int": ("int", "integer"),
    "long": ("bigint", "long"),
    "float": ("float", "float"),
    "double": ("double", "double"),
    "string": ("string", "string"),
    "bytes": ("binary", "binary"),
    "enum": ("string", "string"),
    "fixed": ("binary", "binary"),
}
_LOGICAL: Final[Mapping[str, tuple[str, _Json]]] = {
    "date": ("date", "date"),
    "timestamp-micros": ("bigint", "timestamp"),
    "timestamp-millis": ("bigint", "timestamp"),
    "local-timestamp-micros": ("bigint", "timestamp_ntz"),
    "local-timestamp-millis": ("bigint", "timestamp_ntz"),
    "uuid": ("binary", "string"),
}
_TIMES: Final = tuple(name for name in _LOGICAL if "timestamp" in name)


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: As in the table.
        hive_type: As Hive calls its type.
        spark_type: As Spark's JSON has it.
        nullable: Whether Spark is told that it may be null.
    """

    name: str
    hive_type: str
    spark_type: _Json = "string"
    nullable: bool = True

    def to_spark(self) -> Mapping[str, _Json]:
        """The field of Spark's JSON."""
        return {"name": self.name, "type": self.spark_type, "nullable": self.nullable, "metadata": {}}


def read_columns(avro: str, path: str, *, with_timestamps: bool) -> tuple[Column, ...]:
    """The columns of a stored Avro schema.

    Args:
        avro: JSON of a record.
        path: Where it was found, for the error.
        with_timestamps: Whether Hive gets timestamps as such, not as numbers.

    Raises:
        DamagedTable: It is no Avro record schema.
        UnsupportedTable: It holds a type that catalogs have no name for: a union of several types.
    """
    with interpreting("Avro schema", path):
        types = _Types(path, with_timestamps)
        return tuple(types.read_column(one) for one in json.loads(avro)["fields"])


@dataclass(frozen=True)
class _Types:
    """Reads types, and remembers those that have names."""

    path: str
    with_timestamps: bool
    named: dict[str, tuple[str, _Json]] = field(default_factory=dict)

    def read_column(self, avro: Mapping[str, _Json]) -> Column:
        hive, spark = self.read(avro["type"])
        return Column(avro["name"], hive, spark, _may_be_null(avro["type"]))

    def read(self, avro: _Json) -> tuple[str, _Json]:
        if isinstance(avro, list):
            branches = [branch for branch in avro if branch != "null"]
            return self.read(branches[0]) if len(branches) == 1 else self._refuse(avro)
        if isinstance(avro, str):
            return _PRIMITIVES.get(avro) or self.named.get(avro.rpartition(".")[2]) or self._refuse(avro)
        found = self._read_logical(avro) or self._read_complex(avro)
        if "name" in avro:
            self.named[str(avro["name"]).rpartition(".")[2]] = found
        return found

    def _read_logical(self, avro: Mapping[str, _Json]) -> tuple[str, _Json] | None:
        logical = avro.get("logicalType", "")
        if logical == "decimal":
            text = f"decimal({avro['precision']},{avro.get('scale', 0)})"
            return text, text
        found = _LOGICAL.get(logical)
        return ("timestamp", found[1]) if found and self.with_timestamps and logical in _TIMES else found

    def _read_complex(self, avro: Mapping[str, _Json]) -> tuple[str, _Json]:
        kind = avro["type"]
        if kind == "record":
            return self._read_record(avro)
        if kind == "array":
            hive, spark = self.read(avro["items"])
            nullable = _may_be_null(avro["items"])
            return f"array<{hive}>", {"type": "array", "elementType": spark, "containsNull": nullable}
        if kind == "map":
            hive, spark = self.read(avro["values"])
            nullable = _may_be_null(avro["values"])
            told = {"type": "map", "keyType": "string", "valueType": spark, "valueContainsNull": nullable}
            return f"map<string,{hive}>", told
        return self.read(kind)

    def _read_record(self, avro: Mapping[str, _Json]) -> tuple[str, _Json]:
        columns = [self.read_column(one) for one in avro["fields"]]
        hive = ",".join(f"{column.name}:{column.hive_type}" for column in columns)
        return f"struct<{hive}>", {"type": "struct", "fields": [column.to_spark() for column in columns]}

    def _refuse(self, avro: _Json) -> tuple[str, _Json]:
        message = f"{self.path} declares the Avro type {json.dumps(avro)[:200]}, which no catalog has a name for"
        raise UnsupportedTable(message, path=self.path)


def _may_be_null(avro: _Json) -> bool:
    return isinstance(avro, list) and "null" in avro
