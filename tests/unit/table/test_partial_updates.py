"""Rows that set some columns only, held against a model that merges one pair of rows after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.table import (
    COMMIT_TIME,
    RECORD_KEY,
    MergeRule,
    UpsertMerge,
    add_meta_schema,
    combine_rows,
)
from hudi_locks.table.log_merging import merge_logs
from hudi_locks.table.log_rows import LogEntry
from hudi_locks.table.ordering import Unavailable

SCHEMA = add_meta_schema(pa.schema([("ts", pa.int64()), ("v", pa.int64()), ("w", pa.list_(pa.int64()))]))
EVENT_TIME, COMMIT_TIME_RULE = MergeRule(("ts",), fills_nulls=True), MergeRule(fills_nulls=True)
RULES = pytest.mark.parametrize("rule", [EVENT_TIME, COMMIT_TIME_RULE], ids=["event time", "commit time"])
INSTANTS = "0", "1", "2", "3", "4", "5", "6"


@dataclass(frozen=True)
class Record:
    """A row, or a delete of a key; without ordering value one of everything that came before."""

    key: str
    ts: int | None
    v: int | None = None
    w: tuple[int, ...] | None = None
    is_delete: bool = False
    resets: bool = False
    instant: str = "0"

    @property
    def row(self) -> dict[str, Any]:
        return {COMMIT_TIME: self.instant, RECORD_KEY: self.key, "ts": self.ts, "v": self.v, "w": self.w}

    def merge(self, newer: Record, rule: MergeRule) -> Record:
        fresh = newer.resets and not self.resets
        wins = fresh or not rule.ordering or rank(newer.ts) >= rank(self.ts)
        high, low = (newer, self) if wins else (self, newer)
        if fresh or high.is_delete or low.is_delete:
            return high
        filled = replace(high, **{n: getattr(low, n) for n in ("ts", "v", "w") if getattr(high, n) is None})
        return replace(filled, instant=newer.instant) if wins or filled != high else filled


def rank(ts: int | None) -> int:
    return -1 if ts is None else ts


def fold(records: list[Record], rule: MergeRule) -> dict[str, Record]:
    state: dict[str, Record] = {}
    for record in records:
        older = None if record.resets else state.get(record.key)
        if older is not None:
            newer = replace(record, resets=older.resets)
            state[record.key] = older.merge(newer, rule)
        else:
            state[record.key] = record
    return state


def table(records: list[Record]) -> pa.Table:
    return pa.Table.from_pylist([record.row for record in records], SCHEMA)


def entry(records: list[Record], instant: str) -> LogEntry:
    if records[0].is_delete:
        keys = pa.table({RECORD_KEY: [record.key for record in records]})
        return LogEntry(instant, keys, tuple(record.ts for record in records))
    return LogEntry(instant, table(records))


def shown(rows: pa.Table) -> dict[str, Any]:
    found = rows.select([COMMIT_TIME, RECORD_KEY, "ts", "v", "w"]).to_pylist()
    assert len({row[RECORD_KEY] for row in found}) == len(found)
    return {row[RECORD_KEY]: row for row in found}


def expected(records: dict[str, Record]) -> dict[str, Any]:
    listed = {key: record.row for key, record in records.items() if not record.is_delete}
    return {key: {**row, "w": None if row["w"] is None else list(row["w"])} for key, row in listed.items()}


KEYS = st.sampled_from("abc")
TIMES = st.none() | st.integers(0, 3)
LISTS = st.none() | st.tuples(st.integers(0, 9))
ROWS = st.lists(st.builds(Record, KEYS, TIMES, st.none() | st.integers(0, 99), LISTS), min_size=1, max_size=4)
DELETES = st.lists(
    st.builds(lambda key, ts: Record(key, ts, is_delete=True, resets=ts is None), KEYS, TIMES), min_size=1, max_size=3
)
BASES = st.lists(
    st.builds(Record, KEYS, TIMES, st.none() | st.integers(100, 199), LISTS), unique_by=lambda record: record.key
)


def dated(entries: list[list[Record]]) -> list[list[Record]]:
    return [[replace(r, instant=instant) for r in entry] for instant, entry in zip(INSTANTS[1:], entries, strict=False)]


@RULES
@given(base=BASES, entries=st.lists(st.one_of(ROWS, DELETES), max_size=6))
def test_logs_are_merged_pair_by_pair_and_then_into_the_base_rows(
    rule: MergeRule, base: list[Record], entries: list[list[Record]]
) -> None:
    entries = dated(entries)
    merging = merge_logs([entry(records, records[0].instant) for records in entries], SCHEMA, rule)
    found = pa.concat_tables([merging.apply(table(base)), *merging.remaining()])
    logged = fold([record for records in entries for record in records], rule)
    merged = {r.key: r.merge(logged[r.key], rule) if r.key in logged else r for r in base}
    assert shown(found) == expected({**logged, **merged})


@RULES
@given(base=BASES, incoming=ROWS)
def test_an_upsert_fills_the_rows_of_a_base_file(rule: MergeRule, base: list[Record], incoming: list[Record]) -> None:
    incoming = [replace(record, instant="1") for record in incoming]
    merging = UpsertMerge(table(incoming), rule)
    found = pa.concat_tables([merging.apply(table(base)), *merging.remaining()])
    combined = fold(incoming, rule)
    merged = {r.key: r.merge(combined[r.key], rule) if r.key in combined else r for r in base}
    assert shown(found) == expected({**combined, **merged})
    assert shown(combine_rows(table(incoming), rule)) == expected(combined)


def test_two_streams_each_fill_their_columns_whichever_comes_first() -> None:
    left, right = Record("a", 1, v=7, instant="1"), Record("a", 2, w=(8,), instant="2")
    for entries in ([left, right], [right, left]):
        (found,) = merge_logs([entry([record], record.instant) for record in entries], SCHEMA, EVENT_TIME).remaining()
        assert found.select(["ts", "v", "w"]).to_pylist() == [{"ts": 2, "v": 7, "w": [8]}]


def test_a_late_row_that_fills_a_column_is_a_change_of_its_own_instant() -> None:
    base, late = Record("a", 5, w=(1,)), Record("a", 3, v=7, instant="4")
    (found,) = shown(merge_logs([entry([late], "4")], SCHEMA, EVENT_TIME).apply(table([base]))).values()
    assert (found[COMMIT_TIME], found["ts"], found["v"]) == ("4", 5, 7)
    idle = Record("a", 3, instant="6")
    (found,) = shown(merge_logs([entry([idle], "6")], SCHEMA, EVENT_TIME).apply(table([base]))).values()
    assert found[COMMIT_TIME] == "0"


class TestPrecombine:
    """One of several rows of a key in one write counts whole; those of several writes fill each other."""

    RULE = MergeRule(fills_nulls=True, precombine=("ts",))
    ROWS = (Record("a", 2, 1), Record("a", 3, None, (3,)), Record("a", 1, 5, (5,)), Record("b", None, 4))

    def test_rows_of_one_write(self) -> None:
        shown = combine_rows(table(list(self.ROWS)), self.RULE).select(["ts", "v", "w"]).to_pylist()
        assert shown == [{"ts": 3, "v": None, "w": [3]}, {"ts": None, "v": 4, "w": None}]

    def test_the_row_that_counts_fills_the_present_one(self) -> None:
        merge = UpsertMerge(table(list(self.ROWS)), self.RULE)
        [row] = merge.apply(table([Record("a", 9, 7, (7,))])).select(["ts", "v", "w"]).to_pylist()
        assert row == {"ts": 3, "v": 7, "w": [3]}
        assert [row["ts"] for rest in merge.remaining() for row in rest.to_pylist()] == [None]

    def test_logs_are_of_several_writes(self) -> None:
        entries = [LogEntry(instant, table([row])) for instant, row in zip(INSTANTS, self.ROWS, strict=False)]
        [rows] = merge_logs(entries[:3], SCHEMA, self.RULE).remaining()
        assert rows.select(["ts", "v", "w"]).to_pylist() == [{"ts": 1, "v": 5, "w": [5]}]

    def test_without_such_columns_rows_of_one_write_fill_each_other(self) -> None:
        shown = combine_rows(table(list(self.ROWS[:2])), COMMIT_TIME_RULE).select(["ts", "v", "w"]).to_pylist()
        assert shown == [{"ts": 3, "v": 1, "w": [3]}]


UNSENT = "(not sent)"
EVENTS = add_meta_schema(pa.schema([("lsn", pa.int64()), ("a", pa.string()), ("b", pa.binary())]))
FILLED = MergeRule(("lsn",), unavailable=Unavailable(UNSENT))


def events(*rows: tuple[int, str | None, bytes | None]) -> pa.Table:
    return pa.Table.from_pylist([{RECORD_KEY: "k", "lsn": lsn, "a": a, "b": b} for lsn, a, b in rows], EVENTS)


def merge_events(rule: MergeRule, old: pa.Table, new: pa.Table) -> list[tuple[Any, ...]]:
    merge = UpsertMerge(new, rule)
    merged = pa.concat_tables([merge.apply(old), *merge.remaining()])
    logged = merge_logs([LogEntry("1", old), LogEntry("2", new)], EVENTS, rule).remaining()
    shown = [tuple(row.values()) for row in merged.select(["lsn", "a", "b"]).to_pylist()]
    if not rule.precombine:
        assert [tuple(r.values()) for r in pa.concat_tables(logged).select(["lsn", "a", "b"]).to_pylist()] == shown
    return shown


def test_a_text_for_what_was_not_sent_takes_the_value_of_the_other_row_and_a_null_counts() -> None:
    old = events((5, "a", b"b"))
    assert merge_events(FILLED, old, events((6, UNSENT, None))) == [(6, "a", None)]
    assert merge_events(FILLED, old, events((6, "new", UNSENT.encode()))) == [(6, "new", b"b")]
    unsent = events((5, UNSENT, b"b"))
    assert merge_events(FILLED, unsent, events((4, "late", b"late"))) == [(5, "late", b"b")]
    assert merge_events(FILLED, unsent, events((6, UNSENT, b"new"))) == [(6, UNSENT, b"new")]
    both = events((6, "first", b"x"), (7, UNSENT, b"y"))
    assert merge_events(FILLED, old, both) == [(7, "first", b"y")]


def test_below_version_9_only_the_row_that_wins_is_filled_and_rows_of_one_write_count_whole() -> None:
    rule = replace(FILLED, precombine=("lsn",), unavailable=Unavailable(UNSENT, fills_earlier=False))
    unsent = events((5, UNSENT, b"b"))
    assert merge_events(rule, unsent, events((4, "late", b"late"))) == [(5, UNSENT, b"b")]
    assert merge_events(rule, events((5, "a", b"b")), events((6, "first", b"x"), (7, UNSENT, b"y"))) == [(7, "a", b"y")]
