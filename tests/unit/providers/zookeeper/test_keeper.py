"""The thread that looks after locks ends with its provider, whoever starts and whoever ends it."""

from __future__ import annotations

import threading

import pytest
from hudi_locks_providers._zookeeper.keeper import Keeper
from waiting import until

from hudi_locks import SystemClock


class SlowStart(threading.Thread):
    """A thread whose start takes until it is allowed."""

    made: SlowStart

    def __init__(self, **words: object) -> None:
        super().__init__(**words)  # type: ignore[arg-type]
        self.may_start = threading.Event()
        SlowStart.made = self

    def start(self) -> None:
        assert self.may_start.wait(60)
        super().start()


def test_a_close_while_the_thread_is_being_started_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(lambda: False, SystemClock())
    failures: list[BaseException] = []

    def close() -> None:
        try:
            keeper.close()
        except BaseException as error:  # whatever it is, the test tells it
            failures.append(error)

    nudging, closing = threading.Thread(target=keeper.nudge), threading.Thread(target=close)
    monkeypatch.setattr(threading, "Thread", SlowStart)
    nudging.start()
    assert until(lambda: hasattr(SlowStart, "made") and keeper._thread is SlowStart.made)
    closing.start()
    until(lambda: not closing.is_alive(), 0.1)
    SlowStart.made.may_start.set()
    nudging.join(60)
    closing.join(60)
    assert not failures
    assert not SlowStart.made.is_alive()
