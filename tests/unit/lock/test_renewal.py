"""The renewal thread sleeps while there is nothing to renew."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from waiting import until

from hudi_locks.clock import ManualClock
from hudi_locks.lock.lease import Renewable, Renewals


class CountingClock(ManualClock):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        self.calls += 1
        return super().wait(event, timeout_s)


class Lease(Renewable):
    def __init__(self, due_s: float) -> None:
        self.due_s = due_s
        self.tended = threading.Event()

    def alarm_s(self) -> float:
        return float("inf")

    def tend(self) -> None:
        self.due_s = float("inf")
        self.tended.set()


@pytest.fixture
def clock() -> CountingClock:
    return CountingClock()


@pytest.fixture
def renewals(clock: CountingClock) -> Iterator[Renewals]:
    made = Renewals(clock)
    yield made
    made.close()


def settle(clock: ManualClock, renewals: Renewals) -> None:
    """Wait until each thread waits for what has not come yet: one that was just woken may still look parked."""
    threads = renewals._threads
    assert until(lambda: all(clock.waits(thread) for thread in threads)), "the renewal thread does not come to rest"


def test_a_row_of_quick_lock_cycles_wakes_nobody(clock: CountingClock, renewals: Renewals) -> None:
    for _ in range(50):
        lease = Lease(clock.monotonic() + 60)
        renewals.add(lease)
        renewals.discard(lease)
        renewals.poke()
        settle(clock, renewals)
    calls = clock.calls
    for _ in range(50):
        lease = Lease(clock.monotonic() + 60)
        renewals.add(lease)
        renewals.discard(lease)
        settle(clock, renewals)
    assert clock.calls == calls


def test_a_lease_that_is_due_before_the_thread_would_wake_is_tended_in_time(
    clock: CountingClock, renewals: Renewals
) -> None:
    late = Lease(clock.monotonic() + 60)
    renewals.add(late)
    renewals.discard(late)
    settle(clock, renewals)
    early = Lease(clock.monotonic() + 1)
    renewals.add(early)
    settle(clock, renewals)
    clock.advance(1.5)
    assert early.tended.wait(5)
