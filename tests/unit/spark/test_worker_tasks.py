"""What a task leaves behind in the process that ran it."""

from __future__ import annotations

import gc
import importlib
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipimport import zipimporter

import pyarrow as pa
import pytest

from hudi_locks.spark._worker import freeze_imported, run_task

BATCH = pa.RecordBatch.from_pydict({"n": [1, 2]})


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """How often what was imported was taken from the collector, which this process keeps."""
    calls: list[bool] = []
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(True))
    freeze_imported.cache_clear()
    yield calls
    freeze_imported.cache_clear()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An archive on the path from which one module was imported."""
    path = str(tmp_path / "archive.zip")
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("archived_one.py", "number = 1")
        made.writestr("archived_two.py", "number = 2")
    for name in ("archived_one", "archived_two"):
        monkeypatch.delitem(sys.modules, name, raising=False)  # another test's
    monkeypatch.syspath_prepend(path)
    assert importlib.import_module("archived_one").number == 1
    return path


def archives() -> list[str]:
    return [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]


def double(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        yield batch


def fail(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise RuntimeError("half way")


def test_a_task_gives_its_batches_and_no_archive_is_read_anew_for_the_next(archive: str) -> None:
    assert archive in archives()
    assert list(run_task(double, [BATCH])) == [BATCH, BATCH]
    assert archives() == []


def test_modules_of_an_archive_are_found_after_a_task_as_before(archive: str) -> None:
    assert len(list(run_task(double, [BATCH]))) == 2
    assert importlib.import_module("archived_two").number == 2


def test_what_was_imported_is_taken_from_the_collector_once(frozen: list[bool]) -> None:
    for _ in range(3):
        assert len(list(run_task(double, [BATCH]))) == 2
    assert frozen == [True]


def test_a_task_that_fails_or_is_given_up_leaves_the_process_so_too(archive: str, frozen: list[bool]) -> None:
    with pytest.raises(RuntimeError, match="half way"):
        list(run_task(fail, [BATCH]))
    assert (archives(), frozen) == ([], [True])
    importlib.import_module("archived_two")
    running: Any = run_task(double, [BATCH])
    assert next(running) == BATCH
    running.close()
    assert archives() == []


@pytest.mark.parametrize("left_out", ["archives", "freeze"])
def test_each_part_can_be_left_out(archive: str, frozen: list[bool], left_out: str) -> None:
    quick = {"archives", "freeze"} - {left_out}
    assert len(list(run_task(double, [BATCH], quick=quick))) == 2
    assert (archive in archives(), frozen == []) == (left_out == "archives", left_out == "freeze")
