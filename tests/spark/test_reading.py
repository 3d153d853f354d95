"""Snapshots, time travel and incremental reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hudi_locks.errors import BadInput, DamagedTable, TableError
from hudi_locks.format import add_ms
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings
from hudi_locks.spark import HoodieTable
from hudi_locks.spark._compat import SWITCHES
from hudi_locks.spark.reading.reader import Reader

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]


def test_time_travel_and_changes(create: Create, load: Load, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    frozen = table.read()
    first = table.upsert(frame([("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]))
    second = table.upsert(frame([("b", "1", 2, 2.0), ("d", "2", 2, 2.0)]))
    third = table.delete(frame([("c", "2")], "id string, month string"))
    fourth = table.upsert(frame([("b", "1", 4, 4.0)]))
    reader = load()

    states = {
        first: [("a", 1), ("b", 1), ("c", 1)],
        second: [("a", 1), ("b", 2), ("c", 1), ("d", 2)],
        third: [("a", 1), ("b", 2), ("d", 2)],
        fourth: [("a", 1), ("b", 4), ("d", 2)],
    }
    for result, expected in states.items():
        assert rows_of(reader.as_of(result.completion_time), "id", "ts") == expected
        assert rows_of(reader.as_of(requested=result.instant), "id", "ts") == expected
    assert rows_of(reader.as_of(add_ms(second.completion_time, -1)), "id", "ts") == states[first]
    assert rows_of(reader.as_of(add_ms(first.instant, -1))) == []
    assert rows_of(reader, "id", "ts") == states[fourth]
    assert frozen.count() == 0

    times = [result.completion_time for result in (first, second, third, fourth)]
    spans = {
        ("", None): [("a", 1), ("b", 4), ("d", 2)],
        (times[0], times[1]): [("b", 2), ("d", 2)],
        (times[0], None): [("b", 4), ("d", 2)],
        (times[1], times[2]): [],
        (times[2], times[3]): [("b", 4)],
        (times[3], None): [],
        ("", times[0]): [("a", 1), ("b", 1), ("c", 1)],
    }
    for (begin, end), expected in spans.items():
        assert rows_of(reader.incremental(begin, end), "id", "ts") == expected, (begin, end)
    assert "_hoodie_commit_time" not in reader.incremental("", meta_columns=False).columns


def test_a_snapshot_stays_what_it_was_when_it_was_made(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    table.upsert(frame([("a", "1", 1, 1.0)]))
    before = table.read()
    table.upsert(frame([("a", "1", 2, 2.0), ("b", "1", 1, 1.0)]))
    assert rows_of(before, "id", "ts") == [("a", 1)]
    assert rows_of(table, "id", "ts") == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("partition_by", ["month", ()], ids=["partitioned", "flat"])
def test_a_file_that_goes_while_a_read_is_planned_is_named(
    spark: Any, create: Create, frame: Frame, monkeypatch: pytest.MonkeyPatch, partition_by: Any
) -> None:
    """By Spark when it reads; or at once, where Spark is made to look for each file."""
    table = create(partition_by=partition_by)
    table.upsert(frame([("a", "1", 1, 1.0)]))
    table.insert(frame([("b", "2", 1, 1.0)]))
    list_slices = Reader._list_slices

    def list_and_lose(*arguments: Any, **limits: Any) -> Any:
        found = list_slices(*arguments, **limits)
        Path(table.path, found[-1].paths[0]).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Reader, "_list_slices", list_and_lose)
    rows = table.read()
    with pytest.raises((PySparkException, Py4JError), match=r"\.parquet"):
        rows.collect()
    spark.conf.set(SWITCHES["files"], "false")
    try:
        with pytest.raises(DamagedTable, match=r"\.parquet is gone") as caught:
            table.read()
    finally:
        spark.conf.unset(SWITCHES["files"])
    assert caught.value.path.endswith(".parquet")


def test_a_time_that_is_none_is_refused(create: Create) -> None:
    table = create()
    for read in (table.as_of, table.incremental, lambda time: table.as_of(requested=time)):
        with pytest.raises(BadInput, match="yesterday"):
            read("yesterday")


def archive(table: HoodieTable) -> None:
    """Leave two commits on the active timeline, however young the others are."""
    settings = ArchiveSettings.of({"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    coordinator = table._open().transactions.coordinator
    Archiver(coordinator, replace(settings, min_age_ms=0), clean_settings=CleanSettings.of({})).run()


def test_a_span_that_reaches_into_the_archive_is_read_while_its_files_are_there(
    create: Create, frame: Frame, path: str
) -> None:
    table = create()
    first = table.upsert(frame([("z", "9", 1, 1.0)]))
    for number in range(4):
        table.upsert(frame([("a", "1", number, 1.0)]))
    archive(table)
    assert table.table.timeline().get(first.instant) is None
    assert table.incremental("20000101000000000").count() == 2
    [file] = Path(path, "9").glob("*.parquet")
    file.unlink()
    with pytest.raises(TableError, match="was cleaned") as caught:
        table.incremental("20000101000000000")
    assert caught.value.first_active == table.table.timeline().first_active
    assert table.incremental(first.completion_time).count() == 1


def test_a_damaged_instant_is_named_by_reads_and_writes(create: Create, frame: Frame, path: str) -> None:
    table = create()
    result = table.upsert(frame([("a", "1", 1, 1.0)]))
    name = f"{result.instant}_{result.completion_time}.commit"
    table.table.storage.replace(f".hoodie/timeline/{name}", b"Obj\x01 cut")
    for use in (table.read, lambda: table.upsert(frame([("b", "1", 1, 1.0)])), lambda: table.incremental("0")):
        with pytest.raises(DamagedTable, match=name) as caught:
            use()
        assert caught.value.path == f".hoodie/timeline/{name}"
    table.table.storage.replace(f".hoodie/timeline/{result.instant}.comit", b"")
    with pytest.raises(DamagedTable, match=r"\.comit"):
        table.read()
