"""Work of the processor, in as many threads as there are cores for it."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from hudi_locks.table.log_merging import map_on_cores


def use_threads() -> int:
    used: set[int] = set()

    def note(number: int) -> int:
        used.add(threading.get_ident())
        return -number

    assert map_on_cores(note, range(200)) == [-number for number in range(200)]
    return len(used - {threading.get_ident()})


def test_work_of_the_processor_gets_a_thread_for_each_core_that_arrow_may_use_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pa, "cpu_count", lambda: 3)
    assert 1 <= use_threads() <= 3


def test_of_one_core_no_thread_takes_turns_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pa, "cpu_count", lambda: 1)
    assert use_threads() == 0
