"""The clock of a service, by answers that tell whole seconds."""

from __future__ import annotations

from hudi_locks_providers._wire.service_time import ServiceTime

from hudi_locks.clock import ManualClock

TEN_MS = 1_767_225_610_000


def test_it_is_kept_within_the_second_that_an_answer_tells() -> None:
    clock = ManualClock()
    time = ServiceTime(clock)
    assert time.read_ms() is None
    time.note("Thu, 01 Jan 2026 00:00:10 GMT")
    assert time.read_ms() == TEN_MS
    clock.advance(0.4)
    assert time.read_ms() == TEN_MS + 400
    time.note("Thu, 01 Jan 2026 00:00:11 GMT")  # it was further than the first answer could tell
    assert time.read_ms() == TEN_MS + 1_000
    clock.advance(0.9)
    time.note("Thu, 01 Jan 2026 00:00:11 GMT")
    assert time.read_ms() == TEN_MS + 1_900
    time.note("Thu, 01 Jan 2026 00:08:20 GMT")
    assert time.read_ms() == TEN_MS + 490_000


def test_it_goes_back_with_a_service_that_was_ahead() -> None:
    time = ServiceTime(ManualClock())
    time.note("Thu, 01 Jan 2026 00:01:00 GMT")
    time.note("Thu, 01 Jan 2026 00:00:10 GMT")
    assert time.read_ms() == TEN_MS + 999


def test_it_counts_on_for_half_a_minute_and_no_longer() -> None:
    clock = ManualClock()
    time = ServiceTime(clock)
    time.note("Thu, 01 Jan 2026 00:00:10 GMT")
    clock.advance(29.0)
    assert time.read_ms() == TEN_MS + 29_000
    clock.advance(1.0)
    assert time.read_ms() is None


def test_an_answer_without_a_time_changes_nothing() -> None:
    time = ServiceTime(ManualClock())
    time.note(None)
    assert time.read_ms() is None
