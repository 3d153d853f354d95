"""Versions of a table's columns, as JVM Hudi writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_locks.errors import BadInput
from hudi_locks.format.column_versions import ColumnVersion, can_widen, decode_versions, encode_versions

WRITTEN = (  # by bundle 1.2.0
    '{"max_column_id":9,"version_id":20261130032538853,"type":"record","fields":['
    '{"id":0,"name":"_hoodie_commit_time","optional":true,"type":"string","doc":""},'
    '{"id":1,"name":"_hoodie_commit_seqno","optional":true,"type":"string","doc":""},'
    '{"id":2,"name":"_hoodie_record_key","optional":true,"type":"string","doc":""},'
    '{"id":3,"name":"_hoodie_partition_path","optional":true,"type":"string","doc":""},'
    '{"id":4,"name":"_hoodie_file_name","optional":true,"type":"string","doc":""},'
    '{"id":5,"name":"id","optional":true,"type":"string"},{"id":6,"name":"ts","optional":true,"type":"long"},'
    '{"id":7,"name":"x","optional":true,"type":"int"},{"id":8,"name":"z","optional":true,"type":"string"},'
    '{"id":9,"name":"d","optional":true,"type":"string"}]}'
)
PLAIN = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("x", pa.int32()), ("y", pa.string()), ("d", pa.string())])
NESTED = pa.schema(
    [
        ("s", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.float64()))])),
        ("m", pa.map_(pa.string(), pa.struct([("d", pa.date32())]))),
        ("p", pa.decimal128(12, 2)),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
    ]
)


def make(schema: pa.Schema = PLAIN, *, version: int = 9) -> ColumnVersion:
    return ColumnVersion.of(schema, table_version=version)


def test_a_rename_is_written_letter_for_letter_as_the_jvm_writes_it() -> None:
    assert make().rename("y", "z").at(20261130032538853).text == WRITTEN


def test_a_history_comes_back_as_it_was_the_newest_first() -> None:
    first, second = make(), make().rename("y", "z").at(7)
    data = encode_versions((second, first))
    assert data.startswith(b'{"schemas":[')  # which the JVM asks for
    assert decode_versions(data) == (second, first)


def test_columns_get_their_ids_before_what_is_inside_them_and_new_ones_after_all() -> None:
    told = make(NESTED).columns[5:]
    assert [one["id"] for one in told] == [5, 6, 7, 8, 9]
    struct, mapping = told[0]["type"], told[1]["type"]
    assert [one["id"] for one in struct["fields"]] == [10, 11]
    assert struct["fields"][1]["type"]["element_id"] == 12
    assert (mapping["key_id"], mapping["value_id"], mapping["value"]["fields"][0]["id"]) == (13, 14, 15)
    added = make(NESTED).drop("p").add("q", pa.list_(pa.int32()), table_version=9, after="s")
    assert (added.columns[6]["id"], added.columns[6]["type"]["element_id"], added.newest_id) == (16, 17, 17)
    assert added.names == ("s", "q", "m", "t", "n")


def test_types_come_back_and_decimals_are_told_as_the_releases_of_the_table_read_them() -> None:
    assert make(NESTED).schema == NESTED
    kinds = {version: make(NESTED, version=version).columns[7]["type"] for version in (8, 9)}
    assert kinds == {8: "decimal(12, 2)", 9: "decimal_fixed(12, 2)[6]"}
    odd = ColumnVersion.decode({"version_id": 0, "fields": [{"id": 0, "name": "u", "type": "uuid"}]})
    with pytest.raises(ValueError, match="of type uuid are not written"):
        _ = odd.schema


@pytest.mark.parametrize(
    ("old", "new", "can"),
    [
        ("int", "long", True),
        ("long", "int", False),
        ("long", "double", True),
        ("double", "string", False),
        ("string", "date", False),
        ("decimal(6, 2)", "decimal_fixed(12, 4)[6]", True),
        ("decimal(6, 2)", "decimal(6, 4)", False),
        ("decimal(6, 2)", "string", False),
        ({"type": "array"}, "string", False),
    ],
)
def test_a_type_becomes_a_wider_one_whose_values_all_engines_write_alike(old: Any, new: Any, *, can: bool) -> None:
    assert can_widen(old, new) is can


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda now: now.drop("none"), "no column 'none' to change; it has id, ts, x, y, d"),
        (lambda now: now.rename("y", "X"), "the name 'X' is taken by column 'x'"),
        (lambda now: now.rename("_hoodie_file_name", "z"), "no column '_hoodie_file_name'"),
        (lambda now: now.rename("y", "1y"), "'1y' cannot be stored"),
        (lambda now: now.widen("x", pa.int8(), table_version=9), "'x' is int and cannot become int"),
        (lambda now: now.widen("y", pa.int64(), table_version=9), "cannot become long; add another"),
        (lambda now: now.add("z", pa.uint64(), table_version=9), "'z' of type uint64 cannot be stored"),
        (lambda now: now.drop("id").drop("ts").drop("x").drop("y").drop("d"), "'d' is the only one"),
    ],
)
def test_a_change_that_cannot_be_is_refused_by_name(change: Callable[[ColumnVersion], Any], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        change(make())


def test_ids_are_told_as_json_has_them() -> None:
    assert json.loads(make().text) == make().encode()
