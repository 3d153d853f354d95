"""JVM Hudi and hudi-rs judge our logs, and JVM writers that do not block share them with us."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bucketed_tables import KEYS, THEIRS, TOGETHER, in_order, rows, run_compaction
from other_readers import DEADLINE_S, MANY, OURS, JvmError, read_rust
from paused_writes import paused
from small_tables import KEEP, THEIR_SERVICES, archive_now, archived

from hudi_locks.errors import UnsupportedTable, WriteConflict, WriteError
from hudi_locks.format import Instant, LogFileName, State, add_ms
from hudi_locks.spark import HoodieTable
from hudi_locks.timeline import create_instant
from hudi_locks.transaction import StopPoint

pytestmark = pytest.mark.interop

Row = tuple[Any, ...]
Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
AllRead = Callable[[HoodieTable], list[Row]]
COMPACTING = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
THEIRS_SERVED = {**THEIRS, **THEIR_SERVICES, **{key.replace(".", "__"): value for key, value in COMPACTING.items()}}
FORMS = [{}, {"hoodie.logfile.data.block.format": "avro"}]


@pytest.fixture
def create_mor(create: Create) -> Create:
    def make(**options: str) -> HoodieTable:
        return create(table_type="MERGE_ON_READ", options={**TOGETHER, **options})

    return make


def logs_of(table: HoodieTable) -> list[str]:
    return sorted(file.name for file in Path(table.path).rglob(".0*.log.*") if LogFileName.parse(file.name))


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


def test_a_jvm_compaction_that_is_not_told_the_ordering_field_keeps_what_is_newer(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    """By its procedure, which bundle 1.0.2 runs without what the table says of it, unless it has the writer's name."""
    table = create_mor()
    table.insert(frame(rows(KEYS, 5, "base")))
    table.compaction.run()
    table.upsert(frame([*rows(KEYS[:3], 3, "older"), *rows(KEYS[3:5], 7, "newer")]))
    state = [*rows(KEYS[:3], 5, "base"), *rows(KEYS[3:5], 7, "newer"), *rows(KEYS[5:], 5, "base")]
    assert all_read(table) == in_order(state)
    run_compaction(jvm, table, "schedule")
    run_compaction(jvm, table, "execute")
    assert all_read(table) == in_order(state)
    assert in_order(table.read(read_optimized=True, meta_columns=False).collect()) == in_order(state)


def test_the_jvm_reads_and_adds_to_what_we_compacted(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    """A bucket that is all deleted becomes a base file without rows; a plan of ours may be run by the JVM too."""
    table = create_mor()
    table.insert(frame([*rows(KEYS, 1, "ours"), *rows(KEYS[:1], 1, "ours", "us")]))
    table.delete(frame([*rows(KEYS[:1], 0, ""), *rows(KEYS[:1], 0, "", "us")]))
    table.compaction.run()
    assert all_read(table) == in_order(rows(KEYS[1:], 1, "ours"))
    assert table.read(read_optimized=True).count() == len(KEYS) - 1
    jvm.write(table, rows([*KEYS[1:3], "new"], 2, "theirs"), **THEIRS)
    table.upsert(frame(rows(KEYS[2:4], 3, "on top")))
    state = [*rows(KEYS[1:2], 2, "theirs"), *rows(KEYS[2:4], 3, "on top"), *rows(KEYS[4:], 1, "ours")]
    state += rows(["new"], 2, "theirs")
    assert all_read(table) == in_order(state)
    instant = table.compaction.schedule()
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
        assert len(table.table.storage.list_staged()) == 1
        assert logs_of(table) == kept
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
def test_many_commits_of_each_side_meet_no_conflict_while_either_compacts(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    """Of each key the greatest ordering value is left; ours are even and theirs odd, in an order that is their own."""
    table, count = create_mor(**KEEP), MANY
    table.insert(frame(rows(KEYS, 0, "ours")))
    order = [(7 * number) % count for number in range(count)]
    changes = {side: [rows(KEYS[n % 5 :: 3], 2 * n + side, f"{side} {n}") for n in order] for side in (0, 1)}
    failed: list[BaseException] = []

    # hudi-rs looks for the completion of a log on the active timeline alone, and a log may begin before a compaction
    # and end after it: archived, it would count as compacted. The JVM's archiver does not look for such logs.
    theirs = {**THEIRS, "hoodie__archive__automatic": "false"}

    def write_theirs() -> None:
        try:
            for change in changes[1]:
                jvm.write(table, change, **theirs)
        except BaseException as error:
            failed.append(error)

    beside = threading.Thread(target=write_theirs)
    beside.start()
    results = [table.upsert(frame(change)) for change in changes[0][: count // 2]]
    assert table.compaction.run() is not None
    results += [table.upsert(frame(change)) for change in changes[0][count // 2 :]]
    beside.join(DEADLINE_S)
    assert failed == []
    assert [(result.retries, result.conflicts) for result in results] == [(0, ())] * count
    newest: dict[str, Row] = {}
    for row in [*rows(KEYS, 0, "ours"), *(row for side in changes.values() for change in side for row in change)]:
        newest[row[0]] = max(newest.get(row[0], row), row, key=lambda found: found[2])
    assert all_read(table) == in_order(newest.values())
    assert archive_now(table) > 0
    assert all_read(table) == in_order(newest.values())
    run_compaction(jvm, table, "schedule")
    run_compaction(jvm, table, "execute")
    assert all_read(table) == in_order(newest.values())
    assert table.read(read_optimized=True).count() == len(KEYS)


def test_a_log_that_began_before_a_compaction_and_ended_after_it_is_archived_once_another_one_took_it(
    spark: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    """hudi-rs would miss its rows before, since it asks the active timeline alone when the log was completed."""
    table = create_mor(**KEEP, **{**COMPACTING, "hoodie.compact.inline": "false", "hoodie.archive.automatic": "false"})
    table.insert(frame(rows(KEYS, 1, "ours")))
    slow = HoodieTable.load(spark, table.path, options={**OURS, **TOGETHER})
    with paused(slow, StopPoint.BEGIN_INFLIGHT, lambda: slow.upsert(frame(rows(KEYS[:2], 3, "late")))) as writer:
        table.upsert(frame(rows(KEYS[1:3], 2, "early")))
        assert table.compaction.schedule() is not None
        overlapping = writer.finish().instant
    assert table.compaction.run() is not None
    expected = in_order([*rows(KEYS[:2], 3, "late"), *rows(KEYS[2:3], 2, "early"), *rows(KEYS[3:], 1, "ours")])
    for _ in range(4):
        table.upsert(frame(rows(KEYS[3:4], 1, "ours")))
    assert archive_now(table) == 1
    assert table.table.timeline().get(overlapping) is not None
    assert all_read(table) == expected

    assert table.compaction.run() is not None
    for _ in range(4):
        table.upsert(frame(rows(KEYS[3:4], 1, "ours")))
    assert archive_now(table) > 1
    assert overlapping in [requested for requested, _, _ in archived(table)]
    assert all_read(table) == expected


def test_cleans_and_archival_of_both_kinds_go_on_from_each_other(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    """Each side writes, compacts, cleans and archives in turn; all readers see the same rows after each."""
    table = create_mor(**KEEP, **COMPACTING, **{"hoodie.archive.automatic": "false"})
    done = str(table.insert(frame(rows(KEYS, 1, "ours"))).completion_time)
    index = Instant(add_ms(done, 1), "indexing", State.REQUESTED)
    for each in (index, index.as_inflight(), index.as_completed(add_ms(done, 2))):
        create_instant(table.table.storage, table.table.layout, instant=each, data=b"theirs")
    for n in range(2, 5):
        assert table.upsert(frame(rows(KEYS[:2], n, "ours"))).warnings == ()
    assert len(logs_of(table)) <= 4
    assert archive_now(table) > 0
    ours = jvm.archived(table)
    assert ours == archived(table)
    assert [index.requested, add_ms(done, 2), "indexing"] in ours
    assert all_read(table) == in_order([*rows(KEYS[:2], 4, "ours"), *rows(KEYS[2:], 1, "ours")])

    for n in range(5, 9):
        jvm.write(table, rows(KEYS[1:3], n, "theirs"), **THEIRS_SERVED)
    state = [*rows(KEYS[:1], 4, "ours"), *rows(KEYS[1:3], 8, "theirs"), *rows(KEYS[3:], 1, "ours")]
    theirs = jvm.archived(table)
    assert theirs == archived(table)
    assert len(theirs) > len(ours)
    assert all_read(table) == in_order(state)

    for n in range(9, 11):
        assert table.upsert(frame(rows(KEYS[2:4], n, "ours again"))).warnings == ()
    assert archive_now(table) > 0
    state = [*state[:2], *rows(KEYS[2:4], 10, "ours again"), *rows(KEYS[4:], 1, "ours")]
    assert all_read(table) == in_order(state)


def test_the_jvm_reads_and_adds_to_what_we_took_back_to_a_savepoint(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    """And goes back to it; its procedure needs the key field from the session, or it fails on the bucket index."""
    table = create_mor(**KEEP, **COMPACTING)
    table.insert(frame(rows(KEYS, 1, "ours")))
    table.upsert(frame(rows(KEYS[:2], 2, "ours")))
    table.upsert(frame(rows(KEYS[:1], 3, "ours")))
    state = in_order([*rows(KEYS[:1], 3, "ours"), *rows(KEYS[1:2], 2, "ours"), *rows(KEYS[2:], 1, "ours")])
    kept = table.services.savepoints.create(user="ours", comments="before")
    for n in range(4, 7):
        jvm.write(table, rows(KEYS[:3], n, "theirs"), **THEIRS_SERVED)
    table.services.clean()
    assert table.services.restore(kept.instant).savepoint == kept.instant
    assert all_read(table) == state

    jvm.write(table, rows(KEYS[:1], 10, "theirs"), **THEIRS)
    table.upsert(frame(rows(KEYS[1:2], 10, "ours")))
    table.compaction.run()
    changed = [*rows(KEYS[:1], 10, "theirs"), *rows(KEYS[1:2], 10, "ours"), *rows(KEYS[2:], 1, "ours")]
    assert all_read(table) == in_order(changed)
    jvm.sql("set hoodie.datasource.write.recordkey.field=id")
    jvm.sql(f"call rollback_to_savepoint(path => '{table.path}', instant_time => '{kept.instant}')")
    assert all_read(table) == state


def test_three_readers_agree_on_what_changed_in_a_span(
    jvm: Any, create_mor: Create, frame: Frame, rust: Callable[..., list[Row]]
) -> None:
    """By completion times; each row is shown once, as the span left it."""
    table = create_mor()
    results = [table.insert(frame(rows(KEYS, 1, "first")))]
    results.append(table.upsert(frame(rows(KEYS[:5], 2, "second"))))
    results.append(table.upsert(frame(rows(KEYS[3:8], 3, "third"))))
    times = [str(result.completion_time) for result in results]
    for begin, end in ((times[0], times[1]), (times[1], times[2]), (times[0], times[2])):
        ours = in_order(table.incremental(begin, end, meta_columns=False).collect())
        # Bundle 1.0.2 counts the begin of a span as part of it.
        after = str(int(begin) + 1) if jvm.version == "1.0.2" else begin
        span = {"hoodie__datasource__query__type": "incremental", "hoodie__datasource__read__begin__instanttime": after}
        assert jvm.read(table, **span, hoodie__datasource__read__end__instanttime=end) == ours
        assert rust(table, begin=begin, end=end) == ours
        deeds = [(row.op, row.after.id) for row in table.change_data(begin, end).collect()]
        assert sorted(deeds) == sorted(("u", row[0]) for row in ours)


def test_nobody_sees_the_first_write_of_a_table_before_it_is_completed_though_a_later_one_is(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead, after_job: Callable[..., None]
) -> None:
    """Its time is older than all that is completed, and what is older than the timeline counts as committed."""
    table = create_mor()
    seen: list[list[Row]] = []

    def overtake() -> None:
        jvm.write(table, rows(KEYS[:3], 1, "theirs"), **THEIRS)
        seen.append(all_read(table))

    after_job(overtake)
    table.insert(frame(rows(KEYS[2:], 2, "ours")))
    assert seen == [in_order(rows(KEYS[:3], 1, "theirs"))]
    assert all_read(table) == in_order([*rows(KEYS[:2], 1, "theirs"), *rows(KEYS[2:], 2, "ours")])


def test_an_overwrite_of_the_jvm_beside_a_writer_that_does_not_block_is_a_conflict(
    jvm: Any, create_mor: Create, frame: Frame, after_job: Callable[..., None]
) -> None:
    """Two processes: what is appended to a file group that ends meanwhile would never be read."""
    table = create_mor()
    table.insert(frame(rows(KEYS, 1, "ours")))
    theirs = {**THEIRS, "hoodie__write__concurrency__mode": "optimistic_concurrency_control"}
    left = rows(KEYS[:3], 5, "theirs")
    after_job(lambda: jvm.write(table, left, "insert_overwrite", **theirs))
    with pytest.raises(WriteConflict, match="replacecommit") as caught:
        table.upsert(frame(rows(KEYS[:6], 9, "ours")))
    assert caught.value.other_action == "replacecommit"
    assert in_order(table.read(meta_columns=False).collect()) == jvm.read(table) == in_order(left)
    with pytest.raises(UnsupportedTable):
        table.upsert(frame(rows(KEYS[:6], 9, "ours")))
    assert jvm.read(table) == in_order(left)


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
def test_numbers_of_buckets_of_each_partition_are_shared_with_the_jvm(
    jvm: Any, create_mor: Create, frame: Frame, all_read: AllRead
) -> None:
    """Both update all keys of both partitions, so that a bucket of another number would show a key twice."""
    name = "hoodie.bucket.index.partition.expressions"
    table = create_mor(**{name: "region=us,7;region=eu$,5"})
    theirs = {**THEIRS, name.replace(".", "__"): "region=us,7;region=eu$,5"}
    for number in (1, 3):
        mine = [*rows(KEYS, number, "ours"), *rows(KEYS, number, "ours", "us")]
        table.upsert(frame(mine))
        assert all_read(table) == in_order(mine)
        other = [*rows(KEYS, number + 1, "theirs"), *rows(KEYS, number + 1, "theirs", "us")]
        jvm.write(table, other, **theirs)
        assert all_read(table) == in_order(other)
    assert max(int(name[1:9]) for name in logs_of(table)) > 2
