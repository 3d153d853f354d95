"""Every column type makes the way through a table, whole and as null, and columns may be added."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
MOMENTS = (datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2262, 1, 1))  # noqa: DTZ001 - Spark's own form
ALL_TYPES = {
    "flag boolean": (True, False),
    "tiny byte": (-128, 127),
    "small short": (-32768, 32767),
    "number int": (-(2**31), 2**31 - 1),
    "big long": (-(2**63), 2**63 - 1),
    "single float": (0.5, float("-inf")),
    "twice double": (1e-300, float("inf")),
    "price decimal(10,2)": (Decimal("-12345678.90"), Decimal("0.00")),
    "wide decimal(38,18)": (Decimal("12345678901234567890.123456789012345678"), Decimal("0E-18")),
    "text string": ("ünï 日本 😀", ""),
    "raw binary": (b"\x00\xff", b""),
    "day date": (date(1582, 10, 15), date(9999, 12, 31)),
    "at timestamp": MOMENTS,
    "local timestamp_ntz": MOMENTS,
    "list array<string>": (["a", None, ""], []),
    "nested array<array<int>>": ([[1], [], None], [[]]),
    "pairs map<string,long>": ({"a": 1, "b": None}, {}),
    "inner struct<x:int,y:struct<z:array<double>>>": ((1, ([1.0],)), (None, None)),
    "listed array<struct<k:string,v:decimal(5,1)>>": ([("a", Decimal("1.5")), (None, None)], []),
}


def test_every_type_comes_back_after_insert_and_merge(create: Create, frame: Frame, spark: Any, path: str) -> None:
    schema = "id string, ts long, " + ", ".join(ALL_TYPES)
    width = len(ALL_TYPES)
    first = [(f"k{n}", 1, *[values[n] for values in ALL_TYPES.values()]) for n in (0, 1)]
    table = create(partition_by=())
    table.upsert(frame([*first, ("nulls", 1, *[None] * width)], schema))
    again = [("nulls", 2, *first[0][2:]), ("k1", 2, *[None] * width)]
    table.upsert(frame(again, schema))
    expected = spark.createDataFrame([first[0], *again], schema)
    found = table.read(meta_columns=False)
    assert sorted(found.collect(), key=str) == sorted(expected.collect(), key=str)
    stored = {"tiny": "int", "small": "int"}
    assert [(f.name, f.dataType.simpleString()) for f in found.schema] == [
        (f.name, stored.get(f.name, f.dataType.simpleString())) for f in expected.schema
    ]


def test_timestamps_mean_the_same_moment_in_every_session(create: Create, spark: Any) -> None:
    table = create(partition_by=())
    rows = (
        "select 'a' id, 1L ts, timestamp'2024-03-10 02:30:00 America/New_York' at, timestamp_ntz'2024-03-10 02:30:00' n"
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        table.upsert(spark.sql(rows))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    [row] = table.read().selectExpr("unix_micros(at)", "cast(n as string)").collect()
    assert tuple(row) == (1710055800000000, "2024-03-10 02:30:00")


def test_columns_are_added_also_inside_structs_and_old_rows_have_null_there(
    create: Create, frame: Frame, rows_of: RowsOf
) -> None:
    table = create(partition_by=())
    first = table.upsert(frame([("a", 1, (1,)), ("b", 1, (2,))], "id string, ts long, s struct<x:int>"))
    table.upsert(
        frame(
            [("b", 2, (3, "new"), [Decimal("1.0")])],
            "id string, ts long, s struct<x:int,y:string>, d array<decimal(3,1)>",
        )
    )
    assert rows_of(table) == [("a", 1, (1, None), None), ("b", 2, (3, "new"), [Decimal("1.0")])]
    assert rows_of(table.as_of(first.completion_time)) == [("a", 1, (1, None), None), ("b", 1, (2, None), None)]


def test_columns_may_come_in_another_order(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create(partition_by=())
    table.upsert(frame([("a", 1, "x")], "id string, ts long, text string"))
    table.upsert(frame([("y", "b", 1)], "text string, id string, ts long"))
    assert rows_of(table, "id", "text") == [("a", "x"), ("b", "y")]


@pytest.mark.parametrize(
    ("version", "options", "folder"),
    [(8, {}, "p/1"), (9, {"hoodie.datasource.write.hive_style_partitioning": "true"}, "q=p/n=1")],
)
def test_one_key_and_two_partition_fields_find_their_rows_again(
    create: Create, frame: Frame, rows_of: RowsOf, version: int, options: dict[str, str], folder: str
) -> None:
    table = create(partition_by=["q", "n"], options={**options, "hoodie.write.table.version": version})
    schema = "id string, q string, n int, ts long"
    table.upsert(frame([("ключ", "p", 1, 1), ("b", None, None, 1)], schema))
    table.upsert(frame([("ключ", "p", 1, 2), ("b", None, None, 2)], schema))
    assert rows_of(table) == [("b", None, None, 2), ("ключ", "p", 1, 2)]
    meta = table.read().where("n = 1").select("_hoodie_record_key", "_hoodie_partition_path").collect()
    assert [tuple(row) for row in meta] == [("id:ключ" if version == 9 else "ключ", folder)]


def test_composite_keys_and_strange_partitions(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    options = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    table = create(record_key=["id", "n"], partition_by="p", options=options)
    schema = "id string, n int, p string, ts long"
    strange = ["a/b", "50%", "x[y]{z}*?\\", "p:3 é日", "_hidden", ".dot", "a=b", 'it\'s "so"']
    rows = [("k,:", n, text, 1) for n, text in enumerate(strange)]
    table.upsert(frame(rows, schema))
    result = table.upsert(frame([(*row[:3], 2) for row in rows], schema))
    assert (result.rows_updated, result.rows_inserted) == (len(rows), 0)
    assert rows_of(table) == sorted([(*row[:3], 2) for row in rows], key=repr)
    keys = {row[0] for row in table.read().select("_hoodie_record_key").collect()}
    assert keys == {f"id:k,:,n:{n}" for n in range(len(rows))}


def test_partitions_with_the_marks_of_file_patterns(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    rows = [
        (f"k{n}", text, 1, 0.5)
        for n, text in enumerate(["x[y]", "{z}", "a*", "r\\t", "b?", "c%2F", "_u", ".d", "a b", "é:日"])
    ]
    table.upsert(frame(rows))
    assert table.upsert(frame(rows)).rows_updated == len(rows)
    assert rows_of(table) == rows
