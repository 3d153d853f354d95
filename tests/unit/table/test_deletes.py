"""Rows that are deletes: they take rows out like any other row replaces one, and never come into a base file."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from hudi_locks.errors import ConfigError, DamagedTable
from hudi_locks.table import (
    IS_DELETED,
    RECORD_KEY,
    AppendMerge,
    DeleteMarker,
    MergeRule,
    TableConfig,
    UpsertMerge,
    combine_rows,
)
from hudi_locks.table.log_merging import join_logs, merge_logs
from hudi_locks.table.log_rows import LogEntry
from hudi_locks.table.ordering import find_deletes

FLAG = "_hoodie_is_deleted"
KEY = "_hoodie_record_key"
SCHEMA = pa.schema([(KEY, pa.string()), ("ts", pa.int64()), ("v", pa.string()), (FLAG, pa.bool_())])
EVENT, COMMIT = MergeRule(("ts",)), MergeRule()
FILLS = MergeRule(("ts",), fills_nulls=True)
Row = tuple[str, int, str | None, bool | None]


def table(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def keys(pieces: Iterator[pa.Table] | list[pa.Table]) -> list[str]:
    return [key for piece in pieces for key in piece.column(KEY).to_pylist()]


PRESENT = table(("a", 5, "old", False), ("b", 5, "old", None), ("c", 5, "old", False))


@pytest.mark.parametrize("rule", [EVENT, COMMIT, FILLS], ids=["event", "commit", "fills"])
def test_an_upsert_takes_out_what_a_delete_is_not_behind(rule: MergeRule) -> None:
    incoming = table(("a", 6, None, True), ("b", 4, None, True), ("d", 6, None, True), ("e", 6, "new", False))
    merge = UpsertMerge(incoming, rule)
    told: list[tuple[list[str], bool]] = []
    merge.tell_changes(lambda before, after: told.append((before[RECORD_KEY].to_pylist(), after is None)))
    left = keys([merge.apply(PRESENT)])
    kept = ["b"] if rule is FILLS else []  # which takes the columns that it lacks, and here it lacks none
    assert told == [(kept, False), (["a", "b"] if rule is COMMIT else ["a"], True)]
    assert left == (["c"] if rule is COMMIT else ["b", "c"])
    assert keys(merge.remaining()) == ["e"]
    assert merge.deletes == (2 if rule is COMMIT else 1)


@pytest.mark.parametrize("rule", [EVENT, FILLS], ids=["event", "fills"])
def test_the_newest_row_of_the_input_decides_whether_a_key_goes(rule: MergeRule) -> None:
    incoming = table(("x", 2, "late", False), ("x", 3, None, True), ("y", 3, None, True), ("y", 4, "back", False))
    assert keys(UpsertMerge(incoming, rule).remaining()) == ["y"]
    assert combine_rows(incoming, rule).column(FLAG).to_pylist() == [True, False]


def test_a_delete_fills_no_column_of_the_row_that_wins() -> None:
    merge = UpsertMerge(table(("a", 4, "gone", True)), FILLS)
    assert merge.apply(table(("a", 5, None, None))).to_pylist() == table(("a", 5, None, None)).to_pylist()


def test_an_insert_leaves_deletes_out() -> None:
    merge = AppendMerge(table(("a", 1, None, True), ("b", 1, None, False)), EVENT)
    assert keys(merge.remaining()) == ["b"]


@pytest.mark.parametrize("rule", [EVENT, COMMIT, FILLS], ids=["event", "commit", "fills"])
def test_a_row_in_a_log_that_is_a_delete_is_not_shown(rule: MergeRule) -> None:
    logs = [
        LogEntry("1", table(("a", 6, None, True), ("b", 4, None, True), ("x", 1, "short", False))),
        LogEntry("2", table(("x", 2, None, True), ("y", 2, None, True))),
    ]
    merge = merge_logs(logs, SCHEMA, rule)
    shown = keys([merge.apply(PRESENT), *merge.remaining()])
    assert sorted(shown) == (["c"] if rule is COMMIT else ["b", "c"])


def test_a_row_after_a_delete_counts_by_its_ordering_value() -> None:
    logs = [LogEntry("1", table(("a", 7, None, True))), LogEntry("2", table(("a", 6, "late", False)))]
    assert keys([merge_logs(logs, SCHEMA, EVENT).apply(table(("a", 5, "old", False)))]) == []
    assert keys([merge_logs(logs, SCHEMA, COMMIT).apply(table(("a", 5, "old", False)))]) == ["a"]


def test_joined_logs_keep_what_takes_out_rows_of_the_base_file() -> None:
    joined = join_logs([LogEntry("1", table(("a", 6, None, True), ("b", 6, "new", False)))], SCHEMA, EVENT)
    again = merge_logs([LogEntry("2", joined.rows)], SCHEMA, EVENT)
    assert keys([again.apply(PRESENT), *again.remaining()]) == ["c", "b"]


def test_a_row_of_the_base_file_stays_until_its_key_is_written() -> None:
    """As every reader of the JVM has it: its bulk inserts leave such rows there."""
    base = table(("a", 5, "old", True), ("b", 5, "old", True))
    merge = merge_logs([LogEntry("1", table(("b", 6, None, True)))], SCHEMA, EVENT)
    assert keys([merge.apply(base)]) == ["a"]


@pytest.mark.parametrize(
    ("column", "marker", "found"),
    [
        (pa.array(["D", "I", None]), DeleteMarker("m", "D"), [True, False, False]),
        (pa.array([3, 0, None]), DeleteMarker("m", "0"), [False, True, False]),
        (pa.array([True, False, None]), DeleteMarker("m", "true"), [True, False, False]),
        (pa.array(["I", "I", None]), DeleteMarker("m", "D"), None),
        (pa.array([True, False, None]), DeleteMarker("m"), [True, False, False]),
        (pa.array(["true", "x", None]), DeleteMarker("m"), None),
        (pa.array(["D", "x", None]), DeleteMarker("other", "D"), None),
    ],
)
def test_a_marker_is_compared_as_text(column: pa.Array, marker: DeleteMarker, found: list[bool] | None) -> None:
    mask = find_deletes(pa.table({"m": column}), [IS_DELETED, marker])
    assert (None if mask is None else mask.tolist()) == found


def test_a_table_names_its_marker_or_is_damaged() -> None:
    said = {
        "hoodie.table.name": "t",
        "hoodie.table.version": "9",
        "hoodie.record.merge.property.hoodie.payload.delete.field": "Op",
        "hoodie.record.merge.property.hoodie.payload.delete.marker": "D",
    }
    assert TableConfig.from_properties(said).merge_rule.deletes == (IS_DELETED, DeleteMarker("Op", "D"))
    for lacking in ("field", "marker"):
        with pytest.raises(DamagedTable, match=f"delete.{lacking} beside it") as caught:
            TableConfig.from_properties({key: value for key, value in said.items() if not key.endswith(lacking)})
        assert isinstance(caught.value.__cause__, ConfigError)
