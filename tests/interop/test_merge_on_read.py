"""JVM Hudi and hudi-rs judge our logs, and JVM writers that do not block share them with us."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from other_readers import DEADLINE_S, JvmError, read_rust

from hudi_locks.errors import WriteError
from hudi_locks.format import LogFileName
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

Row = tuple[Any, ...]
Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
AllRead = Callable[[HoodieTable], list[Row]]
MODE = "NON_BLOCKING_CONCURRENCY_CONTROL"
TOGETHER = {
    "hoodie.write.concurrency.mode": MODE,
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.hash.field": "id",
}
THEIRS = {
    **{key.replace(".", "__"): value for key, value in TOGETHER.items()},
    "hoodie__datasource__write__table__type": "MERGE_ON_READ",
    "hoodie__compact__inline": "false",
    "hoodie__datasource__compaction__async__enable": "false",
}
KEYS = [f"{text}{number}" for number in range(4) for text in ("k", "ключ", "😀")]
FORMS = [{}, {"hoodie.logfile.data.block.format": "avro"}]


@pytest.fixture
def create_mor(create: Create) -> Create:
    def make(**options: str) -> HoodieTable:
        return create(table_type="MERGE_ON_READ", options={**TOGETHER, **options})

    return make


def rows(keys: list[str], ts: int, label: str, region: str = "eu") -> list[Row]:
    return [(key, region, ts, float(ts), label) for key in keys]


def in_order(found: Any) -> list[Row]:
    return sorted((tuple(row) for row in found), key=repr)


def logs_of(table: HoodieTable) -> list[str]:
    return sorted(file.name for file in Path(table.path).rglob(".0*.log.*") if LogFileName.parse(file.name))


def run_compaction(jvm: Any, table: HoodieTable, op: str) -> None:
    options = "hoodie.datasource.write.recordkey.field=id,hoodie.compact.inline.max.delta.commits=1"
    jvm.sql(f"call run_compaction(path => '{table.path}', op => '{op}', options => '{options}')")


@pytest.mark.parametrize("form", FORMS, ids=["parquet", "avro"])
def test_three_readers_agree_on_our_logs_and_a_jvm_writer_goes_on(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead, form: dict[str, str]
) -> None:
    """Rows, updates that win and lose, deletes of keys that are there and not, and logs that were full."""
    small = {"hoodie.logfile.max.size": "1", "hoodie.logfile.data.block.max.size": "800"}
    table = create_mor(**form, **small)
    first = table.insert(frame([*rows(KEYS, 1, "ours"), *rows(KEYS[:3], 1, "ours", "us")]))
    assert len(logs_of(table)) > 4
    second = table.upsert(frame([*rows(KEYS[:2], 3, "newer"), *rows(KEYS[2:3], 0, "older")]))
    table.delete(frame([*rows(KEYS[3:5], 0, ""), *rows(["nobody"], 0, "", "asia")]))
    us = rows(KEYS[:3], 1, "ours", "us")
    state = [*rows(KEYS[:2], 3, "newer"), *rows(KEYS[2:3], 1, "ours"), *rows(KEYS[5:], 1, "ours"), *us]
    assert all_read(table) == in_order(state)
    assert jvm.read(table, as__of__instant=first.instant) == in_order([*rows(KEYS, 1, "ours"), *us])
    assert second.completion_time > first.completion_time

    jvm.write(table, [*rows(KEYS[5:6], 4, "theirs"), *rows(KEYS[:1], 2, "late"), *rows(["new"], 4, "theirs")], **THEIRS)
    jvm.write(table, us[:1], "delete", **THEIRS)
    theirs = [*rows(KEYS[5:6], 4, "theirs"), *rows(["new"], 4, "theirs")]
    state = [*rows(KEYS[:2], 3, "newer"), *rows(KEYS[2:3], 1, "ours"), *theirs, *rows(KEYS[6:], 1, "ours"), *us[1:]]
    assert all_read(table) == in_order(state)

    present = [*KEYS[:3], *KEYS[5:], "new"]
    table.upsert(frame(rows(present, 5, "ours again")))
    table.delete(frame(us[1:2]))
    assert all_read(table) == in_order([*rows(present, 5, "ours again"), *us[2:]])
    ids = {LogFileName.parse(name).file_id for name in logs_of(table)}  # type: ignore[union-attr]
    assert ids == {f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2)}


def test_a_key_that_was_deleted_may_come_again(jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead) -> None:
    """Bundle 1.0.2 fails to read that before a compaction, also where it wrote both the delete and the row."""
    table = create_mor()
    table.insert(frame(rows(KEYS[:2], 1, "first")))
    if jvm.version == "1.0.2":
        jvm.write(table, rows(KEYS[:1], 1, "first"), "delete", **THEIRS)
        jvm.write(table, rows(KEYS[:1], 1, "again"), **THEIRS)
        with pytest.raises(JvmError, match="ClassCastException"):
            jvm.read(table)
        assert read_rust(table.path) == in_order([*rows(KEYS[:1], 1, "again"), *rows(KEYS[1:2], 1, "first")])
        return
    table.delete(frame(rows(KEYS[:1], 0, "")))
    table.upsert(frame(rows(KEYS[:1], 0, "again")))
    assert all_read(table) == in_order([*rows(KEYS[:1], 0, "again"), *rows(KEYS[1:2], 1, "first")])


def test_a_jvm_compaction_takes_our_logs_and_later_ones_lie_on_top(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    table = create_mor()
    table.insert(frame(rows(KEYS, 1, "ours")))
    table.delete(frame(rows(KEYS[:1], 0, "")))
    run_compaction(jvm, table, "schedule")
    table.upsert(frame(rows(KEYS[1:2], 2, "beside the plan")))
    run_compaction(jvm, table, "execute")
    state = [*rows(KEYS[1:2], 2, "beside the plan"), *rows(KEYS[2:], 1, "ours")]
    assert all_read(table) == in_order(state)
    assert table.read(read_optimized=True).count() == len(KEYS) - 1
    table.upsert(frame(rows(KEYS[:3], 3, "on top")))
    assert all_read(table) == in_order([*rows(KEYS[:3], 3, "on top"), *rows(KEYS[3:], 1, "ours")])


def test_the_jvm_reads_and_adds_to_what_we_compacted(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    """A bucket that is all deleted becomes a base file without rows; a plan of ours may be run by the JVM too."""
    table = create_mor()
    table.insert(frame([*rows(KEYS, 1, "ours"), *rows(KEYS[:1], 1, "ours", "us")]))
    table.delete(frame([*rows(KEYS[:1], 0, ""), *rows(KEYS[:1], 0, "", "us")]))
    table.compact()
    assert all_read(table) == in_order(rows(KEYS[1:], 1, "ours"))
    assert table.read(read_optimized=True).count() == len(KEYS) - 1
    jvm.write(table, rows([*KEYS[1:3], "new"], 2, "theirs"), **THEIRS)
    table.upsert(frame(rows(KEYS[2:4], 3, "on top")))
    state = [*rows(KEYS[1:2], 2, "theirs"), *rows(KEYS[2:4], 3, "on top"), *rows(KEYS[4:], 1, "ours")]
    state += rows(["new"], 2, "theirs")
    assert all_read(table) == in_order(state)
    instant = table.schedule_compaction()
    table.upsert(frame(rows(["late"], 1, "beside the plan")))
    run_compaction(jvm, table, "execute")
    assert all_read(table) == in_order([*state, *rows(["late"], 1, "beside the plan")])
    done = table.table.timeline().get(str(instant))
    assert done is not None
    assert done.is_completed
    assert table.read(read_optimized=True).count() == len(state)


def test_logs_of_a_write_that_died_are_rolled_back_by_the_jvm(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead, after_job: Callable[..., None]
) -> None:
    table = create_mor()
    table.insert(frame(rows(KEYS, 1, "ours")))
    kept = logs_of(table)

    def bury() -> None:
        assert len(logs_of(table)) == len(kept) + 2
        for file in Path(table.path, ".hoodie/.heartbeat").iterdir():
            file.unlink()
        jvm.write(table, rows(["new"], 2, "theirs", "us"), **THEIRS)

    after_job(bury)
    with pytest.raises(WriteError, match="roll"):
        table.upsert(frame(rows(KEYS, 2, "dead")))
    assert all_read(table) == in_order([*rows(KEYS, 1, "ours"), *rows(["new"], 2, "theirs", "us")])
    assert len(logs_of(table)) == len(kept) + 1


def test_a_jvm_writer_beside_ours_on_one_file_group_meets_no_conflict(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead, after_job: Callable[..., None]
) -> None:
    table = create_mor(**{"hoodie.bucket.index.num.buckets": "1"})
    theirs = {**THEIRS, "hoodie__bucket__index__num__buckets": "1"}
    table.insert(frame(rows(KEYS, 1, "ours")))
    after_job(lambda: jvm.write(table, [*rows(KEYS[:1], 9, "theirs"), *rows(KEYS[1:2], 2, "theirs")], **theirs))
    result = table.upsert(frame([*rows(KEYS[:1], 3, "ours"), *rows(KEYS[1:2], 3, "ours")]))
    assert (result.retries, result.conflicts) == (0, ())
    expected = [*rows(KEYS[:1], 9, "theirs"), *rows(KEYS[1:2], 3, "ours"), *rows(KEYS[2:], 1, "ours")]
    assert all_read(table) == in_order(expected)


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
def test_twenty_commits_of_each_side_meet_no_conflict_while_either_compacts(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    """Of each key the greatest ordering value is left; ours are even and theirs odd, in an order that is their own."""
    table, count = create_mor(), 20
    table.insert(frame(rows(KEYS, 0, "ours")))
    order = [(7 * number) % count for number in range(count)]
    changes = {side: [rows(KEYS[n % 5 :: 3], 2 * n + side, f"{side} {n}") for n in order] for side in (0, 1)}
    failed: list[BaseException] = []

    def write_theirs() -> None:
        try:
            for change in changes[1]:
                jvm.write(table, change, **THEIRS)
        except BaseException as error:
            failed.append(error)

    beside = threading.Thread(target=write_theirs)
    beside.start()
    results = [table.upsert(frame(change)) for change in changes[0][:10]]
    assert table.compact() is not None
    results += [table.upsert(frame(change)) for change in changes[0][10:]]
    beside.join(DEADLINE_S)
    assert failed == []
    assert [(result.retries, result.conflicts) for result in results] == [(0, ())] * count
    newest: dict[str, Row] = {}
    for row in [*rows(KEYS, 0, "ours"), *(row for side in changes.values() for change in side for row in change)]:
        newest[row[0]] = max(newest.get(row[0], row), row, key=lambda found: found[2])
    assert all_read(table) == in_order(newest.values())
    run_compaction(jvm, table, "schedule")
    run_compaction(jvm, table, "execute")
    assert all_read(table) == in_order(newest.values())
    assert table.read(read_optimized=True).count() == len(KEYS)
