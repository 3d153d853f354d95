"""Compaction of merge-on-read tables as a Spark job, beside writers that do not wait for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table
from json_checks import check_json

from hudi_locks.cli import main
from hudi_locks.errors import UnsupportedTable
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.services.compaction import CompactionJob

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
TOGETHER = {**shared_table.SHARED, "hoodie.write.concurrency.mode": "non_blocking_concurrency_control"}
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]
KEYS = "id string, month string"


@pytest.fixture
def table(create: Create) -> HoodieTable:
    """Of one bucket in each partition."""
    index = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    return create(table_type="MERGE_ON_READ", options={**TOGETHER, **index})


def bases_of(path: str) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in Path(path).rglob("*.parquet"))


def test_rows_are_the_same_before_and_after_and_later_logs_lie_on_top(
    table: HoodieTable, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    first = table.insert(frame(FIRST))
    table.upsert(frame([("a", "1", 2, 2.0), ("b", "1", 0, 0.0)]))
    table.delete(frame([("c", "2")], KEYS))
    before, changes = table.read().collect(), rows_of(table.incremental(first.completion_time))
    result = table.compaction.run()
    assert result is not None
    assert (result.rows_written, result.rows_inserted, result.file_groups) == (2, 0, 2)
    state = [("a", "1", 2, 2.0), FIRST[1]]
    assert rows_of(table) == rows_of(table.read(read_optimized=True)) == state
    meta = ["_hoodie_commit_time", "_hoodie_commit_seqno", "id"]
    assert sorted(table.read().select(*meta).collect()) == sorted(tuple(row[name] for name in meta) for row in before)
    assert {row["_hoodie_file_name"] for row in table.read().collect()} == {Path(bases_of(path)[0]).name}
    assert rows_of(table.as_of(first.completion_time)) == FIRST
    assert rows_of(table.incremental(first.completion_time)) == changes == state[:1]
    assert rows_of(table.incremental(result.instant)) == []
    assert table.compaction.run() is None
    table.upsert(frame([("b", "1", 3, 3.0), ("c", "2", 0, 0.0)]))
    assert rows_of(table) == [state[0], ("b", "1", 3, 3.0), ("c", "2", 0, 0.0)]
    assert rows_of(table.read(read_optimized=True)) == state
    table.compaction.run()
    assert rows_of(table.read(read_optimized=True)) == rows_of(table)
    assert len(bases_of(path)) == 4


def test_a_write_that_begins_before_a_compaction_and_completes_after_it_stays(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    table.insert(frame(FIRST))
    after_job(lambda: load(TOGETHER).compaction.run())
    result = table.upsert(frame([("a", "1", 5, 5.0), ("n", "1", 1, 1.0)]))
    assert (result.retries, result.conflicts) == (0, ())
    assert rows_of(table.read(read_optimized=True)) == FIRST
    assert rows_of(table) == [("a", "1", 5, 5.0), FIRST[1], FIRST[2], ("n", "1", 1, 1.0)]


def test_a_compaction_that_fails_is_taken_back_and_done_anew(
    table: HoodieTable, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    table.insert(frame(FIRST))
    run_job = CompactionJob._run_job

    def fail_late(self: CompactionJob, task: Any) -> Any:
        run_job(self, task)
        monkeypatch.setattr(CompactionJob, "_run_job", run_job)
        raise RuntimeError("the driver has no more memory")

    monkeypatch.setattr(CompactionJob, "_run_job", fail_late)
    with pytest.raises(RuntimeError, match="no more memory"):
        table.compaction.run()
    assert bases_of(path) == []
    assert rows_of(table) == FIRST
    assert table.compaction.run() is not None
    assert rows_of(table) == rows_of(table.read(read_optimized=True)) == FIRST


def test_the_command_does_what_waits(
    table: HoodieTable, frame: Frame, rows_of: RowsOf, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table.insert(frame(FIRST))
    instant = table.compaction.schedule()
    options = [word for key, value in TOGETHER.items() for word in ("-o", f"{key}={value}")]
    with pytest.raises(SystemExit) as caught:
        main(["compact", path, "--json", *options])
    assert not caught.value.code
    [said] = check_json(["compact"], capsys.readouterr().out)
    assert (said["instant"], said["state"], said["rows"], said["file_groups"]) == (instant, "done", 3, 2)
    assert table.compaction.execute() is None
    assert rows_of(table.read(read_optimized=True)) == FIRST


def test_a_copy_on_write_table_is_refused(create: Create, frame: Frame) -> None:
    plain = create()
    plain.insert(frame(FIRST))
    with pytest.raises(UnsupportedTable, match="no logs to compact"):
        plain.compaction.run()


@pytest.mark.parametrize("switch", ["hoodie.compact.inline", "hoodie.datasource.compaction.async.enable"])
def test_writes_are_followed_by_a_compaction_when_enough_of_them_came(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, switch: str
) -> None:
    following = load({**TOGETHER, switch: "true", "hoodie.compact.inline.max.delta.commits": "2"})
    following.insert(frame(FIRST))
    assert rows_of(table.read(read_optimized=True)) == []
    following.upsert(frame([("a", "1", 2, 2.0)]))
    following.compaction.wait()
    compacted = [("a", "1", 2, 2.0), *FIRST[1:]]
    assert rows_of(table.read(read_optimized=True)) == compacted
    following.upsert(frame([("a", "1", 3, 3.0)]))
    following.compaction.wait()
    assert rows_of(table.read(read_optimized=True)) == compacted
    assert rows_of(table) == [("a", "1", 3, 3.0), *FIRST[1:]]


def test_a_write_may_only_schedule_and_a_plan_can_be_taken_back(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    scheduling = {"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    load({**TOGETHER, **scheduling}).insert(frame(FIRST))
    [planned] = table.table.timeline().pending(("compaction",))
    assert table.compaction.abort(planned.requested).name == "ABORTED"
    assert table.table.timeline().pending(("compaction",)) == ()
    assert rows_of(table.read(read_optimized=True)) == []
    assert rows_of(table) == FIRST


# ---- log compaction ----

OFTEN = {"hoodie.log.compaction.blocks.threshold": "2"}


def logs_of(path: str) -> list[str]:
    return sorted(file.name for file in Path(path).rglob(".0*.log.*"))


def test_logs_become_one_log_and_rows_are_as_they_were(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    merging = load({**TOGETHER, **OFTEN})
    first = table.insert(frame(FIRST))
    table.compaction.run()
    second = table.upsert(frame([("a", "1", 2, 2.0), ("b", "1", 0, 0.0), ("c", "2", 2, 2.0)]))
    table.delete(frame([("c", "2")], KEYS))
    before, changes = table.read().collect(), rows_of(table.incremental(first.completion_time))
    assert table.log_compaction.run() is None
    result = merging.log_compaction.run()
    assert result is not None
    assert (result.rows_written, result.rows_inserted, result.rows_deleted, result.file_groups) == (0, 0, 0, 1)
    state = [("a", "1", 2, 2.0), FIRST[1]]
    meta = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name", "id"]
    assert sorted(table.read().select(*meta).collect()) == sorted(tuple(row[name] for name in meta) for row in before)
    assert rows_of(table) == state
    assert rows_of(table.as_of(second.completion_time)) == [*state, ("c", "2", 2, 2.0)]
    assert rows_of(table.incremental(first.completion_time)) == changes == state[:1]
    assert rows_of(table.incremental(result.instant)) == []
    assert table.change_data(result.instant).count() == 0
    assert rows_of(table.read(read_optimized=True)) == FIRST
    table.upsert(frame([("b", "1", 3, 3.0), ("c", "2", 0, 0.0)]))
    state = [state[0], ("b", "1", 3, 3.0), ("c", "2", 0, 0.0)]
    assert rows_of(table) == state
    assert merging.log_compaction.run() is not None
    assert rows_of(table) == state
    assert len([name for name in logs_of(path) if str(result.instant) in name]) == 1
    table.compaction.run()
    assert rows_of(table.read(read_optimized=True)) == rows_of(table) == state
    assert merging.log_compaction.run() is None


def test_a_write_that_is_under_way_keeps_logs_from_being_merged(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    merging, done = load({**TOGETHER, **OFTEN}), []
    table.insert(frame(FIRST))
    table.upsert(frame(FIRST[:1]))
    after_job(lambda: done.append(merging.log_compaction.run()))
    table.upsert(frame([("a", "1", 1, 5.0)]))
    assert done == [None]
    assert merging.log_compaction.run() is not None
    assert rows_of(table) == [("a", "1", 1, 5.0), *FIRST[1:]]


def test_a_write_that_begins_while_logs_are_merged_lies_on_top(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    merging = load({**TOGETHER, **OFTEN})
    table.insert(frame(FIRST))
    table.upsert(frame(FIRST[:1]))
    run_job = CompactionJob._run_job

    def write_meanwhile(self: CompactionJob, task: Any) -> Any:
        table.upsert(frame([("a", "1", 1, 5.0)]))
        return run_job(self, task)

    monkeypatch.setattr(CompactionJob, "_run_job", write_meanwhile)
    assert merging.log_compaction.run() is not None
    assert rows_of(table) == [("a", "1", 1, 5.0), *FIRST[1:]]


def test_writes_are_followed_by_a_log_compaction_when_enough_of_them_came(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    following = load({**TOGETHER, **OFTEN, "hoodie.log.compaction.inline": "true"})
    following.insert(frame(FIRST[:2]))
    assert len(logs_of(path)) == 1
    result = following.upsert(frame([("a", "1", 2, 2.0)]))
    assert result.warnings == ()
    assert len(logs_of(path)) == 3
    following.upsert(frame([("a", "1", 3, 3.0)]))
    assert len(logs_of(path)) == 4
    assert rows_of(table) == [("a", "1", 3, 3.0), FIRST[1]]


def test_the_command_merges_logs(
    table: HoodieTable, frame: Frame, rows_of: RowsOf, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for row in (FIRST[0], ("a", "1", 2, 2.0)):
        table.upsert(frame([row]))
    options = [word for key, value in {**TOGETHER, **OFTEN}.items() for word in ("-o", f"{key}={value}")]
    with pytest.raises(SystemExit) as caught:
        main(["compact", path, "--logs", "--json", *options])
    assert not caught.value.code
    [said] = check_json(["compact"], capsys.readouterr().out)
    assert (said["state"], said["rows"], said["file_groups"]) == ("done", 1, 1)
    assert rows_of(table) == [("a", "1", 2, 2.0)]


def test_a_table_whose_rows_fill_nulls_is_refused(create: Create, frame: Frame) -> None:
    index = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    filling = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", "hoodie.write.table.version": "9"}
    filling |= {"hoodie.log.compaction.inline": "true", **OFTEN}
    table = create(table_type="MERGE_ON_READ", options={**TOGETHER, **index, **filling})
    table.insert(frame(FIRST))
    result = table.upsert(frame(FIRST))
    assert ["take the values of nulls" in warning for warning in result.warnings] == [True]
    with pytest.raises(UnsupportedTable, match="take the values of nulls"):
        table.log_compaction.run()
