"""Structured Streaming into a table: each micro-batch once, over restarts, crashes and drivers that wake up late."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from transaction_harness import HarnessClock

from hudi_locks.errors import StorageError, WriteError
from hudi_locks.spark import CommitTerms, HoodieTable, Operation, StreamSink

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
COLUMNS = "id string, month string, ts long, value double"
QUICK = {"hoodie.datasource.write.streaming.retry.interval.ms": "1"}
Stream = Callable[..., Any]


@pytest.fixture
def feed(tmp_path: Path) -> Callable[..., None]:
    """Lets files of rows come in."""
    folder = tmp_path / "in"
    folder.mkdir()

    def add(name: str, *rows: tuple[Any, ...]) -> None:
        names = [column.split()[0] for column in COLUMNS.split(", ")]
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        (folder / f"{name}.json").write_text("\n".join(lines))

    return add


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Stream:
    """Runs a query over all that came in since, one file a batch."""

    def run(sink: Callable[..., None], checkpoint: str = "checkpoint") -> None:
        rows = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
        writing = rows.writeStream.foreachBatch(sink).trigger(availableNow=True)
        writing.option("checkpointLocation", str(tmp_path / checkpoint)).start().awaitTermination()

    return run


def positions(table: HoodieTable) -> list[str]:
    timeline = table.table.timeline()
    from hudi_locks.table import read_commit

    found = [read_commit(table.table.storage, timeline, requested=one.requested).extra for one in timeline.completed()]
    return [extra["_hudi_streaming_sink_checkpoint"] for extra in found]


def test_batches_are_written_and_a_restart_goes_on(
    create: Create, load: Callable[..., HoodieTable], feed: Any, stream: Stream, rows_of: RowsOf
) -> None:
    table = create()
    feed("1", ("a", "1", 1, 1.0))
    feed("2", ("b", "1", 1, 1.0), ("a", "1", 2, 2.0))
    stream(table.stream_sink())
    assert rows_of(table) == [("a", "1", 2, 2.0), ("b", "1", 1, 1.0)]
    feed("3", ("c", "2", 1, 1.0))
    stream(load().stream_sink())
    assert rows_of(table) == [("a", "1", 2, 2.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]
    assert positions(table) == [json.dumps({"default_single_writer": str(batch)}) for batch in range(3)]


def test_a_batch_that_was_committed_before_a_crash_is_not_written_twice(
    create: Create, feed: Any, stream: Stream, rows_of: RowsOf
) -> None:
    table = create()
    feed("1", ("a", "1", 1, 1.0))
    sink = table.stream_sink(Operation.INSERT)

    def crash(rows: Any, batch: int) -> None:
        sink(rows, batch)
        raise RuntimeError("the driver died before Spark took note")

    with pytest.raises(StreamingQueryException, match="died before"):
        stream(crash)
    feed("2", ("b", "1", 1, 1.0))
    stream(table.stream_sink(Operation.INSERT))
    assert rows_of(table) == [("a", "1", 1, 1.0), ("b", "1", 1, 1.0)]
    assert len(positions(table)) == 2


def test_streams_share_a_table_under_identifiers_of_their_own(
    create: Create, load: Callable[..., HoodieTable], feed: Any, stream: Stream, rows_of: RowsOf
) -> None:
    table = create()
    feed("1", ("a", "1", 1, 1.0))
    stream(table.stream_sink(Operation.INSERT, identifier="one"), "one")
    stream(table.stream_sink(Operation.INSERT, identifier="two"), "two")
    third = load({"hoodie.datasource.write.streaming.checkpoint.identifier": "three"})
    stream(third.stream_sink(Operation.INSERT), "three")
    assert rows_of(table) == [("a", "1", 1, 1.0)] * 3
    assert positions(table) == [json.dumps({name: "0"}) for name in ("one", "two", "three")]


def test_a_query_whose_checkpoint_was_lost_is_refused_before_it_skips_rows(
    create: Create, feed: Any, stream: Stream, rows_of: RowsOf
) -> None:
    table = create()
    feed("1", ("a", "1", 1, 1.0))
    stream(table.stream_sink())
    feed("2", ("b", "1", 1, 1.0))
    with pytest.raises(StreamingQueryException, match="identifier of its own"):
        stream(table.stream_sink(), "another checkpoint")
    assert rows_of(table) == [("a", "1", 1, 1.0)]


def test_a_failure_that_passes_is_tried_again(
    create: Create, frame: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, rows_of: RowsOf
) -> None:
    table = create(options=QUICK)
    left = [StorageError("the store is away", path="x"), WriteError("rolled back", instant="1")]
    write = HoodieTable.write

    def fail(*arguments: Any, terms: CommitTerms) -> Any:
        if left:
            raise left.pop()
        return write(*arguments, terms=terms)

    looks: list[int] = []

    def look(sink: StreamSink, batch: int, query: str, has: Any = StreamSink._has) -> Any:
        looks.append(batch)
        return has(sink, batch, query)

    monkeypatch.setattr(StreamSink, "_has", look)
    monkeypatch.setattr(HoodieTable, "write", fail)
    result = table.stream_sink().write(frame([("a", "1", 1, 1.0)]), 0)
    assert len(looks) == 3  # before the first attempt, and after each that failed
    assert result is not None
    assert result.rows_inserted == 1
    assert rows_of(table) == [("a", "1", 1, 1.0)]


def test_the_next_try_comes_after_the_pause_that_is_asked_for(
    create: Create, frame: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(options={"hoodie.datasource.write.streaming.retry.interval.ms": "90000"})
    sink: StreamSink = table.stream_sink()
    sink._clock, calls = HarnessClock(), list[float]()

    def fail(*_: Any, terms: CommitTerms) -> Any:
        calls.append(sink._clock.monotonic())
        raise StorageError("the store is away", path="x")

    monkeypatch.setattr(HoodieTable, "write", fail)
    with pytest.raises(StorageError, match="is away"):
        sink.write(frame([("a", "1", 1, 1.0)]), 0)
    assert [later - earlier for earlier, later in itertools.pairwise(calls)] == [90.0] * 3


def test_a_failure_that_stays_ends_the_query_after_the_last_retry(
    create: Create, frame: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(options={**QUICK, "hoodie.datasource.write.streaming.retry.count": "2"})
    calls: list[object] = []

    def fail(*_: Any, terms: CommitTerms) -> Any:
        calls.append(terms)
        raise StorageError("the store is away", path="x")

    monkeypatch.setattr(HoodieTable, "write", fail)
    sink: StreamSink = table.stream_sink()
    with pytest.raises(StorageError, match="is away"):
        sink.write(frame([("a", "1", 1, 1.0)]), 0)
    assert len(calls) == 3


def test_a_driver_that_wakes_up_late_changes_nothing(
    create: Create, load: Callable[..., HoodieTable], frame: Callable[..., Any], rows_of: RowsOf
) -> None:
    """It looked before its successor wrote the batch, and is stopped by the look inside the lock."""
    table = create(options=QUICK)
    sleeper, rows = table.stream_sink(Operation.INSERT), frame([("a", "1", 1, 1.0)])
    looked = sleeper._has
    first = [True]

    def has(batch: int, query: str) -> bool:
        found = looked(batch, query)
        if first.pop() if first else False:
            load().stream_sink(Operation.INSERT).write(rows, batch)
        return found

    sleeper._has = has  # type: ignore[method-assign]
    assert sleeper.write(rows, 0) is None
    assert rows_of(table) == [("a", "1", 1, 1.0)]
