"""A table in memory with its services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service_desk import ServiceDesk
from transaction_desk import DeskClock, heartbeats_that_end

from hudi_locks.storage import MemoryStorage


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceDesk]:
    clock = DeskClock()
    with heartbeats_that_end(monkeypatch):
        yield ServiceDesk(clock, MemoryStorage(clock))
