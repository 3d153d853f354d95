"""Merges: rows that are there are updated or deleted, others are inserted, in one commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shared_table
from paused_writes import paused
from pyspark.sql import functions as F  # noqa: N812
from record_places import list_places, read_index

from hudi_locks.errors import BadInput, ConfigError, WriteConflict
from hudi_locks.spark import HoodieTable, Reader
from hudi_locks.transaction import StopPoint
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

RETRIED = {
    **shared_table.SHARED,
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "1",
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
KINDS: dict[str, dict[str, Any]] = {
    "copy on write": {},
    "copy on write, buckets": {"options": BUCKETS},
    "copy on write, global": {"options": {"hoodie.index.type": "GLOBAL_SIMPLE"}},
    "merge on read": {"table_type": "MERGE_ON_READ"},
    "merge on read, buckets": {"table_type": "MERGE_ON_READ", "options": BUCKETS},
}
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 2.0), ("c", "2", 1, 3.0), ("d", "2", 1, 4.0)]
GIVEN = "id string, month string, amount double, gone boolean"
SOURCE = [
    ("a", "1", 10.0, False),
    ("b", "1", 0.0, True),
    ("c", "2", -1.0, False),
    ("n", "3", 5.0, False),
    ("o", "3", 0.0, True),
]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def make(create: Callable[..., HoodieTable], frame: Frame) -> Callable[..., HoodieTable]:
    def make_kind(kind: str = "copy on write", **changes: str) -> HoodieTable:
        settings = {**KINDS[kind]}
        table = create(options={**RETRIED, **settings.pop("options", {}), **changes}, **settings)
        table.upsert(frame(FIRST))
        return table

    return make_kind


def merge_all(table: HoodieTable, source: Any) -> Any:
    """A merge with every kind of clause."""
    merge = table.merge(source, on=["id", "month"]).when_matched_delete("source.gone")
    merge = merge.when_matched_update("source.amount > 0", values={"value": "target.value + source.amount"})
    inserted = {"id": "source.id", "month": F.col("source.month"), "ts": F.lit(7), "value": "source.amount"}
    return merge.when_not_matched_insert("not source.gone", values=inserted).execute()


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_clause_about_a_row_says_what_becomes_of_it(
    make: Callable[..., HoodieTable], frame: Frame, rows_of: RowsOf, kind: str
) -> None:
    table = make(kind)
    done = merge_all(table, frame(SOURCE, GIVEN))
    assert rows_of(table) == [("a", "1", 1, 11.0), ("c", "2", 1, 3.0), ("d", "2", 1, 4.0), ("n", "3", 7, 5.0)]
    assert (done.rows_deleted, done.retries) == (1, 0)
    assert [instant.requested for instant in table.table.timeline().completed()][-1] == done.instant
    assert table.read().columns[5:] == ["id", "month", "ts", "value"], "nothing of the merge stays"
    assert verify_table(table.table.storage).damages == ()
    table.upsert(frame([("b", "1", 1, 20.0)]))
    assert rows_of(table, "id", "value")[:2] == [("a", 11.0), ("b", 20.0)], "a key that was deleted may come again"


def test_without_values_all_columns_that_both_have_are_taken(
    make: Callable[..., HoodieTable], frame: Frame, rows_of: RowsOf
) -> None:
    table = make()
    source = frame([("a", "1", 2, "x"), ("n", "9", 3, "y")], "id string, month string, ts long, note string")
    done = table.merge(source, on=("id", "month")).when_matched_update().when_not_matched_insert().execute()
    assert rows_of(table) == [("a", "1", 2, 1.0), *FIRST[1:], ("n", "9", 3, None)]
    assert (done.rows_updated, done.rows_inserted) == (1, 1)


def test_a_key_alone_matches_in_every_partition_and_an_older_update_stays_away(
    make: Callable[..., HoodieTable], frame: Frame, rows_of: RowsOf
) -> None:
    table = make()
    table.upsert(frame([("a", "2", 5, 5.0)]))
    source = frame([("a", 3, 30.0), ("b", 0, 20.0)], "id string, ts long, value double")
    table.merge(source, on="id").when_matched_update().execute()
    assert rows_of(table) == [("a", "1", 3, 30.0), ("a", "2", 5, 5.0), *FIRST[1:]]


def test_partitions_without_rows_of_the_source_are_not_read(
    make: Callable[..., HoodieTable], frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, read = make(), list[Any]()
    at = "hudi_locks.spark.merge.Reader"

    def open_reader(*given: Any, **named: Any) -> Any:
        read.append(named["partitions"])
        return Reader(*given, **named)

    monkeypatch.setattr(at, open_reader)
    table.merge(frame([("d", "2", 2, 40.0), ("x", "7", 1, 1.0)]), on=["id", "month"]).when_matched_update().execute()
    assert rows_of(table) == [*FIRST[:3], ("d", "2", 2, 40.0)]
    assert read == [["2"], ["2"]]


def test_the_first_rows_of_a_table_may_be_merged(create: Any, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    merge = (
        table.merge(frame(FIRST), on=["id", "month"]).when_matched_delete().when_not_matched_insert("source.value < 4")
    )
    assert merge.execute().rows_inserted == 3
    assert rows_of(table) == FIRST[:3]


@pytest.mark.parametrize("kind", ["copy on write", "merge on read", "merge on read, buckets"])
def test_a_row_that_another_writer_changed_meanwhile_is_read_anew(
    make: Callable[..., HoodieTable], load: Any, frame: Frame, rows_of: RowsOf, kind: str
) -> None:
    table, other = make(kind), load({**RETRIED, **KINDS[kind].get("options", {})})
    with paused(table, StopPoint.BEGIN_INFLIGHT, lambda: merge_all(table, frame(SOURCE, GIVEN))) as write:
        other.upsert(frame([("a", "1", 2, 100.0), ("n", "3", 2, 50.0)]))
    assert write.error is None
    assert write.result.retries == 1
    assert rows_of(table) == [("a", "1", 2, 110.0), ("c", "2", 1, 3.0), ("d", "2", 1, 4.0), ("n", "3", 2, 55.0)]


def test_without_a_retry_left_it_is_a_conflict_and_nothing_changes(
    make: Callable[..., HoodieTable], load: Any, frame: Frame, rows_of: RowsOf
) -> None:
    table = make()
    once = load({**RETRIED, "hoodie.write.num.retries.on.conflict.failures": "0"})
    with paused(once, StopPoint.BEGIN_INFLIGHT, lambda: merge_all(once, frame(SOURCE, GIVEN))) as write:
        table.upsert(frame([("a", "1", 2, 100.0)]))
    assert isinstance(write.error, WriteConflict)
    assert rows_of(table) == [("a", "1", 2, 100.0), *FIRST[1:]]


@pytest.mark.parametrize("kind", ["v9_record_index", "v9_mor_record_index"])
def test_the_record_index_is_told(spark: Any, golden: Any, rows_of: RowsOf, kind: str) -> None:
    options = {**RETRIED, "hoodie.index.type": "RECORD_INDEX", "hoodie.time.generator.max_expected_clock_skew_ms": "1"}
    table = HoodieTable.load(spark, golden(kind).base, options=options)
    before = sorted(list_places(table))
    source = spark.createDataFrame([(before[0], True), (before[1], False), ("zz", False)], "id string, gone boolean")
    merge = (
        table.merge(source, on="id")
        .when_matched_delete("source.gone")
        .when_matched_update(values={"label": "'merged'"})
    )
    values = {"id": "source.id", "region": "'eu'", "ts": "1L", "value": "1.5D", "label": "'new'"}
    merge.when_not_matched_insert(values=values).execute()
    assert sorted(list_places(table)) == [*before[1:], "zz"]
    assert read_index(table) == list_places(table)
    labels: dict[str, str] = dict(rows_of(table, "id", "label"))
    assert (labels[before[1]], labels["zz"]) == ("merged", "new")


def test_what_cannot_be_merged_is_refused_before_anything_is_written(
    make: Callable[..., HoodieTable], frame: Frame, files_of: Callable[[], dict[str, bytes]]
) -> None:
    table = make()
    source, before = frame(SOURCE, GIVEN), files_of()
    merge = table.merge(source, on=["id", "month"])
    wrong: dict[str, Callable[[], Any]] = {
        "a merge without a clause": merge.execute,
        "the source has no column nobody": lambda: table.merge(source, on="nobody"),
        "name them in `on`": lambda: table.merge(source, on=[]),
        r"all record key columns of the table \(id\)": lambda: table.merge(source, on="month"),
        "the source has 2 rows for id='a', month='1'": lambda: (
            table.merge(source.union(source.limit(1)), on=["id", "month"]).when_matched_delete().execute()
        ),
        "values are given for other": merge.when_matched_update(values={"other": "1"}).execute,
        "an update would change month": merge.when_matched_update(values={"month": "'5'"}).execute,
        "an update would change id": merge.when_matched_update(values={"id": "'5'"}).execute,
        "cannot be planned: .*nothing": merge.when_matched_update(values={"value": "source.nothing"}).execute,
        "cannot be planned: .*[Ss]yntax": merge.when_matched_delete("(source.gone").execute,
        "column value is double, and the merge gives it string": (
            merge.when_matched_update(values={"value": "source.id"}).execute
        ),
        "names that are taken": lambda: table.merge(source.withColumn("_hudi_locks_moved", F.lit(True)), on="id"),
    }
    for said, attempt in wrong.items():
        with pytest.raises(BadInput, match=said):
            attempt()
    with pytest.raises(BadInput, match="an update would change month"):
        table.merge(source, on="id").when_matched_update().execute()
    assert files_of() == before


def test_values_that_fit_are_widened_and_no_others(
    make: Callable[..., HoodieTable], frame: Frame, rows_of: RowsOf
) -> None:
    table = make()
    merge = table.merge(frame([("a",), ("b",)], "id string"), on="id")
    merge.when_matched_update(values={"value": "cast(3 as int)", "ts": "cast(2 as smallint)"}).execute()
    assert rows_of(table) == [("a", "1", 2, 3.0), ("b", "1", 2, 3.0), *FIRST[2:]]
    with pytest.raises(BadInput, match="column ts is bigint, and the merge gives it double"):
        merge.when_matched_update(values={"ts": "2.5D"}).execute()
    with pytest.raises(BadInput, match="column ts is bigint, and the merge gives it decimal"):
        merge.when_matched_update(values={"ts": "2.5"}).execute()


def test_where_nobody_looks_for_conflicts_it_is_refused(create: Any, frame: Frame) -> None:
    mode = "hoodie.write.concurrency.mode"
    table = create(table_type="MERGE_ON_READ", options={**RETRIED, **BUCKETS, mode: "NON_BLOCKING_CONCURRENCY_CONTROL"})
    with pytest.raises(ConfigError, match="nobody sees that another writer changed them") as caught:
        table.merge(frame(FIRST), on="id")
    assert caught.value.facts["key"] == mode
