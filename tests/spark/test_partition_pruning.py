"""Filters on partition columns spare files: what Spark's plans and metrics say, and files that are gone, show it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.errors import BadInput
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
SCHEMA = "id string, month string, ts long, value double"
ROWS = [(f"k{number}", month, 1, float(number)) for number in range(3) for month in ("a", "b", "c")]
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}


def files_read(frame: Any) -> int:
    """By the metrics of the scans, once it has run."""
    frame.collect()
    todo, count = [frame._jdf.queryExecution().executedPlan()], 0
    while todo:
        plan = todo.pop()
        if plan.nodeName().startswith("AdaptiveSparkPlan"):
            todo.append(plan.executedPlan())
            continue
        found = plan.metrics().get("numFiles")
        count += found.get().value() if found.isDefined() else 0
        children = plan.children()
        todo += [children.apply(place) for place in range(children.size())]
    return count


def lose(table: HoodieTable, *folders: str) -> None:
    """Take the files of these partitions away: who opens one fails."""
    for file in (file for folder in folders for file in Path(table.path, folder).glob("*")):
        if file.suffix in (".parquet", ".log") or ".log." in file.name:
            file.write_bytes(b"")


@pytest.mark.parametrize("options", [{}, HIVE], ids=["plain", "hive"])
def test_a_filter_opens_the_files_of_its_partitions(create: Create, frame: Frame, options: dict[str, str]) -> None:
    table = create(options=options)
    table.upsert(frame(ROWS))
    prefix = "month=" if options else ""
    rows = table.read()
    assert files_read(rows) == 3
    lose(table, f"{prefix}b", f"{prefix}c")
    found = rows.where("month = 'a' and value > 0")
    assert files_read(found) == 1
    assert sorted(row.id for row in found.collect()) == ["k1", "k2"]
    assert rows.where("month > 'a' and month < 'b'").count() == 0
    assert files_read(rows.where("month in ('a', 'x')").groupBy("month").count()) == 1
    assert rows.columns[5:] == ["id", "month", "ts", "value"]


@pytest.mark.parametrize("options", [{}, HIVE], ids=["plain", "hive"])
def test_filters_on_one_of_several_partition_columns(
    create: Create, frame: Frame, options: dict[str, str], spark: Any
) -> None:
    schema = "id string, ts long, day date, number int, flag boolean, big long"
    table = create(partition_by=["day", "number", "flag", "big"], options=options)
    days = ["2024-02-29", "2024-03-01"]
    rows = spark.sql(
        f"select concat(d, n, f) id, 1L ts, cast(d as date) day, n number, f flag, 5000000000L big from "
        f"(select explode(array('{days[0]}', '{days[1]}')) d) cross join (select explode(array(-1, 7)) n) "
        "cross join (select explode(array(true, false)) f)"
    )
    assert rows.schema.simpleString() == frame([], schema).schema.simpleString()
    table.upsert(rows)
    found = table.read(meta_columns=False)
    assert sorted(found.collect()) == sorted(rows.collect())
    assert found.schema.simpleString() == rows.schema.simpleString()
    assert files_read(found.where("day = '2024-02-29'")) == 4
    assert files_read(found.where("number = -1 and flag")) == 2
    assert files_read(found.where("number + 1 = 8 and not flag and day < '2024-03-01'")) == 1
    assert files_read(found.where("big = 5")) == 0
    assert files_read(found.where("ts = 1")) == 8


MERGED = {"table_type": "MERGE_ON_READ", "options": BUCKETS}


@pytest.mark.parametrize("settings", [{}, MERGED], ids=["cow", "mor"])
def test_null_and_the_empty_text_are_both_null(create: Create, frame: Frame, settings: dict[str, Any]) -> None:
    """As JVM readers show them: one folder stands for both."""
    table = create(**settings)
    months = {"e": "", "n": None, "d": "default", "s": "x/y", "a": "a"}
    table.upsert(frame([(key, month, 1, 0.0) for key, month in months.items()]))
    found = table.read()
    assert {row.id: row.month for row in found.collect()} == {**months, "e": None}
    for key in ("d", "s", "a"):
        assert [row.id for row in found.where(f"month = '{months[key]}'").collect()] == [key]
    assert sorted(row.id for row in found.where("month is null").collect()) == ["e", "n"]
    assert sorted(row.id for row in table.read(where="month is null").collect()) == ["e", "n"]
    assert found.where("month = ''").count() == table.read(where="month = ''").count() == 0
    if not settings:
        assert files_read(found.where("month = 'b'")) == 2


@pytest.mark.parametrize("urlencode", ["false", "true"])
def test_values_with_marks_of_patterns_and_paths(create: Create, frame: Frame, urlencode: str) -> None:
    months = ["x[y]", "{z}", "a*", "b?", "c%2F", "a b", "é:日", "q=1", "p+q", "50%"]
    table = create(options={"hoodie.datasource.write.partitionpath.urlencode": urlencode})
    table.upsert(frame([(f"k{number}", month, 1, 0.5) for number, month in enumerate(months)]))
    for number, month in enumerate(months):
        found = table.read().where(f"month = '{month}'")
        assert files_read(found) == 1, month
        assert [row.id for row in found.collect()] == [f"k{number}"]


def test_a_condition_on_partition_columns_spares_logs_too(create: Create, frame: Frame) -> None:
    table = create(table_type="MERGE_ON_READ", options=BUCKETS)
    table.upsert(frame(ROWS))
    table.compaction.run()
    table.upsert(frame([("k1", "a", 2, 9.0), ("k1", "b", 2, 9.0)]))
    state = table.table.timeline().completed_between("")[-1].completion
    lose(table, "b", "c")
    expected = [("k0", 0.0), ("k1", 9.0), ("k2", 2.0)]
    for rows in (
        table.read(where="month < 'b'", columns=["id", "value"], meta_columns=False),
        table.read(where=F.col("month") == "a", columns=["id", "value"], meta_columns=False),
        table.as_of(state, where="month = 'a'", columns=["id", "value"], meta_columns=False),
    ):
        assert rows.columns == ["id", "value"]
        assert sorted(tuple(row) for row in rows.collect()) == expected
    assert table.read(where="month = 'nowhere'").count() == 0
    assert table.read(where="month <= 'b'", partitions=["a"]).count() == 3


def test_a_condition_keeps_what_a_path_does_not_tell(create: Create, frame: Frame) -> None:
    table = create()
    table.upsert(frame([("d", "default", 1, 0.0), ("s", "x/y", 1, 0.0), ("a", "a", 1, 0.0)]))
    assert [row.id for row in table.read(where="month = 'default'").collect()] == ["d"]
    assert [row.id for row in table.read(where="month = 'x/y'").collect()] == ["s"]


@pytest.mark.parametrize("where", ["month = ", "nothing = 1"])
def test_what_is_no_condition_on_the_columns_is_refused(create: Create, frame: Frame, where: str) -> None:
    table = create()
    table.upsert(frame(ROWS))
    with pytest.raises(BadInput, match="no condition on the columns of the table"):
        table.read(where=where)
    bare = create(path=f"{table.path}2", partition_by=())
    bare.upsert(frame(ROWS[:1]))
    with pytest.raises(BadInput, match="no condition on the columns of the table"):
        bare.read(where=where)


@pytest.mark.parametrize(
    ("where", "files", "keys"),
    [
        ("month = 'a' and value > 0", 1, ["k1", "k2"]),
        ("month in ('a', 'x') and (value > 1 or id = 'k0')", 1, ["k0", "k2"]),
        ("not (month <> 'b' or value < 2)", 1, ["k2"]),
        ("month < 'c' and value = 1", 2, ["k1", "k1"]),
        ("month is null and value = 1", 0, []),
        ("concat(month, id) = 'bk1' and rand() < 2", 3, ["k1"]),
        ("value = 2 or month = 'a'", 3, ["k0", "k1", "k2", "k2", "k2"]),
    ],
)
def test_a_condition_on_other_columns_too_opens_the_files_of_its_partitions(
    create: Create, frame: Frame, where: str, files: int, keys: list[str]
) -> None:
    table = create()
    table.upsert(frame(ROWS))
    found = table.read(where=where, columns=["id"], meta_columns=False)
    assert found.columns == ["id"]
    assert files_read(found) == files
    assert sorted(row.id for row in found.collect()) == keys


def test_a_condition_on_columns_of_an_unpartitioned_table_with_logs(create: Create, frame: Frame) -> None:
    table = create(partition_by=(), table_type="MERGE_ON_READ", options=BUCKETS)
    table.upsert(frame(ROWS[:3]))
    table.upsert(frame([(ROWS[0][0], ROWS[0][1], 2, 7.0)]))
    assert [row.id for row in table.read(where="value > 3 and month = 'a'").collect()] == [ROWS[0][0]]
    assert table.read(where=F.col("value") == 0.0).count() == 0
