"""The kit's clocks: one that the kit's own thread may wait on, and those that go wrong beside it."""

from __future__ import annotations

import threading

import pytest
from hudi_locks_conformance import Violation
from hudi_locks_conformance.clocks import BenchClock, OwnClock
from waiting import until

from hudi_locks import ManualClock


def test_time_passes_while_the_thread_that_made_it_waits() -> None:
    clock, event = BenchClock(), threading.Event()
    began_s = clock.monotonic()

    def end_wait() -> None:
        clock.sleep(2)
        event.set()

    other = threading.Thread(target=end_wait)
    other.start()
    assert until(lambda: clock.waits(other))
    assert clock.wait(event, 10)
    assert 2 <= clock.monotonic() - began_s <= 2.2
    clock.sleep(5)
    assert 7 <= clock.monotonic() - began_s <= 7.2
    other.join(5)


@pytest.mark.parametrize("timeout_s", [None, float("inf")])
def test_a_wait_that_nobody_ends_is_a_violation(timeout_s: float | None) -> None:
    with pytest.raises(Violation, match="more than 3600 s"):
        BenchClock().wait(threading.Event(), timeout_s)


def test_a_clock_that_drifts_waits_by_its_own_seconds() -> None:
    base = BenchClock()
    fast = OwnClock(base, rate=1.25)
    began_s, began_ms = base.monotonic(), fast.wall_ms()
    fast.sleep(10)
    assert base.monotonic() - began_s == pytest.approx(8, abs=0.1)
    assert fast.monotonic() - began_s == pytest.approx(10, abs=0.1)
    assert fast.wall_ms() - began_ms == pytest.approx(8_000, abs=100), "its wall clock is kept in step"


def test_jumps_move_the_wall_clock_and_skips_both() -> None:
    base = ManualClock()
    clock = OwnClock(base, skew_ms=500)
    assert clock.wall_ms() - base.wall_ms() == 500
    clock.jump_wall(-1_500)
    assert (clock.wall_ms() - base.wall_ms(), clock.monotonic()) == (-1_000, base.monotonic())
    clock.skip(60)
    assert (clock.wall_ms() - base.wall_ms(), clock.monotonic() - base.monotonic()) == (59_000, 60)
