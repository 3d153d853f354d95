"""Logs over base rows, held against a model that takes one record after the other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import UnsupportedTable
from hudi_locks.table import RECORD_KEY, MergeRule, add_meta_schema
from hudi_locks.table.log_merging import merge_logs
from hudi_locks.table.log_rows import LogEntry

SCHEMA = add_meta_schema(pa.schema([("ts", pa.int64()), ("v", pa.int64())]))
KEYS = st.sampled_from("abcd")
ORDERINGS = st.one_of(st.none(), st.integers(0, 3))
EVENT_TIME, COMMIT_TIME = MergeRule(ordering=("ts",)), MergeRule()
Record = tuple[str, Any, Any]
"""Key, ordering value, and a value; None in its place is a delete, and without ordering value one of everything."""


def rows(records: list[Record]) -> pa.Table:
    return pa.Table.from_pylist([{RECORD_KEY: key, "ts": ts, "v": v} for key, ts, v in records], SCHEMA)


def entry(records: list[Record]) -> LogEntry:
    if records and records[0][2] is None:
        keys = pa.table({RECORD_KEY: [key for key, _, _ in records]})
        return LogEntry("t", keys, tuple(ts for _, ts, _ in records))
    return LogEntry("t", rows(records))


def merge(base: list[Record], entries: list[list[Record]], rule: MergeRule) -> dict[str, Any]:
    merging = merge_logs(map(entry, entries), SCHEMA, rule)
    halves = [base[: len(base) // 2], base[len(base) // 2 :]]
    pieces = [merging.apply(rows(half)) for half in halves]
    found = pa.concat_tables([*pieces, *merging.remaining()]).to_pylist()
    assert len({row[RECORD_KEY] for row in found}) == len(found)
    return {row[RECORD_KEY]: (row["ts"], row["v"]) for row in found}


def play(base: list[Record], entries: list[list[Record]], rule: MergeRule) -> dict[str, Any]:
    """One record after the other. A delete that had an ordering value goes on to keep lesser rows out."""
    state: dict[str, Any] = {}
    for key, ts, v in [*base, *(record for piece in entries for record in piece)]:
        if v is None and ts is None:
            state.pop(key, None)
        elif not rule.ordering or key not in state or rank(ts) >= rank(state[key][0]):
            state[key] = (ts, v)
    return {key: value for key, value in state.items() if value[1] is not None}


def rank(ts: int | None) -> int:
    return -1 if ts is None else ts


RECORDS = st.lists(st.tuples(KEYS, ORDERINGS, st.integers(0, 99)), min_size=1, max_size=4)
DELETES = st.lists(st.tuples(KEYS, ORDERINGS, st.none()), min_size=1, max_size=4)
BASES = st.lists(st.tuples(KEYS, ORDERINGS, st.integers(100, 199)), unique_by=lambda record: record[0])


@pytest.mark.parametrize("rule", [EVENT_TIME, COMMIT_TIME], ids=["event time", "commit time"])
@given(base=BASES, entries=st.lists(st.one_of(RECORDS, DELETES), max_size=6))
def test_it_is_as_if_one_record_came_after_the_other(
    rule: MergeRule, base: list[Record], entries: list[list[Record]]
) -> None:
    assert merge(base, entries, rule) == play(base, entries, rule)


def test_of_equal_ordering_values_the_later_row_counts() -> None:
    assert merge([("a", 5, 1)], [[("a", 5, 2)], [("a", 5, 3)]], EVENT_TIME) == {"a": (5, 3)}


def test_after_a_delete_of_everything_any_row_counts() -> None:
    deleted: list[list[Record]] = [[("a", None, None)], [("a", 3, 9)]]
    assert merge([("a", 5, 1)], deleted, EVENT_TIME) == {"a": (3, 9)}


def test_a_delete_with_a_lesser_ordering_value_takes_nothing_out() -> None:
    assert merge([("a", 5, 1)], [[("a", 4, None)]], EVENT_TIME) == {"a": (5, 1)}
    assert merge([("a", 5, 1)], [[("a", 5, None)]], EVENT_TIME) == {}


def test_columns_that_an_older_block_lacks_are_null() -> None:
    older = add_meta_schema(pa.schema([("ts", pa.int64())]))
    piece = LogEntry("t", pa.Table.from_pylist([{RECORD_KEY: "a", "ts": 1}], older))
    (found,) = merge_logs([piece], SCHEMA, EVENT_TIME).remaining()
    assert found.schema.equals(SCHEMA)
    assert found.column("v").to_pylist() == [None]


def test_a_block_of_some_columns_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match="some columns only"):
        merge_logs([LogEntry("t", rows([("a", 1, 1)]), is_partial=True)], SCHEMA, EVENT_TIME)


def test_texts_may_come_as_dictionaries_of_some_files_and_are_texts_again() -> None:
    schema = add_meta_schema(pa.schema([("ts", pa.int64()), ("text", pa.string())]))

    def piece(*records: tuple[str, int, str | None], encoded: bool) -> pa.Table:
        made = pa.Table.from_pylist([{RECORD_KEY: key, "ts": ts, "text": text} for key, ts, text in records], schema)
        place = schema.get_field_index("text")
        return made.set_column(place, "text", made["text"].dictionary_encode()) if encoded else made

    logs = [
        LogEntry("1", piece(("a", 2, "x"), ("b", 2, None), encoded=True)),
        LogEntry("2", piece(("c", 2, "y"), ("n", 2, "x"), encoded=False)),
        LogEntry("3", piece(("d", 0, "late"), ("m", 2, "z"), encoded=True)),
    ]
    merging = merge_logs(logs, schema, EVENT_TIME)
    base = piece(("a", 1, "o"), ("b", 1, "o"), ("c", 1, "o"), ("d", 1, "o"), ("e", 1, "p"), encoded=True)
    merged = pa.concat_tables([merging.apply(base), *merging.remaining()])
    assert merged.schema.equals(schema)
    found = dict(zip(merged[RECORD_KEY].to_pylist(), merged["text"].to_pylist(), strict=True))
    assert found == {"a": "x", "b": None, "c": "y", "d": "o", "e": "p", "n": "x", "m": "z"}
    assert (merging.updates, merging.deletes) == (3, 0)


def test_a_delete_that_takes_a_row_out_is_counted() -> None:
    merging = merge_logs([entry([("a", None, None), ("b", 9, None), ("z", 1, None)])], SCHEMA, EVENT_TIME)
    left = merging.apply(rows([("a", 1, 1), ("b", 10, 1), ("c", 1, 1)]))
    assert sorted(left[RECORD_KEY].to_pylist()) == ["b", "c"]
    assert (merging.updates, merging.deletes) == (0, 1)
    assert not list(merging.remaining())
