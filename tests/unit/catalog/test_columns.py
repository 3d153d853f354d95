"""Columns of a stored Avro schema by the names of Hive's types and as Spark's JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from every_type import FROM_AVRO, avro_schema_of

from hudi_locks.catalog import Column, read_columns
from hudi_locks.errors import DamagedTable, UnsupportedTable


def read(*fields: dict[str, Any], with_timestamps: bool = False) -> tuple[Column, ...]:
    schema = json.dumps({"type": "record", "name": "T", "fields": list(fields)})
    return read_columns(schema, "a.commit", with_timestamps=with_timestamps)


@pytest.mark.parametrize(
    ("avro", "hive", "spark"),
    [
        ("int", "int", "integer"),
        ("long", "bigint", "long"),
        ("bytes", "binary", "binary"),
        ({"type": "enum", "name": "Kind", "symbols": ["A"]}, "string", "string"),
        ({"type": "fixed", "name": "Three", "size": 3}, "binary", "binary"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, "decimal(6,2)", "decimal(6,2)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 6}, "decimal(6,0)", "decimal(6,0)"),
        ({"type": "int", "logicalType": "date"}, "date", "date"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "bigint", "timestamp"),
        ({"type": "string", "logicalType": "uuid"}, "binary", "string"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "bigint", "timestamp"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "bigint", "timestamp_ntz"),
        (
            {"type": "array", "items": "int"},
            "array<int>",
            {"type": "array", "elementType": "integer", "containsNull": False},
        ),
        (
            {"type": "map", "values": ["null", "long"]},
            "map<string,bigint>",
            {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        ),
    ],
)
def test_each_type_has_a_name_of_hive_and_one_of_spark(avro: Any, hive: str, spark: Any) -> None:
    assert read({"name": "c", "type": avro}) == (Column("c", hive, spark, nullable=False),)
    assert read({"name": "c", "type": ["null", avro]}) == (Column("c", hive, spark, nullable=True),)


@pytest.mark.parametrize("logical", ["timestamp-micros", "timestamp-millis", "local-timestamp-micros"])
def test_timestamps_are_such_to_hive_if_asked(logical: str) -> None:
    [column] = read({"name": "c", "type": {"type": "long", "logicalType": logical}}, with_timestamps=True)
    assert column.hive_type == "timestamp"
    assert str(column.spark_type).startswith("timestamp")


def test_records_nest_and_are_named_again() -> None:
    inner = {"type": "record", "name": "Inner", "namespace": "n", "fields": [{"name": "x", "type": "int"}]}
    found = read({"name": "a", "type": inner}, {"name": "b", "type": ["null", "n.Inner"]})
    assert [column.hive_type for column in found] == ["struct<x:int>", "struct<x:int>"]
    assert found[0].spark_type == found[1].spark_type


def test_a_schema_of_a_streamer_is_read_whole() -> None:
    found = {
        column.name: column for column in read_columns(avro_schema_of(FROM_AVRO), "a.commit", with_timestamps=False)
    }
    assert found.keys() >= set(FROM_AVRO)
    assert found["again"].hive_type == "struct<a:struct<v:int,f:binary>,b:struct<v:int,f:binary>>"


def test_what_has_no_name_is_refused_and_what_is_no_schema_is_damage() -> None:
    with pytest.raises(UnsupportedTable, match=r"a.commit declares the Avro type \[\"int\", \"string\"\]"):
        read({"name": "c", "type": ["int", "string"]})
    with pytest.raises(DamagedTable, match=r"a\.commit"):
        read_columns("{", "a.commit", with_timestamps=False)
