"""Rows that wait below a table for the process that commits them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.storage.memory import MemoryStorage
from hudi_locks.table import StagedInput, drop_abandoned_input, staged_input
from hudi_locks.table.staged_input import INPUT_FOLDER

DAY_S = 86_400


def make_batches(*sizes: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"id": list(range(size)), "text": ["x" * 100] * size}) for size in sizes]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def staged(clock: ManualClock) -> StagedInput:
    return StagedInput.begin(MemoryStorage(clock))


def list_files(staged: StagedInput) -> list[str]:
    return [path for path, _ in staged.storage.walk(INPUT_FOLDER)]


def test_rows_come_back_in_files_of_a_bounded_size(staged: StagedInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_input, "_PIECE_BYTES", 1)
    batches = make_batches(3, 2)
    files = staged.write(batches)
    assert [file.rows for file in files] == [3, 2]
    assert sorted(file.path for file in files) == list_files(staged)
    assert [batch for file in files for batch in staged.read(file)] == batches


def test_a_task_without_rows_leaves_no_file(staged: StagedInput) -> None:
    assert staged.write([]) == ()
    assert list_files(staged) == []


def test_two_attempts_leave_files_of_their_own(staged: StagedInput) -> None:
    first, second = (staged.write(make_batches(2)) for _ in range(2))
    assert len(list_files(staged)) == 2
    staged.remove(first)
    assert list_files(staged) == [file.path for file in second]
    staged.remove_all()
    assert list_files(staged) == []


def test_rows_that_are_missing_are_named(staged: StagedInput) -> None:
    [file], [other] = staged.write(make_batches(5)), staged.write(make_batches(3))
    staged.storage.replace(file.path, staged.storage.read(other.path) or b"")
    with pytest.raises(StorageError, match=f"{file.path} has 3 of the 5 rows that were staged; write them again"):
        list(staged.read(file))
    staged.remove_all()
    with pytest.raises(NoSuchFile):
        list(staged.read(file))


def test_what_nobody_will_commit_goes_a_day_after_its_last_file(staged: StagedInput, clock: ManualClock) -> None:
    staged.write(make_batches(1))
    other = StagedInput.begin(staged.storage)
    clock.advance(DAY_S - 1)
    [late] = other.write(make_batches(1))
    assert drop_abandoned_input(staged.storage) == 0
    clock.advance(2)
    assert drop_abandoned_input(staged.storage) == 1
    assert list_files(staged) == [late.path]
