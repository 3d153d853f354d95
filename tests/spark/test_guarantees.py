"""What the documentation of Hudi promises for each deployment model, and the overlapping transactions of RFC-22."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shared_table
from paused_writes import paused

from hudi_locks.errors import TableError
from hudi_locks.spark import HoodieTable
from hudi_locks.transaction import StopPoint

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
SHARED = {**shared_table.SHARED, "hoodie.write.num.retries.on.conflict.failures": "5"}
ONCE = {"hoodie.datasource.write.insert.drop.duplicates": "true", "hoodie.combine.before.insert": "true"}
HOLES = "hoodie.read.timeline.holes.resolution.policy"
A, A2, B = ("a", "1", 1, 1.0), ("a", "1", 2, 2.0), ("b", "1", 1, 1.0)


class Consumer:
    """Pulls what is new, from the completion time of the last commit that it has seen."""

    def __init__(self, table: HoodieTable, rows_of: RowsOf) -> None:
        self._table, self._rows_of, self._checkpoint = table, rows_of, "0"

    def pull(self) -> list[tuple[Any, ...]]:
        changed = self._table.incremental(self._checkpoint)
        rows = self._rows_of(changed, "id", "ts")
        shown = {row[0] for row in changed.select("_hoodie_commit_time").distinct().collect()}
        times = [i.completion for i in self._table.table.timeline().completed() if i.requested in shown]
        self._checkpoint = max([self._checkpoint, *filter(None, times)])
        return rows


def test_a_single_writers_upserts_show_no_duplicates(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    table.upsert(frame([A, A2, B]))
    table.upsert(frame([A2, B]))
    assert rows_of(table) == [A2, B]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_a_single_writers_inserts_show_none_where_they_are_dropped(
    create: Create, frame: Frame, rows_of: RowsOf, operation: str
) -> None:
    table = create(options=ONCE)
    write = getattr(table, operation)
    write(frame([A, A2]))
    write(frame([A, B, B]))
    assert rows_of(table) == [A2, B]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_without_that_an_insert_asks_no_questions(
    create: Create, frame: Frame, rows_of: RowsOf, operation: str
) -> None:
    table = create()
    getattr(table, operation)(frame([A]))
    getattr(table, operation)(frame([A]))
    assert rows_of(table) == [A, A]


def test_a_single_writers_changes_are_pulled_once_each_and_in_order(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    table = create()
    consumer = Consumer(load({}), rows_of)
    pulled = []
    for rows in ([A], [B], [A2]):
        table.upsert(frame(rows))
        pulled.append(consumer.pull())
    assert pulled == [[("a", 1)], [("b", 1)], [("a", 2)]]
    assert consumer.pull() == []


def test_upserts_of_two_writers_show_no_duplicates(create: Create, load: Load, frame: Frame, rows_of: RowsOf) -> None:
    create(options=SHARED)
    ours, theirs = load(SHARED), load(SHARED)
    with paused(ours, StopPoint.BEGIN_INFLIGHT, lambda: ours.upsert(frame([A2, B]))) as first:
        theirs.upsert(frame([A]))
        assert first.finish().retries == 1
    assert rows_of(ours) == [A2, B]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
@pytest.mark.parametrize(("options", "expected"), [({}, [A, A2]), (ONCE, [A])])
def test_inserts_of_two_writers_may_show_duplicates_and_do_not_where_they_are_dropped(
    create: Create,
    load: Load,
    frame: Frame,
    rows_of: RowsOf,
    operation: str,
    options: dict[str, str],
    expected: list[Any],
) -> None:
    """The documentation warns of duplicates even with dropping; here the keys of both are compared."""
    given = {**SHARED, **options}
    create(options=given)
    ours, theirs = load(given), load(given)
    with paused(ours, StopPoint.BEGIN_INFLIGHT, lambda: getattr(ours, operation)(frame([A2]))) as first:
        getattr(theirs, operation)(frame([A]))
        first.finish()
    assert rows_of(ours) == expected


def test_two_writers_of_other_partitions_never_wait_or_retry(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    """The first case of the documentation: writers that share a table and not its partitions."""
    table = create(options=SHARED)
    with ExitStack() as stack:
        tables = [(month, load(SHARED)) for month in "123"]
        changes = [(each, partial(each.upsert, frame([("a", month, 1, 1.0)]))) for month, each in tables]
        writes = [stack.enter_context(paused(each, StopPoint.BEGIN_INFLIGHT, write)) for each, write in changes]
        assert [write.finish().retries for write in reversed(writes)] == [0, 0, 0]
    assert rows_of(table, "month") == [("1",), ("2",), ("3",)]


def test_changes_of_two_writers_are_pulled_once_each_and_in_the_order_of_completion(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    """One began first and completes last: a consumer that went by requested times would miss it."""
    create(options=SHARED)
    slow, quick, consumer = load(SHARED), load(SHARED), Consumer(load({}), rows_of)
    with paused(slow, StopPoint.BEGIN_INFLIGHT, lambda: slow.upsert(frame([("s", "8", 1, 1.0)]))) as first:
        quick.upsert(frame([("q", "9", 1, 1.0)]))
        assert consumer.pull() == [("q", 1)]
        first.finish()
        assert consumer.pull() == [("s", 1)]
        assert consumer.pull() == []


def test_nothing_completed_is_exposed_behind_a_pending_write_where_that_is_asked_for(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf
) -> None:
    table = create(options=SHARED)
    table.upsert(frame([A]))
    slow, quick = load(SHARED), load(SHARED)
    blocking = Consumer(load({HOLES: "BLOCK"}), rows_of)
    with paused(slow, StopPoint.BEGIN_INFLIGHT, lambda: slow.upsert(frame([("s", "8", 1, 1.0)]))) as first:
        quick.upsert(frame([("q", "9", 1, 1.0)]))
        assert blocking.pull() == [("a", 1)]
        assert blocking.pull() == []
        with pytest.raises(TableError, match="is completed while commit"):
            load({HOLES: "FAIL"}).incremental("0")
        first.finish()
        assert blocking.pull() == [("q", 1), ("s", 1)]
    assert rows_of(load({HOLES: "FAIL"}).incremental("0"), "id") == [("a",), ("q",), ("s",)]


def lazily(frame: Frame, source: Path) -> Any:
    """One row whose value is read from `source` only when Spark computes it."""
    row = frame([("k", "1", 0, 0.0)])

    def read(batches: Any) -> Any:
        for batch in batches:
            values = pa.array([float(source.read_text())] * batch.num_rows)
            yield batch.set_column(3, "value", values)

    return row.mapInArrow(read, row.schema)


def test_the_result_of_overlapping_transactions_follows_their_completion_and_not_their_beginning(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, tmp_path: Path
) -> None:
    """T1 to T4 of RFC-22: T2 is the second to begin and the last to complete; its input is computed when it runs."""
    source = tmp_path / "source"
    source.write_text("1")
    table = create(options=SHARED, ordering=None)
    table.upsert(lazily(frame, source))  # T1
    writers = {name: load(SHARED) for name in ("T2", "T3", "T4")}
    late_input = lazily(frame, source)
    source.write_text("2")
    with paused(writers["T2"], StopPoint.BEGIN_INFLIGHT, lambda: writers["T2"].upsert(late_input)) as second:
        for name, value in (("T3", "3"), ("T4", "4")):
            source.write_text(value)
            writers[name].upsert(lazily(frame, source))
            assert rows_of(table, "value") == [(float(value),)]
        result = second.finish()
    assert rows_of(table, "value") == [(2.0,)]
    first_try, *_ = result.attempts
    completions = [(i.completion, i.requested) for i in table.table.timeline().completed(("commit",))]
    assert max(completions)[1] == result.instant
    assert first_try.instant < sorted(requested for _, requested in completions)[1]
