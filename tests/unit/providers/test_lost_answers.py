"""A create whose answer is lost is recognised as done, and one that failed leaves nothing."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_providers._files import local

from hudi_locks import BackendUnavailable, LockScope, Owner


@pytest.mark.parametrize("error", [OSError(errno.EIO, "lost"), FileExistsError(errno.EEXIST, "sent twice")])
def test_a_lost_answer_is_found_out(
    make: Callable[..., Any], table: LockScope, ada: Owner, bob: Owner, monkeypatch: Any, error: OSError
) -> None:
    link = local.link

    def lose_answer(fd: int, name: str, path: str) -> None:
        link(fd, name, path)
        raise error

    provider = make()
    with monkeypatch.context() as patch:
        patch.setattr(local, "link", lose_answer)
        lease = provider.try_acquire(table, ada, 0)
    provider.renew(lease)
    assert make().try_acquire(table, bob, 0) is None
    provider.release(lease)
    assert make().try_acquire(table, bob, 0) is not None


def test_a_failed_create_leaves_nothing(
    make: Callable[..., Any], table: LockScope, ada: Owner, tmp_path: Path, monkeypatch: Any
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "down")

    provider = make()
    assert list_open(tmp_path) == []
    monkeypatch.setattr(local, "link", fail)
    with pytest.raises(BackendUnavailable, match="lock: down"):
        provider.try_acquire(table, ada, 0)
    assert list_open(tmp_path) == []
    assert list((tmp_path / "table/.hoodie").iterdir()) == []


def test_an_open_file_would_be_seen(tmp_path: Path) -> None:
    """One without a name, as the provider makes them."""
    with tempfile.TemporaryFile(dir=tmp_path):
        assert len(list_open(tmp_path)) == 1


def list_open(folder: Path) -> list[str]:
    """What this process has open in a folder: others come and go with the tests before, as garbage is collected."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return [path for path in found if path.startswith(str(folder))]
