"""A table whose rows have no meta columns, as JVM Hudi makes it with `hoodie.populate.meta.fields=false`."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shared_table

from hudi_locks.errors import BadInput, ConfigError, UnsupportedTable
from hudi_locks.format import META_COLUMNS, CommitMetadata, decode_properties, encode_properties
from hudi_locks.spark import HoodieTable, write
from hudi_locks.spark.index.key_search import MOST_KEYS
from hudi_locks.table import PROPERTIES_PATH, latest_base_files, read_commit
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

KEY = "hoodie.populate.meta.fields"
Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
SHARED = {
    **shared_table.SHARED,
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "1",
}
ROWS = [("a", "eu", 1, 1.0), ("b", "eu", 1, 2.0), ("c", "us", 1, 3.0)]


@pytest.fixture
def table(create: Create, frame: Frame) -> HoodieTable:
    """Ours, made over as the JVM writes it: files have these columns, and nulls in them."""
    made = create()
    made.upsert(frame(ROWS))
    path = Path(shutil.copytree(made.path, f"{made.path}-theirs"))  # nobody remembers what its files were before
    for file in path.rglob("*.parquet"):
        rows = pq.read_table(file)
        for name in META_COLUMNS:
            rows = rows.set_column(rows.schema.get_field_index(name), name, pa.nulls(rows.num_rows, pa.string()))
        pq.write_table(rows, file)
    timeline = made.table.timeline()
    [instant] = timeline.instants
    commit = read_commit(made.table.storage, timeline, requested=instant.requested)
    sized = [replace(stat, file_size_bytes=(path / str(stat.path)).stat().st_size) for stat in commit.stats]
    said_now = CommitMetadata.of(sized, "UPSERT", schema=commit.schema)
    (path / timeline.paths[instant]).write_bytes(said_now.encode("commit", layout_version=2))
    said = decode_properties((path / PROPERTIES_PATH).read_bytes(), PROPERTIES_PATH)
    (path / PROPERTIES_PATH).write_bytes(encode_properties({**said, KEY: "false"}))
    return HoodieTable.load(made.spark, str(path), options=made.options)


def test_it_is_read(table: HoodieTable) -> None:
    shown = [tuple(row) for row in table.read().collect()]
    assert sorted(row[5:] for row in shown) == ROWS
    assert {row[:5] for row in shown} == {(None,) * 5}
    assert [tuple(row) for row in table.read(meta_columns=False, where="value > 2").collect()] == ROWS[2:]
    [instant] = table.table.timeline().instants
    assert table.as_of(instant.completion, columns="id").count() == 3
    damages = verify_table(table.table.storage).damages
    assert {one.kind for one in damages} == {"timeline"}  # the claim log knows the commit as it was


def test_what_needs_to_know_who_wrote_a_row_is_refused(table: HoodieTable) -> None:
    for read in (table.incremental, table.change_data):
        with pytest.raises(UnsupportedTable, match=rf"{KEY}=false: no row of the table tells.*as_of") as caught:
            read("0")
        assert caught.value.key == KEY


def show(table: HoodieTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.read(meta_columns=False).collect())


def test_a_table_of_others_is_written(table: HoodieTable, frame: Frame) -> None:
    table.upsert(frame([("b", "eu", 2, 20.0), ("c", "us", 0, 0.0), ("d", "us", 1, 4.0)]))
    assert show(table) == [("a", "eu", 1, 1.0), ("b", "eu", 2, 20.0), ("c", "us", 1, 3.0), ("d", "us", 1, 4.0)]
    table.delete(frame([("a", "eu", 3, 0.0), ("z", "us", 3, 0.0)]))
    assert [row[0] for row in show(table)] == ["b", "c", "d"]
    table.insert_overwrite(frame([("e", "us", 1, 5.0)]))
    assert [row[0] for row in show(table)] == ["b", "e"]
    for file in latest_base_files(table.table.storage, table.table.timeline()):
        rows = pq.read_table(Path(table.path) / file.path)
        assert all(rows.column(name).null_count == len(rows) for name in META_COLUMNS)
        assert b"hoodie_min_record_key" not in pq.read_metadata(Path(table.path) / file.path).metadata


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "BUCKET"])
@pytest.mark.parametrize("most_keys", [MOST_KEYS, 0], ids=["searched", "joined"])
def test_each_index_finds_its_keys(
    create: Create, frame: Frame, monkeypatch: pytest.MonkeyPatch, index: str, most_keys: int
) -> None:
    monkeypatch.setattr("hudi_locks.spark.index.simple_index.MOST_KEYS", most_keys)
    buckets = {"hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}
    table = create(options={KEY: "false", "hoodie.index.type": index, **buckets})
    table.upsert(frame(ROWS))
    table.upsert(frame([("b", "eu", 2, 20.0), ("d", "eu", 1, 4.0)]))
    assert show(table) == [("a", "eu", 1, 1.0), ("b", "eu", 2, 20.0), ("c", "us", 1, 3.0), ("d", "eu", 1, 4.0)]
    table.delete(frame([("c", "us", 1, 0.0)]))
    assert [row[0] for row in show(table)] == ["a", "b", "d"]
    assert not verify_table(table.table.storage).damages


def test_a_row_of_a_global_index_moves(create: Create, frame: Frame) -> None:
    moving = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
    table = create(options={KEY: "false", **moving})
    table.upsert(frame(ROWS))
    table.upsert(frame([("a", "us", 2, 10.0), ("c", "eu", 0, 0.0)]))
    assert show(table) == [("a", "us", 2, 10.0), ("b", "eu", 1, 2.0), ("c", "us", 1, 3.0)]


def test_keys_of_several_columns_and_kinds_are_found(create: Create, frame: Frame) -> None:
    columns = "id int, month string, ts long, value double, day date, at timestamp, flag boolean"
    day, at = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 0, 0, 123456, dt.timezone.utc)
    table = create(record_key=["id", "day", "at", "flag"], options={KEY: "false"})
    rows = [(1, "eu", 1, 1.0, day, at, True), (1, "eu", 1, 2.0, None, at, False), (2, "eu", 1, 3.0, day, None, None)]
    table.upsert(frame(rows, columns))
    later = [(*row[:2], 2, row[3] * 10, *row[4:]) for row in rows]
    table.upsert(frame(later, columns))
    assert sorted(row[3] for row in show(table)) == [10.0, 20.0, 30.0]


def test_a_new_key_that_another_writer_brings_meanwhile_is_not_doubled(
    create: Create, load: Create, frame: Frame, after_job: Callable[..., None]
) -> None:
    options = {**SHARED, KEY: "false", "hoodie.parquet.small.file.limit": "0"}
    ours = create(options=options)
    ours.bulk_insert(frame(ROWS))
    theirs: list[Any] = []
    after_job(lambda: theirs.append(load(SHARED).upsert(frame([("n", "us", 5, 50.0), ("m", "us", 1, 0.0)]))))
    result = ours.upsert(frame([("n", "us", 6, 60.0)]))
    assert [conflict.other for conflict in result.conflicts] == [theirs[0].instant]
    assert [row for row in show(ours) if row[0] in "nm"] == [("m", "us", 1, 0.0), ("n", "us", 6, 60.0)]


def test_small_files_are_clustered(create: Create, frame: Frame) -> None:
    table = create(options={KEY: "false", "hoodie.parquet.small.file.limit": "0"})
    for number, row in enumerate(reversed(ROWS)):
        table.insert(frame([(row[0], "eu", number, row[3])]))
    before = show(table)
    assert table.clustering.run(sort_by=["id"]) is not None
    assert show(table) == before
    [file] = latest_base_files(table.table.storage, table.table.timeline())
    rows = pq.read_table(Path(table.path) / file.path)
    assert rows.column("id").to_pylist() == ["a", "b", "c"]
    assert rows.column("_hoodie_record_key").null_count == len(rows)


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "BUCKET"])
def test_merge_on_read_tables_are_written_and_compacted(create: Create, frame: Frame, index: str) -> None:
    buckets = {"hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}
    table = create(table_type="MERGE_ON_READ", options={KEY: "false", "hoodie.index.type": index, **buckets})
    table.upsert(frame(ROWS))
    table.upsert(frame([("b", "eu", 2, 20.0), ("c", "us", 0, 0.0), ("d", "eu", 1, 4.0)]))
    table.delete(frame([("a", "eu", 3, 0.0)]))
    expected = [("b", "eu", 2, 20.0), ("c", "us", 1, 3.0), ("d", "eu", 1, 4.0)]
    assert show(table) == expected
    assert {tuple(row[:5]) for row in table.read().collect()} == {(None,) * 5}
    assert table.compaction.run() is not None
    assert show(table) == expected
    table.upsert(frame([("d", "eu", 2, 40.0)]))
    assert show(table) == [*expected[:2], ("d", "eu", 2, 40.0)]
    assert not verify_table(table.table.storage).damages


def test_a_compaction_beside_a_write_is_no_conflict(
    create: Create, load: Create, frame: Frame, after_job: Callable[..., None]
) -> None:
    ours = create(table_type="MERGE_ON_READ", options={**SHARED, KEY: "false"})
    ours.upsert(frame(ROWS))
    ours.upsert(frame([("b", "eu", 2, 20.0)]))
    done: list[Any] = []
    after_job(lambda: done.append(load(SHARED).compaction.run()))
    result = ours.upsert(frame([("a", "eu", 2, 10.0)]))
    assert done[0] is not None
    assert not result.conflicts
    assert show(ours) == [("a", "eu", 2, 10.0), ("b", "eu", 2, 20.0), ("c", "us", 1, 3.0)]


def test_change_logs_and_a_record_index_are_refused(create: Create) -> None:
    with pytest.raises(ConfigError, match=rf"{KEY}: false cannot be created: .*change logs; use JVM Hudi"):
        create(options={KEY: "false", "hoodie.table.cdc.enabled": "true"})


def test_a_key_of_which_java_makes_another_text_is_refused(create: Create, frame: Frame) -> None:
    table = create(options={KEY: "false"})
    with pytest.raises(UnsupportedTable, match="record key column 'id' is of type double"):
        table.upsert(frame([(1.5, "eu", 1, 1.0)], "id double, month string, ts long, value double"))
    assert not table.table.timeline().instants


def test_a_writer_that_asks_for_the_other_kind_is_refused(create: Create, frame: Frame) -> None:
    table = create(options={KEY: "false"})
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", KEY: "true"}
    with pytest.raises(BadInput, match=rf"{KEY}=true, but the table"):
        write(frame(ROWS), table.path, options, mode="append")
