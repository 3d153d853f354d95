"""Providers over a folder of their own, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader

from hudi_locks import Lease, LockProvider, LockScope, LossReason, ManualClock, Owner
from hudi_locks.lock import load_provider_class


@pytest.fixture(scope="session", autouse=True)
def models_read_once() -> Iterator[None]:
    """Each session of boto3 reads megabytes of JSON, which is the longest part of a test with fakes."""
    read, known = JSONFileLoader.load_file, {}

    def load(loader: JSONFileLoader, path: str) -> Any:
        if path not in known:
            known[path] = read(loader, path)
        return known[path]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", load)
        yield


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def lock_file(tmp_path: Path) -> Path:
    """Of a provider that `make` made."""
    return tmp_path / "table" / ".hoodie" / "lock"


@pytest.fixture
def lost() -> list[tuple[Lease, LossReason]]:
    return []


@pytest.fixture
def make(clock: ManualClock, tmp_path: Path, lost: list[Any]) -> Iterator[Callable[..., Any]]:
    """Make a provider; options without "hoodie." are those of the file-system provider."""
    made: list[LockProvider] = []

    def make_one(name: str = "filesystem", **options: object) -> LockProvider:
        full: dict[str, object] = {"hoodie.base.path": str(tmp_path / "table")}
        full |= {f"hoodie.write.lock.filesystem.{option}": value for option, value in options.items()}
        kind = load_provider_class(name)
        made.append(kind(full, clock=clock, on_lost=lambda *loss: lost.append(loss)))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


@pytest.fixture
def table() -> LockScope:
    return LockScope.table()


@pytest.fixture
def ada() -> Owner:
    return Owner("ada", "host-a", 11, "main", "etl")


@pytest.fixture
def bob() -> Owner:
    return Owner("bob", "host-b", 22, "main", "backfill")
