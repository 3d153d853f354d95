"""Isolation shown: for each anomaly of the textbook two real writers, or a writer and a reader, that would meet it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from paused_writes import paused
from shared_table import SHARED

from hudi_locks.errors import WriteConflict
from hudi_locks.spark import HoodieTable
from hudi_locks.transaction import StopPoint

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
RETRYING = {**SHARED, "hoodie.write.num.retries.on.conflict.failures": "3"}
A, B, C = ("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)


@pytest.fixture
def table(create: Create, frame: Frame) -> HoodieTable:
    """Rows a and b in one file group, c in another."""
    made = create(options=SHARED)
    made.bulk_insert(frame([A, B, C]))
    return made


@pytest.mark.parametrize("point", [StopPoint.PUBLISH_TIMED, StopPoint.PUBLISH_CLAIMED])
def test_no_dirty_read(table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, point: StopPoint) -> None:
    """All files of the write are in place, its claim may stand, and nobody sees a row of it before it is completed."""
    before = table.table.timeline().newest_time()
    with paused(table, point, lambda: table.upsert(frame([("a", "1", 2, 2.0), ("n", "9", 2, 2.0)]))) as writer:
        reader = load(SHARED)
        assert rows_of(reader) == [A, B, C]
        assert rows_of(reader.incremental(str(before))) == []
        writer.finish()
        assert rows_of(reader) == [("a", "1", 2, 2.0), B, C, ("n", "9", 2, 2.0)]


def test_no_dirty_read_of_a_write_that_was_aborted(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    with paused(table, StopPoint.BEGIN_INFLIGHT, lambda: table.upsert(frame([("a", "1", 2, 2.0)]))) as loser:
        load(SHARED).upsert(frame([("b", "1", 2, 2.0)]))
        loser.finish()
        assert isinstance(loser.error, WriteConflict)
        assert rows_of(load(SHARED)) == [A, ("b", "1", 2, 2.0), C]


def test_no_non_repeatable_read(table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf) -> None:
    """A reader that looks twice within what it once read sees the same rows, whatever was committed in between."""
    with paused(table, StopPoint.PUBLISH_TIMED, lambda: table.upsert(frame([("a", "1", 2, 2.0)]))) as writer:
        seen = load(SHARED).read(meta_columns=False).where("id = 'a'")
        assert rows_of(seen) == [A]
        writer.finish()
        load(SHARED).delete(frame([("b", "1")], "id string, month string"))
        assert rows_of(seen) == [A]
    assert rows_of(table) == [("a", "1", 2, 2.0), C]


def test_no_phantom(table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf) -> None:
    """Rows that come to match a predicate, also in a new partition, stay out of a snapshot that was taken before."""
    with paused(table, StopPoint.PUBLISH_TIMED, lambda: table.insert(frame([("n", "9", 9, 9.0)]))) as writer:
        matching = load(SHARED).read(meta_columns=False).where("value < 100")
        assert matching.count() == 3
        writer.finish()
        load(SHARED).insert(frame([("m", "2", 9, 9.0)]))
        assert matching.count() == 3
    assert table.read().where("value < 100").count() == 5


def test_no_lost_update_between_rows_of_one_file_group(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    """Both built on the same files: the later one begins anew and keeps what the other wrote."""
    ours, theirs = load(RETRYING), load(RETRYING)
    with (
        paused(ours, StopPoint.BEGIN_INFLIGHT, lambda: ours.upsert(frame([("a", "1", 2, 2.0)]))) as first,
        paused(theirs, StopPoint.BEGIN_INFLIGHT, lambda: theirs.upsert(frame([("b", "1", 2, 2.0)]))) as second,
    ):
        results = [second.finish(), first.finish()]
    assert [result.retries for result in results] == [0, 1]
    assert rows_of(table) == [("a", "1", 2, 2.0), ("b", "1", 2, 2.0), C]


def test_no_lost_update_of_one_row(table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf) -> None:
    """Two read a value and add to it: without retries the second is told, reads again, and both additions are there."""

    def add(target: HoodieTable, much: float) -> Any:
        [(_, _, ts, value)] = rows_of(target.read(meta_columns=False).where("id = 'a'"))
        return target.upsert(frame([("a", "1", ts + 1, value + much)]))

    ours, theirs = load(SHARED), load(SHARED)
    with (
        paused(ours, StopPoint.BEGIN_INFLIGHT, lambda: add(ours, 10)) as first,
        paused(theirs, StopPoint.BEGIN_INFLIGHT, lambda: add(theirs, 100)) as second,
    ):
        committed = second.finish()
        first.finish()
        assert isinstance(first.error, WriteConflict)
        assert first.error.other == committed.instant
    add(ours, 10)
    assert rows_of(table)[0] == ("a", "1", 3, 111.0)


def switch_off(table: HoodieTable, frame: Frame, rows_of: RowsOf, *, mine: str, other: str) -> Any:
    """Switch one of two rows off if the other is on, so that one is always on."""
    on = {row[0]: row for row in rows_of(table.read(meta_columns=False).where("value > 0"))}
    assert other in on, f"{other} is off already"
    return table.upsert(frame([(mine, on[mine][1], 2, 0.0)]))


def test_no_write_skew_on_overlapping_file_groups(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    """Each saw the other's row on and switches its own off: one of them is told, looks again, and lets it be."""
    ours, theirs = load(SHARED), load(SHARED)
    with (
        paused(ours, StopPoint.BEGIN_INFLIGHT, lambda: switch_off(ours, frame, rows_of, mine="a", other="b")) as first,
        paused(
            theirs, StopPoint.BEGIN_INFLIGHT, lambda: switch_off(theirs, frame, rows_of, mine="b", other="a")
        ) as second,
    ):
        assert second.finish().outcome.value == "COMMITTED"
        first.finish()
        assert isinstance(first.error, WriteConflict)
    with pytest.raises(AssertionError, match="b is off already"):
        switch_off(ours, frame, rows_of, mine="a", other="b")
    assert rows_of(table) == [A, ("b", "1", 2, 0.0), C]


def test_what_two_writers_only_read_of_each_others_file_groups_is_not_kept_apart(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    """The limit of snapshot isolation, and of the documentation's promise: a and c share no file group."""
    ours, theirs = load(SHARED), load(SHARED)
    with (
        paused(ours, StopPoint.BEGIN_INFLIGHT, lambda: switch_off(ours, frame, rows_of, mine="a", other="c")) as first,
        paused(
            theirs, StopPoint.BEGIN_INFLIGHT, lambda: switch_off(theirs, frame, rows_of, mine="c", other="a")
        ) as second,
    ):
        assert [second.finish().retries, first.finish().retries] == [0, 0]
    assert rows_of(table) == [("a", "1", 2, 0.0), B, ("c", "2", 2, 0.0)]
