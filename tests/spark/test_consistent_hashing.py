"""The bucket index with consistent hashing: where rows go, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.format.consistent_hashing import HashRing
from hudi_locks.spark import HoodieTable
from hudi_locks.table import latest_file_slices

pytestmark = pytest.mark.spark

SCHEMA = "id string, region string, ts long, value double"
OPTIONS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "3",
    "hoodie.upsert.shuffle.parallelism": "2",
}
Frame = Callable[..., Any]


@pytest.fixture
def frame(spark: Any) -> Frame:
    return lambda *rows: spark.createDataFrame(list(rows), SCHEMA)


@pytest.fixture
def table(spark: Any, path: str) -> HoodieTable:
    named = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
    return HoodieTable.create(spark, path, **named, table_type="MERGE_ON_READ", options=OPTIONS)


def rows_of(table: HoodieTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.read(meta_columns=False).collect())


def test_rows_go_to_the_file_group_that_the_ring_of_their_partition_names(table: HoodieTable, frame: Frame) -> None:
    first = [(f"k{n:02}", "eu" if n % 3 else "us", 1, float(n)) for n in range(40)]
    table.upsert(frame(*first))
    assert rows_of(table) == first
    slices = latest_file_slices(table.table.storage, table.table.timeline())
    for partition in ("eu", "us"):
        ids = {piece.file_id for piece in slices if piece.partition == partition}
        assert ids == {*HashRing.create(partition, 3).file_ids}
    assert all(piece.base is None for piece in slices), "all rows are logged"
    table.upsert(frame(("k01", "eu", 2, -1.0), ("k02", "eu", 0, -1.0), ("new", "eu", 1, 0.0)))
    table.delete(frame(("k04", "eu", 3, 0.0)))
    kept = [row for row in first if row[0] not in ("k01", "k04")]
    expected = sorted([*kept, ("k01", "eu", 2, -1.0), ("new", "eu", 1, 0.0)])
    assert rows_of(table) == expected
    assert table.compaction.run() is not None
    assert rows_of(table) == expected
    table.upsert(frame(("k05", "eu", 4, 50.0)))
    found = latest_file_slices(table.table.storage, table.table.timeline())
    assert {(piece.partition, piece.file_id) for piece in found} == {(p.partition, p.file_id) for p in slices}


def test_a_table_remembers_how_its_buckets_are_chosen(table: HoodieTable, spark: Any, path: str, frame: Frame) -> None:
    table.upsert(frame(("a", "eu", 1, 1.0)))
    HoodieTable.load(spark, path).upsert(frame(("a", "eu", 2, 2.0)))
    assert rows_of(HoodieTable.load(spark, path)) == [("a", "eu", 2, 2.0)]
    with pytest.raises(ConfigError, match=r"bucket\.engine=SIMPLE, but the table was made with CONSISTENT_HASHING"):
        HoodieTable.load(spark, path, options={"hoodie.index.bucket.engine": "SIMPLE"}).upsert(
            frame(("b", "eu", 1, 1.0))
        )


def test_what_would_end_a_file_group_for_good_is_refused(table: HoodieTable, frame: Frame) -> None:
    table.upsert(frame(("a", "eu", 1, 1.0)))
    with pytest.raises(ConfigError, match="insert_overwrite is not offered"):
        table.insert_overwrite(frame(("b", "eu", 1, 1.0)))
    with pytest.raises(ConfigError, match="delete_partition is not offered"):
        table.delete_partitions(["eu"])


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET", "GLOBAL_SIMPLE"])
def test_another_index_on_a_table_that_does_not_name_its_own_is_refused(
    table: HoodieTable, spark: Any, path: str, frame: Frame, index: str
) -> None:
    table.upsert(frame(("a", "eu", 1, 1.0)))
    assert table.compaction.run() is not None
    table.close()
    forget_index(table)
    other = HoodieTable.load(spark, path, options={"hoodie.index.type": index})
    with pytest.raises(ConfigError, match=r"set hoodie\.index\.type=BUCKET and .*engine=CONSISTENT_HASHING"):
        other.upsert(frame(("a", "eu", 2, 2.0)))


def forget_index(table: HoodieTable) -> None:
    """As a table of JVM Hudi, which does not say how its rows lie."""
    text = table.table.storage.read(".hoodie/hoodie.properties") or b""
    kept = [line for line in text.splitlines(keepends=True) if b"index" not in line]
    table.table.storage.replace(".hoodie/hoodie.properties", b"".join(kept))


def test_file_groups_of_no_ring_are_refused(spark: Any, path: str, frame: Frame) -> None:
    named = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
    simple = {**OPTIONS, "hoodie.index.bucket.engine": "SIMPLE"}
    made = HoodieTable.create(spark, path, **named, table_type="MERGE_ON_READ", options=simple)
    made.upsert(frame(("a", "eu", 1, 1.0)))
    made.close()
    forget_index(made)
    with pytest.raises(UnsupportedTable, match="belongs to no node of the ring of partition 'eu'"):
        HoodieTable.load(spark, path, options=OPTIONS).upsert(frame(("a", "eu", 2, 2.0)))
    assert rows_of(HoodieTable.load(spark, path)) == [("a", "eu", 1, 1.0)]


def test_keys_that_lie_elsewhere_by_other_columns_are_refused(spark: Any, path: str, frame: Frame) -> None:
    made = HoodieTable.create(
        spark,
        path,
        name="t",
        record_key=("id", "region"),
        ordering="ts",
        table_type="MERGE_ON_READ",
        options=OPTIONS,
    )
    made.upsert(frame(*((f"k{n}", "eu", 1, 1.0) for n in range(20))))
    made.close()
    forget_index(made)
    other = {**OPTIONS, "hoodie.bucket.index.hash.field": "region"}
    with pytest.raises(UnsupportedTable, match=r"set hoodie\.bucket\.index\.hash\.field to what the table was written"):
        HoodieTable.load(spark, path, options=other).upsert(frame(("k1", "eu", 2, 2.0)))
