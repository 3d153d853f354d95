"""A catalog in memory in place of the one that options name."""

from __future__ import annotations

import pytest
from memory_catalog import MemoryCatalog


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> MemoryCatalog:
    made = MemoryCatalog()
    monkeypatch.setattr("hudi_locks.catalog.sync.open_catalog", lambda _kind, _options: made)
    return made
