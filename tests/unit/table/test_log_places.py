"""Rows that are ordered by their places in the log of a database, as JVM Hudi 1.2.0 merges them below version 9."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import UnsupportedTable
from hudi_locks.table import RECORD_KEY, DeleteMarker, MergeRule, UpsertMerge, add_meta_schema, combine_rows
from hudi_locks.table.log_merging import join_logs, merge_logs
from hudi_locks.table.log_places import split_places
from hudi_locks.table.log_rows import LogEntry

SCHEMA = add_meta_schema(pa.schema([("op", pa.string()), ("seq", pa.string()), ("v", pa.int64())]))
RULE = MergeRule(("seq",), deletes=(DeleteMarker("op", "d", any_case=True),), by_place=True)
Record = tuple[str, str | None, Any]
"""Key, place, and a value; None in its place is a delete."""


def rows(records: list[Record]) -> pa.Table:
    listed = [{RECORD_KEY: key, "op": "d" if v is None else "u", "seq": seq, "v": v} for key, seq, v in records]
    return pa.Table.from_pylist(listed, SCHEMA)


def entry(record: Record) -> LogEntry:
    key, seq, v = record
    if v is None:
        return LogEntry("t", pa.table({RECORD_KEY: [key]}), (seq,), wrapped=(seq,))
    return LogEntry("t", rows([record]))


def show(*tables: pa.Table) -> dict[str, Any]:
    found = pa.concat_tables(tables).to_pylist()
    assert len({row[RECORD_KEY] for row in found}) == len(found)
    return {row[RECORD_KEY]: row["v"] for row in found}


def merge(base: list[Record], logged: list[Record]) -> dict[str, Any]:
    merging = merge_logs(map(entry, logged), SCHEMA, RULE)
    return show(merging.apply(rows(base)), *merging.remaining())


def rank(seq: str | None) -> tuple[int, ...]:
    return () if seq is None else tuple(map(int, seq.split(".")[:2]))


def play(base: list[Record], logged: list[Record]) -> dict[str, Any]:
    """The logs of a key become one record, which then meets the base file."""
    state: dict[str, Record] = {}
    for record in logged:
        known = state.get(record[0])
        if known is None or None in (record[2], known[2]) or rank(record[1]) >= rank(known[1]):
            state[record[0]] = record
    shown = {key: (seq, v) for key, seq, v in base}
    for key, (_, seq, v) in state.items():
        if v is None or key not in shown or rank(seq) >= rank(shown[key][0]):
            shown[key] = (seq, v)
    return {key: v for key, (_, v) in shown.items() if v is not None}


KEYS, PLACES = st.sampled_from("abc"), st.sampled_from(["1.5", "1.10", "000001.7", "000002.1", "10.1"])
BASES = st.lists(st.tuples(KEYS, st.none() | PLACES, st.integers(100, 199)), unique_by=lambda record: record[0])
LOGGED = st.lists(st.tuples(KEYS, PLACES, st.none() | st.integers(0, 99)), max_size=8)


@given(base=BASES, logged=LOGGED)
def test_logs_are_merged_as_the_jvm_merges_them(base: list[Record], logged: list[Record]) -> None:
    assert merge(base, logged) == play(base, logged)


@given(base=BASES, logged=LOGGED)
def test_logs_that_were_joined_say_the_same(base: list[Record], logged: list[Record]) -> None:
    joined = join_logs(map(entry, logged), SCHEMA, RULE)
    keys = joined.resets.to_pylist()
    again = [LogEntry("t", pa.table({RECORD_KEY: keys}), (None,) * len(keys)), LogEntry("t", joined.rows)]
    merging = merge_logs([again[0], again[1]] if keys else again[1:], SCHEMA, RULE)
    assert show(merging.apply(rows(base)), *merging.remaining()) == play(base, logged)


@pytest.mark.parametrize(
    ("came", "left"),
    [
        ([("a", "1.5", 1), ("a", "1.10", 2)], 2),
        ([("a", "1.10", 1), ("a", "1.5", 2)], 1),
        ([("a", "1.5", 1), ("a", "1.5", 2)], 2),
        ([("a", "9.1", 1), ("a", "10.1", 2)], 2),
        ([("a", "000002.3", 1), ("a", "000001.10", 2)], 1),
        ([("a", "2.3", 1), ("a", "000002.003.9", 2)], 2),
        ([("a", None, 1), ("a", "0.0", 2)], 2),
    ],
)
def test_files_and_positions_are_compared_as_numbers(came: list[Record], left: int) -> None:
    assert show(combine_rows(rows(came), RULE)) == {"a": left}
    merging = UpsertMerge(rows(came[1:]), RULE)
    assert show(merging.apply(rows(came[:1])), *merging.remaining()) == {"a": left}


def test_a_delete_that_comes_late_takes_nothing_out_where_rows_are_written_whole() -> None:
    merging = UpsertMerge(rows([("a", "1.5", None), ("b", "1.5", None)]), RULE)
    assert show(merging.apply(rows([("a", "1.10", 1), ("b", "1.4", 2)]))) == {"a": 1}


def test_a_delete_may_be_in_capital_letters() -> None:
    came = rows([("a", "1.5", 1), ("b", "1.5", 2)]).set_column(SCHEMA.get_field_index("op"), "op", pa.array(["D", "U"]))
    merging = UpsertMerge(came, RULE)
    assert show(merging.apply(rows([("a", "1.1", 0), ("b", "1.1", 0)]))) == {"b": 2}


@pytest.mark.parametrize("text", ["15", "x.5", "", "1.", "-1.5", "1.9999999999999999999"])
def test_a_text_that_is_no_place_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedTable, match="is no place in the log of a database") as refused:
        split_places(pa.chunked_array([["1.5", text]]))
    assert refused.value.facts["value"] == text


def test_a_row_in_a_log_that_has_no_place_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match="write t logged rows without seq"):
        merge([], [("a", None, 1)])
