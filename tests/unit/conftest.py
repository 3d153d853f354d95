"""What tests of several packages share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from transaction_desk import Desk, DeskClock, heartbeats_that_end

from hudi_locks.storage import MemoryStorage
from hudi_locks.transaction import StopPoint


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Writers on one table in memory."""
    clock = DeskClock()
    with heartbeats_that_end(monkeypatch):
        yield Desk(clock, MemoryStorage(clock))


@pytest.fixture
def at() -> Callable[[StopPoint, Callable[[], object]], Any]:
    """A tracer that does something once, when a writer comes to a stop point."""

    def make(point: StopPoint, action: Callable[[], object]) -> Any:
        left = [action]

        def trace(reached: StopPoint) -> None:
            if reached is point and left:
                left.pop()()

        return trace

    return make
