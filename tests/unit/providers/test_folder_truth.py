"""A file system that is said to create exclusively is tried before it is believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fsspec
import pytest
from hudi_locks_providers._files import truth
from hudi_locks_providers.filesystem import FileSystemLockProvider

from hudi_locks import BackendRefused, ManualClock, Owner

Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def forget(monkeypatch: Any) -> None:
    monkeypatch.setattr(truth, "_PROVEN", set())


def on_memory(clock: ManualClock) -> FileSystemLockProvider:
    options = {"hoodie.write.lock.filesystem.path": "memory://locks", "hoodie.fs.atomic_creation.support": "memory"}
    return FileSystemLockProvider(options, clock=clock, on_lost=lambda *_: None)


def test_a_local_folder_is_honest_and_left_clean(make: Make, tmp_path: Any) -> None:
    findings = make().probe()
    assert [finding.name for finding in findings] == [
        "create-once",
        "create-race-has-one-winner",
        "takeover-race-has-one-winner",
        "clock-offset",
    ]
    assert all(finding.ok for finding in findings[:3])
    assert not list((tmp_path / "table/.hoodie/.hudi_locks/probe").iterdir())


def test_the_clock_of_the_file_system_is_compared(make: Make) -> None:
    """The files have real time, and the provider is in virtual time."""
    last = make().probe()[-1]
    assert not last.ok
    assert "NTP" in last.advice


def test_a_scheme_that_only_pretends_is_refused(table: Any, ada: Owner, clock: ManualClock, monkeypatch: Any) -> None:
    """Some file systems take the mode for exclusive creation and overwrite all the same."""
    fs = fsspec.filesystem("memory")
    opened = fs.open
    monkeypatch.setattr(fs, "open", lambda path, mode, **more: opened(path, mode.replace("x", "w"), **more))
    monkeypatch.setattr(fs, "exists", lambda path, **more: False)
    for _ in range(2):
        with pytest.raises(BackendRefused, match=r"memory://locks: create-once.*accepted.*another lock provider"):
            on_memory(clock).try_acquire(table, ada, 0)


def test_an_honest_scheme_is_tried_once(table: Any, ada: Owner, clock: ManualClock, monkeypatch: Any) -> None:
    tried: list[int] = []
    race = truth.FolderTruth._race_creates

    def count(self: truth.FolderTruth) -> Any:
        tried.append(1)
        return race(self)

    monkeypatch.setattr(truth.FolderTruth, "_race_creates", count)
    for _ in range(2):
        provider = on_memory(clock)
        lease = provider.try_acquire(table, ada, 0)
        assert lease is not None
        provider.release(lease)
    assert tried == [1]
