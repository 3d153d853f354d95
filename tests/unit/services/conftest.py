"""A table in memory with its services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service_harness import ServiceHarness
from transaction_harness import HarnessClock, heartbeats_that_end

from hudi_locks.storage import MemoryStorage


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceHarness]:
    clock = HarnessClock()
    with heartbeats_that_end(monkeypatch):
        yield ServiceHarness(clock, MemoryStorage(clock))
