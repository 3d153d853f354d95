"""Making things ahead of their use."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from hudi_locks.storage import reading_ahead

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


def test_stores_are_there_without_arrow_for_commands_that_read_no_rows() -> None:
    script = "import sys, hudi_locks.storage; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
