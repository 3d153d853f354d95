"""What tests of a table's whole life share, wherever it lies: its kinds, its rows, and those that must be there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from other_readers import COLUMNS, Rows
from small_tables import archive_now

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

__all__ = ["SHORT_HISTORY", "TYPES", "collect", "live_a_life", "make_rows", "merge", "race_writers"]

TYPES = {
    "COPY_ON_WRITE": {"hoodie.index.type": "SIMPLE"},
    "MERGE_ON_READ": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}
SHORT_HISTORY = {
    "hoodie.keep.max.commits": "4",
    "hoodie.keep.min.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
"""Options of a table that is cleaned and archived after a few writes."""
_TURNS = 3


def make_rows(ids: range, ts: int, label: str) -> list[tuple[Any, ...]]:
    return [(f"{number:03}", f"r{number % 2}", ts, float(number), label) for number in ids]


def merge(*parts: Rows) -> list[tuple[Any, ...]]:
    return sorted({row[0]: row for part in parts for row in part}.values())


def collect(found: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in found.select(*COLUMNS).collect()), key=repr)


def live_a_life(table: HoodieTable, frame: Any) -> list[tuple[Any, ...]]:
    """Write, delete, compact or cluster, clean, archive and sweep an empty table of `SHORT_HISTORY`; its rows then."""
    first, second = make_rows(range(60), 1, "first"), make_rows(range(30, 90), 2, "second")
    table.insert(frame(first))
    begin = str(table.table.timeline().completed()[-1].completion)
    table.upsert(frame(second))
    table.delete(frame(make_rows(range(5), 3, "gone")))
    expected = [row for row in merge(first, second) if row[0] >= "005"]
    assert collect(table.read()) == expected
    assert collect(table.as_of(begin)) == sorted(first)
    assert collect(table.incremental(begin)) == sorted(second)
    is_merged = table.table.config.table_type == "MERGE_ON_READ"
    assert (table.compaction.run() if is_merged else table.clustering.run(sort_by=["id"])) is not None
    for turn in range(3, 7):
        third = make_rows(range(10, 20), turn, f"turn {turn}")
        table.upsert(frame(third))
        expected = merge(expected, third)
    assert table.services.clean().deleted
    assert archive_now(table) > 0
    table.services.sweep()
    assert collect(table.read()) == expected
    assert table.table.storage.list_staged() == set()
    assert verify_table(table.table.storage).damages == ()
    return expected


def race_writers(table: HoodieTable, frame: Any, load: Callable[[], HoodieTable]) -> None:
    """Let two writers of an empty table, each as `load` gives it, write side by side: nothing is lost."""
    table.insert(frame(make_rows(range(40), 0, "first")))
    start = threading.Barrier(2)

    def write(number: int) -> None:
        own = load()
        start.wait()
        for turn in range(1, _TURNS + 1):
            own.upsert(frame(make_rows(range(number, 40, 2), turn, f"writer {number}")))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    expected = merge(*(make_rows(range(number, 40, 2), _TURNS, f"writer {number}") for number in range(2)))
    assert collect(table.read()) == expected
    assert verify_table(table.table.storage).damages == ()
