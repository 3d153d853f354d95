"""Merge-on-read tables whose keys are looked up: updates go to logs, new rows to base files, in one commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shared_table
from paused_writes import paused

from hudi_locks.errors import ConfigError, HoodieEarlyConflictDetectionException, UnsupportedTable, WriteConflict
from hudi_locks.spark import HoodieTable
from hudi_locks.table import latest_file_slices
from hudi_locks.transaction import StopPoint
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

RETRIED = {
    **shared_table.SHARED,
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "1",
}
APART = {**RETRIED, "hoodie.parquet.small.file.limit": "0"}
"""New rows go to file groups of their own."""
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 2.0), ("c", "2", 1, 3.0)]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def table(create: Create, frame: Frame) -> HoodieTable:
    made = create(table_type="MERGE_ON_READ", options=RETRIED)
    made.upsert(frame(FIRST))
    return made


def slices_of(table: HoodieTable) -> dict[str, list[int]]:
    """How many logs the newest slice of each file group has that has a base file, by partition."""
    found: dict[str, list[int]] = {}
    for piece in latest_file_slices(table.table.storage, table.table.timeline()):
        assert piece.base is not None
        found.setdefault(piece.partition, []).append(len(piece.logs))
    return {partition: sorted(logs) for partition, logs in found.items()}


def actions_of(table: HoodieTable) -> list[str]:
    return [instant.action for instant in table.table.timeline().completed()]


def test_found_keys_are_logged_and_new_ones_go_to_base_files(table: HoodieTable, frame: Frame, rows_of: RowsOf) -> None:
    result = table.upsert(frame([("a", "1", 2, 10.0), ("b", "1", 0, 20.0)]))
    assert (result.rows_updated, result.rows_inserted) == (2, 0)
    assert slices_of(table) == {"1": [1], "2": [0]}
    table.upsert(frame([("a", "1", 3, 11.0), ("n", "1", 1, 4.0), ("c", "2", 2, 30.0), ("m", "2", 1, 5.0)]))
    # Partition 1: its file group has logs, so that the new row got one of its own; that of 2 was written again.
    assert slices_of(table) == {"1": [0, 2], "2": [0]}
    state = [("a", "1", 3, 11.0), FIRST[1], ("c", "2", 2, 30.0), ("m", "2", 1, 5.0), ("n", "1", 1, 4.0)]
    assert rows_of(table) == state
    assert table.delete(frame([("b", "1", 0, 0.0), ("nobody", "2", 0, 0.0)])).rows_deleted == 1
    assert rows_of(table) == [row for row in state if row[0] != "b"]
    assert actions_of(table) == ["deltacommit"] * 4
    assert verify_table(table.table.storage).damages == ()


def test_compactions_take_the_logs_and_writes_go_on(table: HoodieTable, frame: Frame, rows_of: RowsOf) -> None:
    table.upsert(frame([("a", "1", 2, 10.0)]))
    table.delete(frame([("b", "1", 0, 0.0)]))
    state = [("a", "1", 2, 10.0), FIRST[2]]
    compacted = table.compaction.run()
    assert compacted is not None
    assert compacted.rows_written == 1
    assert rows_of(table) == rows_of(table.read(read_optimized=True)) == state
    table.upsert(frame([("b", "1", 0, 5.0), ("a", "1", 3, 6.0)]))
    assert rows_of(table) == [("a", "1", 3, 6.0), ("b", "1", 0, 5.0), FIRST[2]]
    assert slices_of(table) == {"1": [0], "2": [0]}


def test_a_key_that_only_the_log_of_an_earlier_writer_has_is_found(
    table: HoodieTable, frame: Frame, rows_of: RowsOf
) -> None:
    table.delete(frame([("a", "1", 0, 0.0)]))
    table.compaction.schedule()
    table.upsert(frame([("a", "1", 5, 5.0)]))  # found in the base file before
    table.compaction.run()
    assert rows_of(table.read(read_optimized=True)) == FIRST[1:]
    assert rows_of(table) == [("a", "1", 5, 5.0), *FIRST[1:]]
    table.upsert(frame([("a", "1", 6, 6.0)]))
    assert rows_of(table) == [("a", "1", 6, 6.0), *FIRST[1:]]
    assert slices_of(table) == {"1": [2], "2": [0]}


def test_a_key_that_another_writer_brought_anew_after_a_compaction_is_a_conflict(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    table.delete(frame([("a", "1", 0, 0.0)]))

    def compact_and_bring() -> None:
        other = load(APART)
        other.compaction.run()
        other.upsert(frame([("a", "1", 5, 5.0)]))

    after_job(compact_and_bring)
    result = table.upsert(frame([("a", "1", 6, 6.0)]))
    assert result.retries == 1
    assert rows_of(table) == [("a", "1", 6, 6.0), *FIRST[1:]]


def test_a_key_that_an_earlier_writer_logged_meanwhile_is_a_conflict(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    table.delete(frame([("a", "1", 0, 0.0)]))
    earlier, later = load(RETRIED), load(APART)
    with paused(earlier, StopPoint.BEGIN_INFLIGHT, lambda: earlier.upsert(frame([("a", "1", 5, 5.0)]))) as write:
        later.compaction.run()
        after_job(write.finish)
        result = later.upsert(frame([("a", "1", 6, 6.0)]))
    assert (write.error, result.retries) == (None, 1)
    assert rows_of(table) == [("a", "1", 6, 6.0), *FIRST[1:]]


def test_two_writers_of_one_file_group_conflict_and_others_do_not(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    after_job(lambda: load(RETRIED).upsert(frame([("c", "2", 2, 30.0)])))
    assert table.upsert(frame([("a", "1", 2, 10.0)])).retries == 0
    after_job(lambda: load(RETRIED).upsert(frame([("b", "1", 2, 20.0)])))
    assert table.upsert(frame([("a", "1", 3, 11.0)])).retries == 1
    impatient = load({**RETRIED, "hoodie.write.num.retries.on.conflict.failures": "0"})
    after_job(lambda: load(RETRIED).upsert(frame([("a", "1", 9, 12.0)])))
    with pytest.raises(WriteConflict):
        impatient.upsert(frame([("a", "1", 8, 13.0)]))
    assert rows_of(table) == [("a", "1", 9, 12.0), ("b", "1", 2, 20.0), ("c", "2", 2, 30.0)]


def test_a_new_key_that_two_writers_bring_is_there_once(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    after_job(lambda: load(RETRIED).upsert(frame([("n", "3", 1, 1.0)])))
    assert table.upsert(frame([("n", "3", 2, 2.0)])).retries == 1
    assert rows_of(table) == [*FIRST, ("n", "3", 2, 2.0)]


@pytest.mark.parametrize("row", [("b", "1", 2, 2.0), ("c", "2", 2, 2.0)], ids=["logged", "rewritten"])
def test_the_later_of_two_writers_gives_up_before_it_writes(
    table: HoodieTable,
    load: Load,
    frame: Frame,
    rows_of: RowsOf,
    after_job: Callable[..., None],
    row: tuple[Any, ...],
) -> None:
    detecting = {
        **RETRIED,
        "hoodie.write.concurrency.early.conflict.detection.enable": "true",
        "hoodie.write.num.retries.on.conflict.failures": "0",
    }
    ours, theirs = load(detecting), load(detecting)
    met: list[str] = []

    def meet() -> None:
        with pytest.raises(HoodieEarlyConflictDetectionException) as caught:
            theirs.upsert(frame([row]))
        met.append(caught.value.partition)

    after_job(meet)
    ours.upsert(frame([("a", "1", 2, 2.0), ("n", "2", 1, 1.0)]))
    assert met == [row[1]]
    assert rows_of(ours) == [("a", "1", 2, 2.0), *FIRST[1:], ("n", "2", 1, 1.0)]


def test_inserts_overwrites_and_deleted_partitions(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    table.upsert(frame([("a", "1", 2, 10.0), ("c", "2", 2, 30.0)]))
    dropping = load({**RETRIED, "hoodie.datasource.write.insert.drop.duplicates": "true"})
    assert dropping.insert(frame([("a", "1", 9, 9.0), ("n", "1", 1, 4.0)])).rows_inserted == 1
    table.bulk_insert(frame([("n", "4", 1, 5.0)]))
    state = [("a", "1", 2, 10.0), FIRST[1], ("c", "2", 2, 30.0), ("n", "1", 1, 4.0), ("n", "4", 1, 5.0)]
    assert rows_of(table) == state
    assert table.insert_overwrite(frame([("z", "1", 1, 6.0)])).file_groups_replaced == 2
    assert table.delete_partitions(["2"]).file_groups_replaced == 1
    assert rows_of(table) == [("n", "4", 1, 5.0), ("z", "1", 1, 6.0)]
    table.upsert(frame([("z", "1", 2, 7.0), ("y", "2", 1, 8.0)]))
    assert rows_of(table) == [("n", "4", 1, 5.0), ("y", "2", 1, 8.0), ("z", "1", 2, 7.0)]
    table.insert_overwrite_table(frame([("q", "1", 1, 9.0)]))
    assert rows_of(table) == [("q", "1", 1, 9.0)]
    assert verify_table(table.table.storage).damages == ()


def test_cleans_archival_and_savepoints_serve_such_a_table(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    often = {
        "hoodie.clean.automatic": "true",
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
    }
    table = create(table_type="MERGE_ON_READ", options={**RETRIED, **often})
    for turn in range(9):
        table.upsert(frame([("a", "1", turn, 1.0), ("b", "1", turn % 3, 1.0 * turn), (f"n{turn}", "2", 1, 1.0)]))
    others = [(f"n{turn}", "2", 1, 1.0) for turn in range(9)]
    assert rows_of(table) == [("a", "1", 8, 1.0), ("b", "1", 2, 8.0), *others]
    assert {"clean", "commit"} <= set(actions_of(table))
    assert verify_table(table.table.storage).damages == ()


def test_without_a_record_index_keys_are_looked_for_everywhere_with_a_warning(
    create: Create, frame: Frame, rows_of: RowsOf
) -> None:
    table = create(table_type="MERGE_ON_READ", options={"hoodie.index.type": "RECORD_INDEX"})
    with pytest.warns(UserWarning, match="has no record index"):
        table.upsert(frame([("a", "1", 1, 1.0)]))
    table.upsert(frame([("a", "2", 2, 2.0)]))
    assert rows_of(table, "id", "ts") == [("a", 2)]


def test_writers_that_do_not_block_need_buckets(create: Create) -> None:
    with pytest.raises(ConfigError, match=r"needs hoodie\.index\.type=BUCKET"):
        create(
            table_type="MERGE_ON_READ",
            options={
                **RETRIED,
                "hoodie.index.type": "SIMPLE",
                "hoodie.write.concurrency.mode": "non_blocking_concurrency_control",
            },
        )


def test_file_groups_without_a_base_file_are_refused(spark: Any, golden: Callable[[str], Any]) -> None:
    table = HoodieTable.load(spark, golden("v8_mor_nbcc").base)
    with pytest.raises(UnsupportedTable, match="file group without a base file"):
        table.upsert(table.read(meta_columns=False))
