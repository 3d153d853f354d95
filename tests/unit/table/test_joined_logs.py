"""Several logs as one: the same rows for readers that skip what it stands for, and for those that apply both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slice_files import AVRO, SCHEMA, Record, make_rows, new_file, wrap, write_log

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.log_block import decode_blocks
from hudi_locks.format.log_deletes import decode_deletes, encode_deletes_again
from hudi_locks.storage import LocalStorage
from hudi_locks.table import (
    RECORD_KEY,
    FileSlice,
    LogFile,
    LogFormat,
    LogWriter,
    MergeRule,
    join_slice,
    read_log,
    read_slice,
    slice_reading,
)
from hudi_locks.table.log_merging import JoinedLogs, join_logs, merge_logs
from hudi_locks.table.log_rows import LogEntry

EVENT_TIME, COMMIT_TIME = MergeRule(ordering=("ts",)), MergeRule()
WRAPPER = "org.apache.hudi.avro.model."


def entry(records: list[Record]) -> LogEntry:
    if records and records[0][2] is None:
        keys = pa.table({RECORD_KEY: pa.array([key for key, _, _ in records], pa.string())})
        times = tuple(ts for _, ts, _ in records)
        return LogEntry("t", keys, times, wrapped=tuple(map(wrap, times)))
    return LogEntry("t", make_rows(records))


def split(joined: JoinedLogs) -> list[LogEntry]:
    """As its blocks come back."""
    resets: list[Record] = [(key, None, None) for key in joined.resets.to_pylist()]
    deletes: list[Record] = [(key, wrapped[1]["value"], None) for key, wrapped in joined.deletes]
    return [*(entry(part) for part in (resets, deletes) if part), LogEntry("t", joined.rows)]


def merge(base: list[Record], entries: list[LogEntry], rule: MergeRule) -> list[Any]:
    merging = merge_logs(entries, SCHEMA, rule)
    found = pa.concat_tables([merging.apply(make_rows(base)), *merging.remaining()]).to_pylist()
    return sorted((row[RECORD_KEY], row["ts"], row["v"]) for row in found)


KEYS, ORDERINGS = st.sampled_from("abcd"), st.one_of(st.none(), st.integers(0, 3))
RECORDS = st.lists(st.tuples(KEYS, ORDERINGS, st.integers(0, 99)), min_size=1, max_size=4)
DELETES = st.lists(st.tuples(KEYS, ORDERINGS, st.none()), min_size=1, max_size=4)
BASES = st.lists(st.tuples(KEYS, ORDERINGS, st.integers(100, 199)), unique_by=lambda record: record[0])
ENTRIES = st.lists(st.one_of(RECORDS, DELETES).map(entry), max_size=5)


@pytest.mark.parametrize("rule", [EVENT_TIME, COMMIT_TIME], ids=["event time", "commit time"])
@given(base=BASES, entries=ENTRIES, later=ENTRIES)
def test_it_does_what_they_did_alone_and_after_them_whatever_comes_later(
    rule: MergeRule, base: list[Record], entries: list[LogEntry], later: list[LogEntry]
) -> None:
    joined = split(join_logs(entries, SCHEMA, rule))
    expected = merge(base, [*entries, *later], rule)
    assert merge(base, [*joined, *later], rule) == expected
    assert merge(base, [*entries, *joined, *later], rule) == expected
    again = split(join_logs([*entries, *joined, *later], SCHEMA, rule))
    assert merge(base, again, rule) == expected


def test_what_depends_on_the_rows_below_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match="compact instead"):
        join_logs([entry([("a", 1, 1)])], SCHEMA, MergeRule(("ts",), fills_nulls=True))
    partial = LogEntry("20240101000000000", make_rows([("a", 1, 1)]), is_partial=True)
    with pytest.raises(UnsupportedTable, match="some columns only"):
        join_logs([partial], SCHEMA, EVENT_TIME)


def test_a_delete_keeps_the_type_of_its_ordering_value() -> None:
    kinds = {"IntWrapper": 7, "LongWrapper": 8, "DoubleWrapper": 1.5, "StringWrapper": "z", "BooleanWrapper": True}
    several = (f"{WRAPPER}ArrayWrapper", {"wrappedValues": [(f"{WRAPPER}LongWrapper", {"value": 1})]})
    wrapped = [*((WRAPPER + name, {"value": value}) for name, value in kinds.items()), several, None]
    keys = [f"k{number}" for number in range(len(wrapped))]
    found = decode_deletes(encode_deletes_again(zip(keys, wrapped, strict=True), "p"), "a log")
    assert (list(found.keys), list(found.wrapped)) == (keys, wrapped)
    assert found.orderings == (*kinds.values(), (1,), None)


# ---- in files ----


def seen(storage: LocalStorage, *logs: LogFile, rule: MergeRule = EVENT_TIME) -> list[Any]:
    piece = FileSlice("p", "f-0", logs[0].instant, None, logs)
    found = [row for part in read_slice(storage, piece, SCHEMA, rule=rule) for row in part.to_pylist()]
    return sorted((row[RECORD_KEY], row["ts"], row["v"]) for row in found)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    (tmp_path / "p").mkdir()
    return LocalStorage(str(tmp_path))


def test_readers_skip_the_logs_for_which_a_later_one_stands(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_log(storage, "20240101000000001", [("a", 1, 1), ("b", 1, 1), ("c", 1, 1)])
    second = write_log(storage, "20240101000000002", [("a", None, None)], [("b", 5, None)], [("c", 2, 2)])
    times = (first.instant, second.instant)
    joined = join_slice(storage, FileSlice("p", "f-0", "", None, (first, second)), SCHEMA, rule=EVENT_TIME)
    assert (joined.resets.to_pylist(), joined.deletes) == (["a"], (("b", wrap(5)),))
    kept: list[Record] = [(row[RECORD_KEY], row["ts"], row["v"]) for row in joined.rows.to_pylist()]
    made = write_log(storage, "20240101000000003", [("a", None, None)], [("b", 5, None)], kept, stands_for=times)
    later = write_log(storage, "20240101000000004", [("b", 4, 4), ("a", 0, 4)])
    blocks = list(decode_blocks(storage.read(made.path) or b"", made.path))
    assert [block.stands_for for block in blocks] == [frozenset(times)] * 3
    decoded: list[str] = []

    def note(data: bytes, path: str, **how: Any) -> Any:
        decoded.append(path)
        return read_log(data, path, **how)

    monkeypatch.setattr(slice_reading, "read_log", note)
    assert seen(storage, first, second, made, later) == [("a", 0, 4), ("c", 2, 2)]
    assert sorted(decoded) == sorted([made.path, later.path])
    assert seen(storage, first, second, later) == [("a", 0, 4), ("c", 2, 2)]


def test_a_log_stands_for_none_that_comes_after_it(storage: LocalStorage) -> None:
    made = write_log(storage, "20240101000000001", [("a", 1, 1)], stands_for=("20240101000000002",))
    later = write_log(storage, "20240101000000002", [("a", 2, 2)])
    assert seen(storage, made, later) == [("a", 2, 2)]


def test_where_nulls_take_other_values_no_log_is_skipped(storage: LocalStorage) -> None:
    first = write_log(storage, "20240101000000001", [("a", 1, 7)])
    made = write_log(storage, "20240101000000002", [("a", 1, 8)], stands_for=(first.instant,))
    filling = pa.Table.from_pylist([{RECORD_KEY: "a", "ts": 2, "v": None}], SCHEMA)
    writer = LogWriter(lambda _: new_file(storage, made.path), LogFormat(AVRO), instant=made.instant, partition="p",
                       stands_for=(first.instant,))  # fmt: skip
    writer.write(filling)
    writer.close()
    assert seen(storage, first, made, rule=MergeRule(("ts",), fills_nulls=True)) == [("a", 2, 7)]
