"""Where the table of the demonstration lies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.cli.demo import store as stores
from hudi_locks.cli.demo.store import DemoStore, open_store
from hudi_locks.errors import ConfigError

served: list[str] = []


@contextmanager
def serve() -> Iterator[dict[str, Any]]:
    served.append("begun")
    yield {"base": "s3://bucket/x", "provider": "storage", "options": {"a": "b"}}
    served.append("ended")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("mine", f"{__name__}:serve", stores.ENTRY_POINT_GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda _: serve)
    monkeypatch.setattr(stores, "entry_points", lambda *, group: [entry] if group == entry.group else [])
    served.clear()


def test_without_a_store_the_table_lies_in_the_folder(tmp_path: Path) -> None:
    with open_store("local", tmp_path) as store:
        assert store == DemoStore(str(tmp_path), "filesystem", {})
    assert served == []


def test_a_store_is_started_for_it_and_stopped(tmp_path: Path) -> None:
    with open_store("mine", tmp_path) as store:
        assert store == DemoStore("s3://bucket/x", "storage", {"a": "b"})
        assert served == ["begun"]
    assert served == ["begun", "ended"]


def test_an_unknown_store_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="--storage floppy is not known; use one of local, mine"),
        open_store("floppy", tmp_path),
    ):
        pass
