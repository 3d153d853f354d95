"""The end of a process with locks that nobody released."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_locks import LockManager, LockScope
from hudi_locks.lock import manager as module

Make = Callable[[], LockManager]
GROUP = LockScope.file_group("city=oslo", "f-1")


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr(module, "_OPEN", weakref.WeakSet())
    return lambda: LockManager("filesystem", {"hoodie.base.path": str(tmp_path)})


def test_what_was_never_released_is_told_and_freed(make: Make) -> None:
    forgetful = make()
    forgetful.lock()
    forgetful.lock(GROUP)
    with pytest.warns(ResourceWarning, match=r"2 locks that were never released: city=oslo/f-1, table"):
        module._close_all()
    make().lock(timeout_s=0)


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_a_warning_that_is_an_error_keeps_no_lock(make: Make) -> None:
    forgetful = make()
    forgetful.lock()
    with pytest.raises(ResourceWarning):
        module._close_all()
    make().lock(timeout_s=0).release()


def test_whoever_released_hears_nothing(make: Make, recwarn: pytest.WarningsRecorder) -> None:
    manager = make()
    manager.lock().release()
    module._close_all()
    assert not recwarn.list


def test_a_hold_outlives_every_reference_to_it(make: Make) -> None:
    make().lock()
    gc.collect()
    other = make()
    assert other.try_lock() is None
    with pytest.warns(ResourceWarning):
        module._close_all()
