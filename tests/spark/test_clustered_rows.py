"""A clustering puts as many rows in place of file groups as these have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table
from pyspark.sql import DataFrame

from hudi_locks.errors import WriteAborted, WriteConflict
from hudi_locks.services import TableWriter, upgrade_table
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.services.clustering import ClusteringJob
from hudi_locks.storage import LocalStorage
from hudi_locks.table import FileSlice, latest_file_slices
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")
Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def table(create: Create, frame: Frame) -> HoodieTable:
    """Two small files in each of two partitions."""
    made = create(options={"hoodie.parquet.small.file.limit": "0"})
    made.bulk_insert(frame([("a", "1", 1, 1.0), ("b", "1", 2, 2.0), ("x", "2", 1, 1.0)]))
    made.bulk_insert(frame([("c", "1", 3, 3.0), ("y", "2", 2, 2.0)]))
    return made


@pytest.mark.parametrize(
    ("spoil", "written"),
    [
        (lambda rows: rows.where("id != 'b'"), 4),
        (lambda rows: rows.limit(0), 0),
        (lambda rows: rows.unionAll(rows), 10),
    ],
    ids=["one row is lost", "all are lost", "each comes twice"],
)
def test_files_of_more_or_fewer_rows_replace_nothing(
    table: HoodieTable,
    rows_of: RowsOf,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[DataFrame], DataFrame],
    written: int,
) -> None:
    before, files = rows_of(table), set(Path(table.path).rglob("*.parquet"))
    read = ClusteringJob._read
    monkeypatch.setattr(ClusteringJob, "_read", lambda *given: spoil(read(*given)))
    with pytest.raises(WriteAborted, match=f"wrote {written} rows, .* have 5: nothing is replaced") as caught:
        table.clustering.run(sort_by=["ts"])
    assert (caught.value.rows_written, caught.value.rows_expected) == (written, 5)
    assert rows_of(table) == before
    assert set(Path(table.path).rglob("*.parquet")) == files
    assert [i.action for i in table.table.timeline().completed()] == ["commit", "commit", "rollback"]
    assert table.table.timeline().get(caught.value.instant) is None
    monkeypatch.undo()
    result = table.clustering.run(sort_by=["ts"])
    assert result is not None
    assert (result.rows_written, result.file_groups_replaced) == (5, 4)
    assert rows_of(table) == before


def test_an_inline_clustering_that_would_lose_rows_is_a_warning(
    table: HoodieTable, load: Callable[..., HoodieTable], frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = ClusteringJob._read
    monkeypatch.setattr(ClusteringJob, "_read", lambda *given: read(*given).where("id != 'a'"))
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    with load({**table.options, **inline}) as writer:
        result = writer.upsert(frame([("z", "1", 9, 9.0)]))
    assert "5 rows" in result.warnings[0]
    assert "have 6" in result.warnings[0]
    assert rows_of(table, "id") == [("a",), ("b",), ("c",), ("x",), ("y",), ("z",)]


FIRST = [("a", "1", 1, 1.0), ("b", "1", 2, 2.0), ("x", "2", 1, 1.0)]


@pytest.fixture
def logged(create: Create, frame: Frame) -> HoodieTable:
    """Two file groups in partition 1, one of which has logs, and one in 2."""
    options = {**shared_table.SHARED, "hoodie.parquet.small.file.limit": "0"}
    made = create(options=options, table_type="MERGE_ON_READ")
    made.upsert(frame(FIRST))
    made.upsert(frame([("c", "1", 3, 3.0), ("y", "2", 2, 2.0), ("a", "1", 5, 5.0)]))
    made.delete(frame([("b", "1", 9, 9.0)]))
    return made


def slices_of(table: HoodieTable) -> tuple[FileSlice, ...]:
    return latest_file_slices(table.table.storage, table.table.timeline())


def test_rows_of_logs_are_clustered_with_those_of_base_files(
    logged: HoodieTable, frame: Frame, rows_of: RowsOf
) -> None:
    before, meta = rows_of(logged), rows_of(logged.read(), *META)
    commits = logged.table.timeline().completed(("deltacommit",))
    early = rows_of(logged.as_of(str(commits[0].completion)))
    result = logged.clustering.run(sort_by=["ts"])
    assert result is not None
    assert (result.rows_written, result.file_groups, result.file_groups_replaced) == (4, 2, 4)
    assert [len(piece.logs) for piece in slices_of(logged)] == [0, 0]
    assert (rows_of(logged), rows_of(logged.read(), *META)) == (before, meta)
    assert rows_of(logged.read(read_optimized=True), "id", "ts") == [(row[0], row[2]) for row in before]
    assert rows_of(logged.incremental(str(commits[-1].completion))) == []
    assert rows_of(logged.incremental(str(commits[0].completion)), "id") == [("a",), ("c",), ("y",)]
    assert rows_of(logged.as_of(str(commits[0].completion))) == early
    assert rows_of(logged.change_data(str(commits[-1].completion))) == []
    changed = logged.upsert(frame([("a", "1", 6, 6.0), ("b", "1", 1, 1.0)]))
    assert (changed.rows_updated, changed.rows_inserted) == (1, 1)
    assert rows_of(logged, "id", "ts") == [("a", 6), ("b", 1), ("c", 3), ("x", 1), ("y", 2)]
    assert logged.clustering.run() is not None
    assert rows_of(logged, "id", "ts") == [("a", 6), ("b", 1), ("c", 3), ("x", 1), ("y", 2)]


def test_file_groups_whose_rows_are_all_deleted_end_without_a_new_one(
    logged: HoodieTable, frame: Frame, rows_of: RowsOf
) -> None:
    logged.delete(frame([("a", "1", 9, 9.0), ("c", "1", 9, 9.0)]))
    result = logged.clustering.run(sort_by=["ts"])
    assert result is not None
    assert (result.rows_written, result.file_groups, result.file_groups_replaced) == (2, 1, 4)
    assert rows_of(logged, "id") == [("x",), ("y",)]
    logged.upsert(frame([("a", "1", 1, 1.0)]))
    assert rows_of(logged, "id") == [("a",), ("x",), ("y",)]
    assert verify_table(logged.table.storage).damages == ()


def test_a_row_of_a_log_that_is_missed_is_found_by_the_count(
    logged: HoodieTable, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, read = rows_of(logged), ClusteringJob._read
    monkeypatch.setattr(ClusteringJob, "_read", lambda *given: read(*given).where("id != 'a'"))
    with pytest.raises(WriteAborted, match="wrote 3 rows, and the 6 files that it was to replace have 4"):
        logged.clustering.run(sort_by=["ts"])
    assert rows_of(logged) == before


def test_new_rows_go_elsewhere_while_logs_are_planned_and_updates_meet_the_plan(
    logged: HoodieTable, load: Callable[..., HoodieTable], frame: Frame, rows_of: RowsOf
) -> None:
    planned = logged.clustering.schedule(sort_by=["id"])
    with pytest.raises(WriteConflict, match=f"clustering {planned}"):
        logged.upsert(frame([("a", "1", 8, 8.0)]))
    small = load({**logged.options, "hoodie.parquet.small.file.limit": "1000000"})
    assert small.upsert(frame([("n", "1", 1, 1.0)])).rows_inserted == 1
    assert logged.compaction.schedule() is None
    assert logged.clustering.execute(planned) is not None
    assert rows_of(logged, "id", "ts") == [("a", 5), ("c", 3), ("n", 1), ("x", 1), ("y", 2)]


def test_a_restore_brings_logs_back_that_a_clustering_ended(logged: HoodieTable, frame: Frame, rows_of: RowsOf) -> None:
    before, slices = rows_of(logged), slices_of(logged)
    saved = logged.services.savepoints.create()
    assert logged.clustering.run() is not None
    logged.upsert(frame([("a", "1", 9, 9.0)]))
    logged.services.restore(saved.instant)
    assert (rows_of(logged), slices_of(logged)) == (before, slices)
    logged.upsert(frame([("a", "1", 9, 9.0)]))
    assert logged.clustering.run() is not None
    assert rows_of(logged, "id", "ts")[0] == ("a", 9)


def test_columns_that_later_rows_left_null_are_filled(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    options = {**shared_table.SHARED, "hoodie.write.table.version": "9", "hoodie.parquet.small.file.limit": "0"}
    table = create(
        table_type="MERGE_ON_READ", options={**options, "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    )
    table.upsert(frame([("a", "1", 5, 1.0)]))
    table.upsert(frame([("b", "1", 5, 5.0)]))
    table.upsert(frame([("a", "1", 6, None), ("b", "1", 4, 4.0)]))
    assert table.clustering.run() is not None
    assert rows_of(table.read(read_optimized=True), "id", "ts", "value") == [("a", 6, 1.0), ("b", 5, 5.0)]


def test_logs_that_are_older_than_an_upgrade_are_clustered_by_their_blocks(
    create: Create, load: Callable[..., HoodieTable], frame: Frame, rows_of: RowsOf
) -> None:
    """In version 6 a log is named by its base file, and holds the blocks of several writes."""
    apart = {"hoodie.parquet.small.file.limit": "0", "hoodie.write.lock.provider": "in_process"}
    old = create(table_type="MERGE_ON_READ", options={**apart, "hoodie.write.table.version": "6"})
    old.upsert(frame(FIRST))
    old.upsert(frame([("c", "1", 1, 1.0), ("a", "1", 2, 2.0)]))
    old.upsert(frame([("a", "1", 3, 3.0)]))
    old.close()
    upgrade_table(old.path, {"hoodie.write.lock.provider": "in_process"}, to=9)
    table = load(apart)
    table.upsert(frame([("c", "1", 4, 4.0)]))
    assert any(piece.blocks for piece in slices_of(table))
    before = rows_of(table)
    assert table.clustering.run(sort_by=["ts"]) is not None
    assert rows_of(table) == before


@pytest.mark.parametrize("name", ["v8_mor", "v9_mor"])
def test_a_plan_has_the_logs_of_a_table_that_the_jvm_made(golden: Callable[[str], LocalStorage], name: str) -> None:
    with TableWriter.open(golden(name).base, {"hoodie.write.lock.provider": "in_process"}) as writer:
        plan = writer.clustering(sort_by=["ts"]).make_plan(writer.table.timeline())
        slices = latest_file_slices(writer.table.storage, writer.table.timeline())
    assert plan is not None
    assert any(piece.logs for piece in slices)
    named = {piece.file_id: piece.relative_paths for group in plan.groups for piece in group.slices}
    assert named == {piece.file_id: frozenset(piece.paths) for piece in slices}
