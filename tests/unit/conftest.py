"""What tests of several packages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from transaction_desk import Desk, DeskClock, heartbeats_that_end

from hudi_locks.storage import MemoryStorage


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Writers on one table in memory."""
    clock = DeskClock()
    with heartbeats_that_end(monkeypatch):
        yield Desk(clock, MemoryStorage(clock))
