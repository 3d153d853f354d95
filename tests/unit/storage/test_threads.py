"""Making things ahead of their use."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from hudi_locks.storage import map_on_cores, reading_ahead

PATIENCE_S = 10


def test_items_come_in_their_order() -> None:
    with reading_ahead(iter(range(5))) as items:
        assert list(items) == [0, 1, 2, 3, 4]


def test_the_first_is_begun_before_anybody_asks_and_the_second_when_the_first_is_used() -> None:
    begun = [threading.Event(), threading.Event()]

    def make() -> Iterator[int]:
        for number, event in enumerate(begun):
            event.set()
            yield number

    with reading_ahead(make()) as items:
        assert begun[0].wait(PATIENCE_S)
        assert not begun[1].is_set()
        assert next(items) == 0
        assert begun[1].wait(PATIENCE_S)


def test_what_fails_is_raised_where_the_items_are_used() -> None:
    def make() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    with reading_ahead(make()) as items:
        assert next(items) == 1
        with pytest.raises(OSError, match="gone"):
            next(items)


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
