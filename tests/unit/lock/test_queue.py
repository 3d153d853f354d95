"""The local queue, in which threads of one process wait for each other."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from waiting import until

from hudi_locks import AlreadyHeld, BackendRefused, LockScope

Make = Callable[..., Any]


def test_the_same_thread_asking_again_is_told_so(make_manager: Make) -> None:
    manager = make_manager()
    with manager.lock(), pytest.raises(AlreadyHeld, match="holds the lock on table already"):
        manager.lock()
    with manager.lock(), manager.lock(LockScope.file_group("p", "f")) as other:
        other.check()


def test_threads_of_one_process_ask_the_service_one_at_a_time_in_order(make_manager: Make, clock: Any) -> None:
    manager = make_manager()
    order: list[int] = []
    held = manager.lock()
    threads = []
    for number in range(5):

        def work(number: int = number) -> None:
            with manager.lock():
                order.append(number)

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        assert until(partial(lambda line: manager._turns.waiting(LockScope.table()) == line, number + 1))
    assert len(manager.provider.asked) == 1
    held.release()
    for thread in threads:
        thread.join(5)
    assert order == [0, 1, 2, 3, 4]
    assert len(manager.provider.asked) == 6


@pytest.mark.parametrize("fails", [False, True])
def test_the_next_in_line_asks_once_the_service_has_let_go(make_manager: Make, scripted: Any, fails: bool) -> None:
    """One that asks while the release is under way finds the lock taken, and sits out a pause for nothing."""
    turns: list[Any] = []

    class Watched(scripted):  # type: ignore[misc]
        def release(self, lease: Any) -> None:
            turns.append(manager._turns.owner(lease.scope) == lease.owner)
            if fails:
                raise BackendRefused("planted")

    manager = make_manager(Watched)
    held = manager.lock()
    with contextlib.suppress(BackendRefused):
        held.release()
    assert turns == [True]
    assert manager._turns.owner(held.scope) is None
    manager.provider.release = lambda lease: None
