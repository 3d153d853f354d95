"""Clocks: the real one waits for any length, the manual one moves only when told."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from waiting import until

from hudi_locks.clock import Clock, ManualClock, SystemClock


@pytest.mark.parametrize("timeout_s", [None, float("inf"), 1e300])
def test_a_wait_without_end_ends_with_its_event(timeout_s: float | None) -> None:
    event, waiting, seen = threading.Event(), threading.Event(), []

    def wait() -> None:
        waiting.set()
        seen.append(SystemClock().wait(event, timeout_s))

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait(5)
    event.set()
    thread.join(5)
    assert seen == [True]


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()])
@pytest.mark.parametrize("timeout_s", [0, -1, float("-inf")])
def test_a_wait_of_no_length_tells_whether_the_event_is_set(clock: Clock, timeout_s: float) -> None:
    event = threading.Event()
    assert not clock.wait(event, timeout_s)
    event.set()
    assert clock.wait(event, timeout_s)


def test_waiters_wake_in_the_order_of_their_deadlines() -> None:
    clock, woken = ManualClock(), []

    def sleep(duration_s: float) -> None:
        clock.sleep(duration_s)
        woken.append((duration_s, clock.monotonic()))

    start_s = clock.monotonic()
    threads = [threading.Thread(target=sleep, args=(duration_s,)) for duration_s in (3.0, 1.0, 2.0)]
    for thread in threads:
        thread.start()
    assert until(lambda: clock.parked() == len(threads))
    clock.advance(2.5)
    assert [duration_s for duration_s, _ in woken] == [1.0, 2.0]
    assert all(now_s - start_s >= duration_s for duration_s, now_s in woken)
    clock.advance(1)
    for thread in threads:
        thread.join(5)
    assert len(woken) == 3


def test_the_wall_clock_jumps_alone() -> None:
    clock = ManualClock(wall_ms=5_000)
    before_s = clock.monotonic()
    clock.jump_wall(-3_600_000)
    assert (clock.wall_ms(), clock.monotonic()) == (5_000 - 3_600_000, before_s)


def test_time_stands_still_while_any_thread_that_woke_is_busy() -> None:
    clock = ManualClock()
    began_s = clock.monotonic()
    found: dict[str, float] = {}

    def work(name: str, busy_s: float) -> None:
        clock.sleep(10)
        threading.Event().wait(busy_s)
        found[name] = clock.monotonic() - began_s
        clock.sleep(1000)

    for number, (name, busy_s) in enumerate([("first", 0.03), ("second", 0.1)], 1):
        threading.Thread(target=work, args=(name, busy_s), daemon=True).start()
        assert until(partial(lambda least: clock.parked() >= least, number))
    clock.advance(100)
    assert found == {"first": 10, "second": 10}
    clock.advance(2000)


def test_it_tells_which_thread_waits() -> None:
    clock, go_on = ManualClock(), threading.Event()
    thread = threading.Thread(target=lambda: clock.wait(go_on, None))
    thread.start()
    assert until(lambda: clock.waits(thread))
    assert not clock.waits(threading.current_thread())
    go_on.set()
    thread.join(5)
    assert not clock.waits(thread)


def test_a_thread_whose_event_is_set_no_longer_waits_also_before_it_wakes_up() -> None:
    clock, looked = ManualClock(), list[bool]()

    class Watched(threading.Event):
        """Looks while the thread is still parked: before it is set and after."""

        def wait(self, timeout: float | None = None) -> bool:
            looked.append(clock.waits(thread))
            self.set()
            looked.append(clock.waits(thread))
            return super().wait(timeout)

    thread = threading.Thread(target=clock.wait, args=(Watched(), None))
    thread.start()
    thread.join(5)
    assert looked == [True, False]
