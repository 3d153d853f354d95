"""What tests of several packages share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, NoReturn

import pytest
from transaction_harness import Harness, HarnessClock, heartbeats_that_end, stop_at

from hudi_locks.storage import MemoryStorage
from hudi_locks.transaction import StopPoint

UNIT = Path(__file__).parent


class NoSpark(MetaPathFinder):
    """Unit tests do without PySpark, also where it is installed; what needs it belongs to tests/spark."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] in ("pyspark", "py4j"):
            self.refuse(fullname)

    def refuse(self, name: str) -> NoReturn:
        raise ModuleNotFoundError(f"unit tests do without PySpark, and this one imports {name}", name=name)


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [NoSpark(), *sys.meta_path])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Importing a unit test imports no PySpark either."""
    units = all(item.path.is_relative_to(UNIT) for item in session.items)
    if units and "pyspark" in sys.modules:
        raise pytest.UsageError("a module of tests/unit imports PySpark, which belongs to tests/spark")


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    """Writers on one table in memory."""
    clock = HarnessClock()
    with heartbeats_that_end(monkeypatch):
        yield Harness(clock, MemoryStorage(clock))


@pytest.fixture
def at() -> Callable[[StopPoint, Callable[[], object]], Any]:
    """A tracer that does something once, when a writer comes to a stop point."""

    return stop_at
