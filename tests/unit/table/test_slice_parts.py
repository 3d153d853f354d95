"""Shares of a slice, which several tasks read: together they are the slice, whatever its files hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slice_files import SCHEMA, Record, write_base, write_log

from hudi_locks.storage import LocalStorage
from hudi_locks.table import RECORD_KEY, FileSlice, MergeRule, Part, read_slice

RULES = {
    "event time": MergeRule(("ts",)),
    "commit time": MergeRule(),
    "nulls are filled": MergeRule(("ts",), fills_nulls=True),
}
KEYS = st.sampled_from("abcdefgh")
TIMES = st.one_of(st.none(), st.integers(0, 3))
ROWS = st.lists(st.tuples(KEYS, TIMES, st.integers(0, 99)), min_size=1, max_size=4)
RESETS = st.lists(st.tuples(KEYS, st.none(), st.none()), min_size=1, max_size=2)
DELETES = st.lists(st.tuples(KEYS, st.integers(0, 3), st.none()), min_size=1, max_size=2)
LOGS = st.lists(st.one_of(ROWS, RESETS, DELETES), min_size=1, max_size=4)
BASES = st.lists(st.tuples(KEYS, TIMES, st.integers(100, 199)), unique_by=lambda record: record[0])


@given(st.integers(0, 50), st.integers(1, 9))
def test_every_row_group_is_in_one_part_and_one_part_closes(row_groups: int, count: int) -> None:
    parts = [Part(number, count) for number in range(count)]
    assert [group for part in parts for group in part.choose(row_groups)] == list(range(row_groups))
    assert sum(part.closes(row_groups) for part in parts) == 1
    sizes = [len(part.choose(row_groups)) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def make_slice(storage: LocalStorage, base: list[Record] | None, logs: list[list[Record]]) -> FileSlice:
    """Each row of the base file is a row group."""
    Path(storage.base, "p").mkdir()
    file = None if base is None else write_base(storage, base, row_group_bytes=1)
    written = tuple(write_log(storage, f"2024010100000000{n}", records) for n, records in enumerate(logs, 1))
    return FileSlice("p", "f-0", "20240101000000000", file, written)


def read(storage: LocalStorage, piece: FileSlice, rule: MergeRule, **how: Any) -> list[tuple[Any, ...]]:
    found = pa.concat_tables([SCHEMA.empty_table(), *read_slice(storage, piece, SCHEMA, rule=rule, **how)])
    return sorted(zip(*(found[name].to_pylist() for name in (RECORD_KEY, "ts", "v")), strict=True), key=repr)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@settings(max_examples=40)
@given(base=st.one_of(st.none(), BASES), logs=LOGS, count=st.integers(1, 4), piece_rows=st.integers(1, 4))
def test_all_parts_together_are_what_the_whole_is(
    rule: MergeRule, base: list[Record] | None, logs: list[list[Record]], count: int, piece_rows: int
) -> None:
    with TemporaryDirectory() as folder:
        storage = LocalStorage(folder)
        piece = make_slice(storage, base, logs)
        shares = [read(storage, piece, rule, part=Part(n, count), piece_rows=piece_rows) for n in range(count)]
        assert sorted((row for share in shares for row in share), key=repr) == read(storage, piece, rule)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def test_a_part_without_row_groups_reads_no_log(storage: LocalStorage) -> None:
    piece = make_slice(storage, [("a", 1, 1)], [[("a", 2, 2), ("b", 2, 2)]])
    Path(storage.base, piece.logs[0].path).unlink()
    assert read(storage, piece, RULES["event time"], part=Part(1, 2)) == []


def test_a_part_reads_no_rows_of_others_but_the_last_their_keys(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = make_slice(storage, [(key, 1, 1) for key in "abcd"], [[("a", 2, 2), ("d", 2, 2), ("e", 2, 2)]])
    seen: list[tuple[list[str], list[int]]] = []
    batches = pq.ParquetFile.iter_batches

    def note(self: Any, *, columns: list[str], row_groups: Any, **how: Any) -> Iterator[pa.RecordBatch]:
        seen.append((columns, list(row_groups)))
        yield from batches(self, columns=columns, row_groups=row_groups, **how)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", note)
    assert read(storage, piece, RULES["event time"], part=Part(0, 2)) == [("a", 2, 2), ("b", 1, 1)]
    assert {tuple(groups) for _, groups in seen} == {(0, 1)}
    seen.clear()
    assert read(storage, piece, RULES["event time"], part=Part(1, 2)) == [("c", 1, 1), ("d", 2, 2), ("e", 2, 2)]
    assert [columns for columns, groups in seen if groups == [0, 1]] == [[RECORD_KEY]]


def test_the_key_alone_can_be_read(storage: LocalStorage) -> None:
    piece = make_slice(storage, [("a", 1, 1), ("b", 1, 1)], [[("b", None, None)], [("c", 1, 1)]])
    wanted = pa.schema([SCHEMA.field(RECORD_KEY)])
    found = [read_slice(storage, piece, wanted, rule=MergeRule(), part=Part(n, 2)) for n in range(2)]
    assert [list(pa.concat_tables(part)[RECORD_KEY].to_pylist()) for part in found] == [["a"], ["c"]]
