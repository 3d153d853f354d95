"""Buckets of consistent hashing that our clustering splits and merges."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import ConfigError, UnsupportedTable, WriteConflict
from hudi_locks.format.consistent_hashing import HashRing, hash_record_keys
from hudi_locks.format.ring_change import RingChange, RingNode
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.services.resizing import spread_by_ring
from hudi_locks.spark.session import typed_task_errors
from hudi_locks.storage import Storage
from hudi_locks.table import latest_file_slices
from hudi_locks.table.hash_rings import find_hash_ring
from hudi_locks.transaction import Outcome
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

SCHEMA = "id string, region string, ts long, value double"
OPTIONS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "4",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.split.threshold": "2.0",
    "hoodie.bucket.index.merge.threshold": "0",
    "hoodie.upsert.shuffle.parallelism": "2",
}
SPLIT = {"hoodie__bucket__index__split__threshold": "0"}
MERGE = {"hoodie__bucket__index__merge__threshold": "1"}
SEVERAL = {
    "hoodie__write__concurrency__mode": "optimistic_concurrency_control",
    "hoodie__clean__failed__writes__policy": "LAZY",
    "hoodie__write__lock__provider": "in_process",
    "hoodie__write__num__retries__on__conflict__failures": "50",
}
Rows = list[tuple[str, str, int, float]]
Frame = Callable[..., Any]
Load = Callable[..., Any]


def dotted(options: dict[str, str]) -> dict[str, str]:
    return {key.replace("__", "."): value for key, value in options.items()}


@pytest.fixture
def frame(spark: Any) -> Frame:
    return lambda *rows: spark.createDataFrame(list(rows), SCHEMA)


@pytest.fixture
def made(spark: Any, path: str) -> HoodieTable:
    named = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
    return HoodieTable.create(spark, path, **named, table_type="MERGE_ON_READ", options=OPTIONS)


@pytest.fixture
def load(spark: Any, made: HoodieTable) -> Load:
    return lambda **changed: HoodieTable.load(spark, made.path, options={**OPTIONS, **dotted(changed)})


def forget_index(table: HoodieTable) -> None:
    """As a table of JVM Hudi, which does not say how its rows lie."""
    text = table.table.storage.read(".hoodie/hoodie.properties") or b""
    kept = [line for line in text.splitlines(keepends=True) if b"index" not in line]
    table.table.storage.replace(".hoodie/hoodie.properties", b"".join(kept))


def read_table(storage: Storage, path: str) -> pa.Table:
    return pq.read_table(pa.BufferReader(storage.read(path) or b""))


def rows_of(table: HoodieTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.read(meta_columns=False).collect())


def ring_of(table: HoodieTable, partition: str = "eu") -> HashRing:
    ring = find_hash_ring(table.table.storage, table.table.timeline(), partition)
    assert ring is not None
    return ring


def check_places(table: HoodieTable) -> None:
    """Every key lies where the ring of its partition has it, so that the next write finds it."""
    rows = table.read().select("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name").collect()
    for key, partition, file in rows:
        ring = ring_of(table, partition)
        [node] = ring.assign(hash_record_keys(pa.array([key]), ["id"]))
        assert ring.file_ids[node] in file
    for piece in latest_file_slices(table.table.storage, table.table.timeline()):
        assert piece.file_id in ring_of(table, piece.partition).file_ids


def first_rows() -> list[tuple[Any, ...]]:
    return [(f"k{n:02}", "eu" if n % 4 else "us", 1, float(n)) for n in range(60)]


def test_buckets_are_split_and_merged_and_found_by_later_writes(made: HoodieTable, load: Load, frame: Frame) -> None:
    made.upsert(frame(*first_rows()))
    assert made.clustering.run() is None, "no file group is above or below a threshold"
    done = load(**SPLIT).clustering.run()
    assert (done.file_groups, done.file_groups_replaced, done.rows_written) == (8, 4, 60)
    assert ring_of(made).values == ring_of(made, "us").values == (536870911, 1073741824, 1610612735, 2147483647)
    check_places(made)
    made.upsert(frame(("k01", "eu", 2, -1.0), ("k02", "eu", 0, -1.0), ("new", "eu", 1, 0.0)))
    made.delete(frame(("k04", "us", 3, 0.0)))
    expected = [row for row in first_rows() if row[0] not in ("k01", "k04")]
    expected = sorted([*expected, ("k01", "eu", 2, -1.0), ("new", "eu", 1, 0.0)])
    assert rows_of(made) == expected
    assert load(**SPLIT).clustering.run() is None, "there are as many buckets as there may be"
    merged = load(**MERGE)
    assert merged.clustering.run() is not None
    assert (len(ring_of(merged).values), ring_of(merged).number) == (1, 2)
    assert rows_of(merged) == expected
    merged.upsert(frame(("k01", "eu", 3, -2.0), ("other", "us", 1, 0.0)))
    check_places(merged)
    assert len(rows_of(merged)) == len(expected) + 1
    assert merged.compaction.run() is not None
    assert len(rows_of(merged)) == len(expected) + 1


def test_a_writer_resizes_after_its_commits(made: HoodieTable, load: Load, frame: Frame) -> None:
    inline = {"hoodie__clustering__inline": "true", "hoodie__clustering__inline__max__commits": "2"}
    strategy = "org.apache.hudi.client.clustering.plan.strategy.SparkConsistentBucketClusteringPlanStrategy"
    writer = load(**SPLIT, **inline, hoodie__clustering__plan__strategy__class=strategy)
    assert writer.upsert(frame(*first_rows())).warnings == ()
    assert len(ring_of(made).values) == 2
    assert writer.upsert(frame(("k01", "eu", 2, -1.0))).warnings == ()
    assert len(ring_of(made).values) == 4
    check_places(made)


def test_rows_are_sorted_and_all_buckets_written_anew_if_asked(made: HoodieTable, load: Load, frame: Frame) -> None:
    made.upsert(frame(*((f"k{n:02}", "eu", 1, float(-n)) for n in range(40))))
    before = ring_of(made)
    done = made.clustering.run(sort_by=["value"])
    assert done is not None
    after = ring_of(made)
    assert (after.values, after.number) == (before.values, 1)
    assert not {*after.file_ids} & {*before.file_ids}
    for piece in latest_file_slices(made.table.storage, made.table.timeline()):
        assert piece.base is not None
        values = read_table(made.table.storage, piece.base.path).column("value").to_pylist()
        assert values == sorted(values)
    check_places(made)


def test_a_bucket_that_gets_no_row_has_no_file_and_takes_rows_later(
    made: HoodieTable, load: Load, frame: Frame
) -> None:
    made.upsert(frame(("k01", "eu", 1, 1.0)))
    assert load(**SPLIT).clustering.run() is not None
    assert len(latest_file_slices(made.table.storage, made.table.timeline())) == 1
    made.upsert(frame(*first_rows()))
    assert rows_of(made) == first_rows()
    check_places(made)
    made.delete(frame(*first_rows()))
    assert load(**MERGE).clustering.run() is not None
    assert rows_of(made) == []
    made.upsert(frame(*first_rows()))
    assert rows_of(made) == first_rows()


def test_a_write_meets_a_plan_and_goes_on_once_it_is_run_or_taken_back(
    made: HoodieTable, load: Load, frame: Frame
) -> None:
    made.upsert(frame(*first_rows()))
    planned = load(**SPLIT).clustering.schedule()
    with pytest.raises(WriteConflict, match=planned):
        made.upsert(frame(("k01", "eu", 2, -1.0)))
    assert made.clustering.abort(planned) is Outcome.ABORTED
    made.upsert(frame(("k01", "eu", 2, -1.0)))
    assert ring_of(made).number == 0
    planned = load(**SPLIT).clustering.schedule()
    assert made.clustering.execute(planned) is not None, "also by a process without these options"
    made.upsert(frame(("k01", "eu", 3, -2.0)))
    assert len(rows_of(made)) == 60
    check_places(made)


def test_two_writers_beside_resizes_leave_what_a_serial_replay_gives(
    made: HoodieTable, load: Load, frame: Frame
) -> None:
    made.upsert(frame(*first_rows()))
    commits, resizes = list[tuple[str, Rows]](), list[str]()

    def write(writer: int) -> None:
        table = load(**SEVERAL)
        for turn in range(4):
            rows = [(f"k{n:02}", "eu" if n % 4 else "us", 2 + turn, writer + n / 100) for n in range(turn, 60, 3)]
            commits.append((str(table.upsert(frame(*rows)).completion_time), rows))

    def resize() -> None:
        for how in (SPLIT, MERGE, SPLIT):
            with suppress(WriteConflict):
                resizes.append(str(load(**SEVERAL, **how).clustering.run()))

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(write, 1), pool.submit(write, 2), pool.submit(resize)]:
            done.result(timeout=300)
    expected = {row[0]: row for row in first_rows()}
    for _, rows in sorted(commits):
        expected |= {row[0]: row for row in rows if row[2] >= expected[row[0]][2]}
    assert rows_of(made) == sorted(expected.values())
    assert len(commits) == 8
    assert resizes, "none was run"
    check_places(made)
    assert verify_table(made.table.storage).damages == ()


def test_other_columns_than_those_of_the_table_are_refused(spark: Any, path: str, frame: Frame) -> None:
    named: Any = {"name": "t", "record_key": ("id", "region"), "ordering": "ts", "table_type": "MERGE_ON_READ"}
    made = HoodieTable.create(spark, path, **named, options=OPTIONS)
    made.upsert(frame(*first_rows()))
    made.close()
    forget_index(made)
    by_other = HoodieTable.load(
        spark, path, options={**OPTIONS, **dotted(SPLIT), "hoodie.bucket.index.hash.field": "region"}
    )
    with pytest.raises(
        UnsupportedTable, match=r"set hoodie\.bucket\.index\.hash\.field to what the table was written with"
    ):
        by_other.clustering.run()
    assert rows_of(by_other) == first_rows()
    assert not by_other.table.timeline().pending()


def test_a_key_that_lies_elsewhere_than_in_the_buckets_that_change_is_named(spark: Any) -> None:
    ring, change = HashRing((10, 2**31 - 1), ("x-0", "y-0"), 1), RingChange("eu", 0, (RingNode(10, "x-0"),))
    rows = spark.createDataFrame([("k01",)], "_hoodie_record_key string")
    spread = spread_by_ring(rows, ring, change, hash_fields=["id"], order=[])
    with pytest.raises(UnsupportedTable, match="belongs into file group y-0 by the columns id"), typed_task_errors():
        spread.collect()


def test_a_table_that_does_not_name_its_index_is_not_clustered(spark: Any, made: HoodieTable, frame: Frame) -> None:
    made.upsert(frame(*first_rows()))
    made.close()
    forget_index(made)
    with pytest.raises(ConfigError, match=r"set hoodie\.index\.type=BUCKET and .*engine=CONSISTENT_HASHING"):
        HoodieTable.load(spark, made.path).clustering.run()


def test_another_strategy_is_refused(made: HoodieTable, load: Load, frame: Frame) -> None:
    made.upsert(frame(*first_rows()))
    package = "org.apache.hudi.client.clustering."
    by_size = {
        "hoodie__clustering__plan__strategy__class": f"{package}plan.strategy.SparkSizeBasedClusteringPlanStrategy"
    }
    with pytest.raises(ConfigError, match="is not for this table"):
        load(**by_size).clustering.run()
    with pytest.raises(ConfigError, match="execution"):
        load(hoodie__clustering__execution__strategy__class="my.Strategy").upsert(frame(("a", "eu", 1, 1.0)))
