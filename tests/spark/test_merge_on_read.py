"""Merge-on-read tables that we write: logs in place of new base files, merged by readers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table
from pyspark.sql import Row

from hudi_locks.errors import ConfigError, UnsupportedTable, WriteError
from hudi_locks.format import META_COLUMNS, CommitMetadata, Instant, LogFileName, State, WriteStat, add_ms
from hudi_locks.spark import HoodieTable
from hudi_locks.storage import LocalStorage

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
SHARED = {**BUCKETS, **shared_table.SHARED}
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]
KEYS = "id string, month string"


@pytest.fixture
def create_mor(create: Create) -> Create:
    def make(*, options: dict[str, str] | None = None, **changes: Any) -> HoodieTable:
        return create(table_type="MERGE_ON_READ", options={**BUCKETS, **(options or {})}, **changes)

    return make


def logs_of(path: str) -> list[str]:
    """Their names, without markers and checksums."""
    return sorted(file.name for file in Path(path).rglob(".0*.log.*") if LogFileName.parse(file.name))


@pytest.mark.parametrize("form", ["parquet", "avro"])
@pytest.mark.parametrize("version", [8, 9])
def test_what_is_written_is_read(
    create_mor: Create, frame: Frame, rows_of: RowsOf, path: str, form: str, version: int
) -> None:
    options = {"hoodie.write.table.version": str(version), "hoodie.logfile.data.block.format": form}
    table = create_mor(options=options)
    first = table.insert(frame(FIRST))
    second = table.upsert(frame([("a", "1", 3, 3.0), ("b", "1", 0, 0.0), ("d", "2", 1, 1.0), ("d", "2", 2, 2.0)]))
    third = table.delete(frame([("c", "2"), ("nobody", "2")], KEYS))
    state = [("a", "1", 3, 3.0), FIRST[1], ("d", "2", 2, 2.0)]
    assert rows_of(table) == state
    assert rows_of(table.as_of(first.completion_time)) == FIRST
    assert rows_of(table.as_of(requested=second.instant)) == [state[0], FIRST[1], FIRST[2], state[2]]
    assert (first.rows_inserted, second.rows_updated, third.rows_deleted) == (3, 3, 2)
    assert list(Path(path).rglob("*.parquet")) == []
    assert [instant.action for instant in table.table.timeline().completed()] == ["deltacommit"] * 3
    again = table.upsert(frame([("c", "2", 0, 9.0)]))
    assert again.file_groups == 1
    assert rows_of(table) == [*state[:2], ("c", "2", 0, 9.0), state[2]]


@pytest.mark.parametrize("columns", [None, ["value", "id"], []])
@pytest.mark.parametrize("meta_columns", [False, True])
def test_rows_come_from_executors_as_they_are_shown(
    create_mor: Create, frame: Frame, columns: list[str] | None, meta_columns: bool
) -> None:
    """Spark copies every row once more to leave a column out, or to change their order."""
    table = create_mor()
    table.insert(frame(FIRST))
    found = table.read(columns=columns, meta_columns=meta_columns)
    user = ["id", "month", "ts", "value"] if columns is None else columns
    assert found.columns == [*(META_COLUMNS if meta_columns else ()), *user]
    places = [("id", "month", "ts", "value").index(name) for name in user]
    assert sorted(map(tuple, found.select(user).collect())) == sorted(tuple(row[n] for n in places) for row in FIRST)
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "InArrow" in plan
    assert ("Project" in plan) == (found.columns == [])


def test_what_changed_needs_no_meta_column_to_be_shown(create_mor: Create, frame: Frame) -> None:
    table = create_mor()
    first = table.insert(frame(FIRST))
    table.upsert(frame([("a", "1", 3, 3.0)]))
    found = table.incremental(first.completion_time, columns=["value"], meta_columns=False)
    assert [tuple(row) for row in found.collect()] == [(3.0,)]


def test_an_unpartitioned_table_without_order_keeps_the_later_write(
    create_mor: Create, frame: Frame, rows_of: RowsOf
) -> None:
    table = create_mor(partition_by=(), ordering=None)
    table.upsert(frame([("a", "1", 5, 5.0)]))
    table.upsert(frame([("a", "1", 1, 1.0), ("e", "1", 1, 1.0)]))
    assert rows_of(table) == [("a", "1", 1, 1.0), ("e", "1", 1, 1.0)]


def test_a_full_log_is_followed_by_another(create_mor: Create, frame: Frame, rows_of: RowsOf, path: str) -> None:
    small = {"hoodie.logfile.max.size": "2000", "hoodie.logfile.data.block.max.size": "2000"}
    table = create_mor(options={**small, "hoodie.bucket.index.num.buckets": "1"})
    rows = [(f"k{number:03d}", "1", 1, float(number)) for number in range(100)]
    result = table.upsert(frame(rows))
    assert (result.rows_written, result.file_groups) == (100, 1)
    assert len(logs_of(path)) > 2
    assert rows_of(table) == rows


def test_columns_may_be_added(create_mor: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create_mor()
    table.upsert(frame(FIRST))
    table.upsert(frame([("b", "1", 2, 2.0, "new")], "id string, month string, ts long, value double, more string"))
    assert rows_of(table, "id", "more") == [("a", None), ("b", "new"), ("c", None)]


def test_an_append_lists_no_partition(
    create_mor: Create, load: Load, frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_mor().upsert(frame(FIRST))
    table, listed = load(), list[str]()
    for name in ("list", "list_names"):
        original = getattr(LocalStorage, name)

        def count(self: LocalStorage, folder: str, original: Any = original) -> Any:
            listed.append(folder)
            return original(self, folder)

        monkeypatch.setattr(LocalStorage, name, count)
    table.upsert(frame(FIRST))
    table.delete(frame(FIRST))
    assert [folder for folder in listed if not folder.startswith(".hoodie/")] == []
    assert ".hoodie/timeline" in listed


def test_the_index_is_remembered_by_the_table(create_mor: Create, load: Load, frame: Frame, rows_of: RowsOf) -> None:
    create_mor(options=SHARED).upsert(frame(FIRST))
    again = load(shared_table.SHARED)
    again.upsert(frame([("a", "1", 2, 2.0)]))
    assert rows_of(again)[0] == ("a", "1", 2, 2.0)
    with pytest.raises(ConfigError, match="table was made with"):
        load({"hoodie.bucket.index.num.buckets": "7"}).upsert(frame(FIRST))


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table"])
def test_what_logs_cannot_do_is_refused(create_mor: Create, frame: Frame, operation: str, path: str) -> None:
    table = create_mor()
    with pytest.raises(ConfigError, match=rf"operation={operation} is not offered on a merge-on-read table: .*;"):
        getattr(table, operation)(frame(FIRST))
    assert table.table.timeline().instants == ()
    assert logs_of(path) == []


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_partitions_may_have_numbers_of_buckets_of_their_own(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, path: str, table_type: str
) -> None:
    options = {**BUCKETS, "hoodie.bucket.index.partition.expressions": "1$,16"}
    many = [(f"k{number}", month, 1, 1.0) for number in range(40) for month in ("1", "2")]
    create(table_type=table_type, options=options).upsert(frame(many))
    load().upsert(frame([(key, month, 2, 2.0) for key, month, *_ in many]))
    groups = {
        month: {file.name.lstrip(".")[:8] for file in Path(path, month).iterdir() if "0000" in file.name}
        for month in ("1", "2")
    }
    assert groups["2"] == {"00000000", "00000001"}
    assert len(groups["1"]) > 2
    assert rows_of(load()) == sorted((key, month, 2, 2.0) for key, month, *_ in many)
    with pytest.raises(ConfigError, match="table was made with"):
        load({"hoodie.bucket.index.partition.expressions": "1$,8"}).upsert(frame(FIRST))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_numbers_that_the_table_names_and_the_options_do_not_are_refused(
    create: Create, frame: Frame, path: str, table_type: str
) -> None:
    table = create(table_type=table_type, options=BUCKETS)
    config = Path(path, ".hoodie/.bucket_index/partition_bucket_index_meta/configs/00000000000000.hashing_config")
    config.parent.mkdir(parents=True)
    config.write_text('{"expressions": "1,8", "defaultBucketNumber": 2, "rule": "regex", "version": 1}')
    with pytest.raises(ConfigError, match=r"set hoodie.bucket.index.num.buckets=2 and .*expressions=1,8"):
        table.upsert(frame(FIRST))
    assert table.table.timeline().instants == ()


def test_deleted_partitions_and_dropped_duplicates_are_refused(create_mor: Create, load: Load, frame: Frame) -> None:
    table = create_mor()
    table.insert(frame(FIRST))
    with pytest.raises(ConfigError, match="delete_partition is not offered"):
        table.delete_partitions(["1"])
    dropping = load({"hoodie.datasource.write.insert.drop.duplicates": "true"})
    for write in (dropping.insert, dropping.bulk_insert):
        with pytest.raises(ConfigError, match="look up its keys"):
            write(frame(FIRST))


def test_a_jvm_table_of_non_blocking_writers_goes_on(spark: Any, golden: Any, frame: Frame, rows_of: RowsOf) -> None:
    options = {**SHARED, "hoodie.bucket.index.num.buckets": "4", "hoodie.upsert.shuffle.parallelism": "2"}
    table = HoodieTable.load(spark, golden("v8_mor_nbcc").base, options=options)
    before = table.read(meta_columns=False)
    taken = before.limit(1).collect()[0]
    changed = Row(**{**taken.asDict(), "ts": taken.ts + 100})
    added = Row(**{**taken.asDict(), "id": "new"})
    count, groups = before.count(), len({name.split("_")[0] for name in logs_of(table.path)})
    table.upsert(spark.createDataFrame([changed, added], before.schema))
    assert table.read().count() == count + 1
    assert rows_of(table.read().where(f"id = '{taken.id}'"), "ts") == [(taken.ts + 100,)]
    assert len({name.split("_")[0] for name in logs_of(table.path)}) == groups


@pytest.mark.parametrize(
    ("name", "buckets", "mode", "message"),
    [
        ("v8_mor", "4", "non_blocking", "belongs to no file group that 4 buckets give"),
        ("v8_mor", "4", "optimistic", "belongs to no bucket"),
        ("v8_mor_nbcc", "2", "non_blocking", "belongs to no file group that 2 buckets give"),
        ("v8_mor_nbcc", "2", "optimistic", "belongs to no file group that 2 buckets give"),
        ("v8_mor_nbcc", "5", "non_blocking", "which 5 buckets over id would put into bucket"),
        ("v8_mor_nbcc", "5", "optimistic", "which 5 buckets over id would put into bucket"),
    ],
)
def test_a_table_with_other_file_groups_is_refused(
    spark: Any, golden: Any, name: str, buckets: str, mode: str, message: str
) -> None:
    options = {**SHARED, "hoodie.bucket.index.num.buckets": buckets}
    options["hoodie.write.concurrency.mode"] = f"{mode}_concurrency_control"
    table = HoodieTable.load(spark, golden(name).base, options=options)
    with pytest.raises(UnsupportedTable, match=message):
        table.upsert(table.read(meta_columns=False))


def test_a_commit_of_another_writer_to_other_file_groups_is_noticed(create_mor: Create, frame: Frame) -> None:
    table = create_mor(options=SHARED)
    table.insert(frame(FIRST))
    storage, layout = table.table.storage, table.table.layout
    last = table.table.timeline().completed_between("")[-1]
    began = Instant(add_ms(last.requested, -1), "deltacommit", State.REQUESTED)
    stray = "00000001-aaaa-bbbb-cccc-dddddddddddd-0"
    metadata = CommitMetadata.of(
        [WriteStat("1", stray, f"1/.{stray}_{began.requested}.log.1_1-2-3")], "UPSERT", schema=None
    )
    data = metadata.encode("deltacommit", layout_version=2)
    done = began.as_completed(add_ms(str(last.completion), -1))
    for state, content in ((began, b""), (began.as_inflight(), b""), (done, data)):
        storage.create_if_absent(layout.path(state), content)
    with pytest.raises(UnsupportedTable, match="belongs to no file group that 2 buckets give"):
        table.upsert(frame(FIRST))


def test_rows_that_readers_would_hide_are_not_written(create_mor: Create, frame: Frame) -> None:
    """A JVM writer has overwritten a partition, and the ids of its file groups are those of its buckets."""
    table = create_mor(options=SHARED)
    table.insert(frame(FIRST))
    storage, layout = table.table.storage, table.table.layout
    ended = [stat for stat in _last_commit(table).stats if stat.partition_path == "1"]
    began = ended[0].prev_commit
    instant = Instant(add_ms(began, -1), "replacecommit", State.REQUESTED)
    metadata = CommitMetadata(replaced_file_ids={"1": tuple(stat.file_id for stat in ended)})
    data = metadata.encode("replacecommit", layout_version=2)
    for state, content in ((instant, b""), (instant.as_inflight(), b""), (instant.as_completed(began), data)):
        storage.create_if_absent(layout.path(state), content)
    with pytest.raises(UnsupportedTable, match="readers would hide what is logged there"):
        table.upsert(frame(FIRST[:1]))
    assert table.upsert(frame(FIRST[2:])).rows_updated == 1


def _last_commit(table: HoodieTable) -> CommitMetadata:
    from hudi_locks.table import read_commit

    timeline = table.table.timeline()
    return read_commit(table.table.storage, timeline, requested=timeline.completed_between("")[-1].requested)


def test_two_optimistic_writers_of_one_bucket_are_put_in_order(
    create_mor: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], path: str
) -> None:
    retry = {**SHARED, "hoodie.write.num.retries.on.conflict.failures": "1"}
    ours = create_mor(options={**retry, "hoodie.bucket.index.num.buckets": "1"})
    theirs: list[Any] = []
    after_job(lambda: theirs.append(load(shared_table.SHARED).upsert(frame([("a", "1", 2, 2.0), ("b", "1", 2, 2.0)]))))
    result = ours.upsert(frame([("a", "1", 3, 3.0), ("n", "1", 1, 1.0)]))
    [conflict] = result.conflicts
    assert (conflict.other, conflict.other_action, conflict.partition) == (theirs[0].instant, "deltacommit", "1")
    assert rows_of(ours) == [("a", "1", 3, 3.0), ("b", "1", 2, 2.0), ("n", "1", 1, 1.0)]
    assert not [name for name in logs_of(path) if result.attempts[0].instant in name]


def staged_of(path: str) -> list[str]:
    """Files that have no name yet."""
    return [str(file) for file in Path(path, ".hoodie/.hudi_locks/staging").rglob("*") if file.is_file()]


def test_the_logs_of_a_write_that_is_taken_for_dead_go_with_its_rollback(
    create_mor: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], path: str
) -> None:
    small = {"hoodie.logfile.max.size": "1", "hoodie.logfile.data.block.max.size": "1"}
    table = create_mor(options={**SHARED, **small, "hoodie.bucket.index.num.buckets": "1"})
    table.insert(frame(FIRST[:2]))
    kept = logs_of(path)
    assert len(kept) == 2
    written: list[int] = []

    def bury() -> None:
        written.append(len(staged_of(path)))
        for file in Path(path, ".hoodie/.heartbeat").iterdir():
            os.utime(file, (1_600_000_000, 1_600_000_000))
        load(shared_table.SHARED).upsert(frame([("n", "1", 1, 1.0)]))

    after_job(bury)
    with pytest.raises(WriteError, match="rolled"):
        table.upsert(frame([("a", "1", 9, 9.0), ("b", "1", 9, 9.0)]))
    assert written == [2]
    assert staged_of(path) == []
    assert rows_of(table) == [*FIRST[:2], ("n", "1", 1, 1.0)]
    assert len(logs_of(path)) == 3
