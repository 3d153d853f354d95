"""A forked child holds nothing, and harms nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_locks import HoldState, LockLost, LockManager, LossReason, ProviderClosed

OPTIONS = {"hoodie.write.lock.provider": "filesystem"}


def in_child(work: Callable[[], None]) -> int:
    """The exit status of a forked child that runs `work`; 0 if it returned."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("provider", ["filesystem", "in_process"])
def test_a_child_neither_holds_nor_releases(tmp_path: Path, provider: str) -> None:
    options = {"hoodie.write.lock.provider": provider, "hoodie.base.path": str(tmp_path)}
    with LockManager.from_options(options) as manager, manager.lock() as held:

        def work() -> None:
            assert held.state is HoldState.LOST
            assert held.reason is LossReason.FORKED
            with pytest.raises(LockLost, match="parent process"):
                held.check()
            with pytest.raises(ProviderClosed, match="build one in the child"):
                manager.lock()
            held.release()
            manager.close()
            with pytest.raises(LockLost):
                manager.provider.renew(held.lease)
            manager.provider.release(held.lease)

        assert in_child(work) == 0
        held.verify()
        assert manager.holder() is not None


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_may_build_its_own(tmp_path: Path) -> None:
    options = {**OPTIONS, "hoodie.base.path": str(tmp_path)}
    with LockManager.from_options(options) as manager:
        with manager.lock():

            def denied() -> None:
                with LockManager.from_options(options) as own:
                    assert own.try_lock() is None

            assert in_child(denied) == 0

        def granted() -> None:
            with LockManager.from_options(options) as own:
                own.lock(timeout_s=0).release()

        assert in_child(granted) == 0
