"""The lock of a table around any piece of work."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_locks import AcquireTimeout, ConfigError, LockLost, LockManager, table_lock


def test_it_is_the_lock_of_every_other_writer(tmp_path: Path) -> None:
    with table_lock(tmp_path, provider="filesystem", application="backup") as held:
        held.check()
        assert held.token
        with LockManager("filesystem", {"hoodie.base.path": str(tmp_path)}) as manager:
            holder = manager.holder()
            assert holder is not None
            assert "backup" in str(holder.owner)
            with pytest.raises(AcquireTimeout), table_lock(tmp_path, provider="filesystem", timeout_s=0):
                pytest.fail("it was held")
    with table_lock(tmp_path, {"hoodie.write.lock.provider": "filesystem"}, timeout_s=0):
        assert (tmp_path / ".hoodie" / "lock").exists()
    assert not (tmp_path / ".hoodie" / "lock").exists()


def test_it_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), table_lock(tmp_path, provider="filesystem"):
        raise ZeroDivisionError
    with table_lock(tmp_path, provider="filesystem", timeout_s=0) as held:
        held.check()


def test_a_loss_is_told_at_the_end(tmp_path: Path) -> None:
    def lose_it() -> None:
        with table_lock(tmp_path, provider="filesystem") as held:
            (tmp_path / ".hoodie" / "lock").unlink()
            with pytest.raises(LockLost):
                held.verify()

    with pytest.raises(LockLost):
        lose_it()


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.provider"), table_lock(tmp_path):
        pytest.fail("no provider was named")
    other = {"hoodie.base.path": "/elsewhere"}
    with (
        pytest.raises(ConfigError, match=r"hoodie\.base\.path is /elsewhere: leave that out"),
        table_lock(tmp_path, other, provider="filesystem"),
    ):
        pytest.fail("another path was named")
