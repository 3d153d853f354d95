from __future__ import annotations

import threading

import pytest
from waiting import until

from hudi_locks.clock import ManualClock
from hudi_locks.errors import StorageError
from hudi_locks.observe import HEARTBEAT_AGE, HEARTBEAT_MISS, Metrics, Timing
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline.heartbeat import WriterHeartbeat, find_expired, heartbeat_path

T = "20231114221320000"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def storage(clock: ManualClock) -> MemoryStorage:
    return MemoryStorage(clock)


def make(storage: MemoryStorage, clock: ManualClock) -> WriterHeartbeat:
    return WriterHeartbeat(storage, T, interval_ms=60_000, tolerable_misses=2, clock=clock)


def age_ms(storage: MemoryStorage) -> int:
    entry = storage.stat(heartbeat_path(T))
    assert entry is not None
    return storage.now_ms() - entry.modified_ms


def test_it_beats_for_hours_and_goes_at_the_end(storage: MemoryStorage, clock: ManualClock) -> None:
    heartbeat = make(storage, clock)
    assert heartbeat.start()
    clock.advance(3_630)
    assert heartbeat.is_fresh
    assert age_ms(storage) == 30_000
    heartbeat.stop()
    heartbeat.stop()
    assert not storage.exists(heartbeat_path(T))


def test_the_time_of_another_writer_is_not_taken(storage: MemoryStorage, clock: ManualClock) -> None:
    storage.replace(heartbeat_path(T), b"")
    heartbeat = make(storage, clock)
    assert not heartbeat.start()
    heartbeat.stop()
    assert storage.exists(heartbeat_path(T))


def test_a_failed_beat_is_tried_again_soon(
    storage: MemoryStorage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat = make(storage, clock)
    heartbeat.start()

    def fail(path: str) -> bool:
        raise StorageError("slow down", path=path)

    monkeypatch.setattr(storage, "touch", fail)
    clock.advance(65)
    monkeypatch.undo()
    clock.advance(10)
    assert heartbeat.is_fresh
    assert age_ms(storage) < 10_000
    heartbeat.stop()


def test_a_file_that_was_removed_is_never_made_again(storage: MemoryStorage, clock: ManualClock) -> None:
    heartbeat = make(storage, clock)
    heartbeat.start()
    storage.delete(heartbeat_path(T))
    clock.advance(130)
    assert not heartbeat.is_fresh
    assert "was removed" in heartbeat.lost_because
    assert not storage.exists(heartbeat_path(T))
    heartbeat.stop()


def test_a_store_that_fails_too_long_loses_it_for_good(
    storage: MemoryStorage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat = make(storage, clock)
    heartbeat.start()

    def fail(path: str) -> bool:
        raise StorageError("down", path=path)

    monkeypatch.setattr(storage, "touch", fail)
    clock.advance(119)
    assert not heartbeat.lost_because
    clock.advance(12)
    monkeypatch.undo()
    clock.advance(120)
    assert not heartbeat.is_fresh
    assert age_ms(storage) == 251_000
    heartbeat.stop()


def test_a_beat_that_took_too_long_does_not_count(
    storage: MemoryStorage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat = make(storage, clock)
    heartbeat.start()
    touch = storage.touch

    def touch_slowly(path: str) -> bool:
        with clock._lock:
            clock._now_s += 200
        return touch(path)

    monkeypatch.setattr(storage, "touch", touch_slowly)
    clock.advance(61)
    assert not heartbeat.is_fresh
    heartbeat.stop()


def test_a_jump_of_the_wall_clock_means_nothing(storage: MemoryStorage, clock: ManualClock) -> None:
    heartbeat = make(storage, clock)
    heartbeat.start()
    clock.jump_wall(-86_400_000)
    assert heartbeat.is_fresh
    heartbeat.stop()


class HangingStorage(MemoryStorage):
    """A store whose first touch gets no answer until it is let go."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.clock, self.is_let_go, self.touches = clock, threading.Event(), 0

    def touch(self, path: str) -> bool:
        self.touches += 1
        if self.touches == 1:
            self.clock.wait(self.is_let_go, None)
        return super().touch(path)


def test_a_beat_without_an_answer_has_a_deadline_after_which_another_thread_beats(clock: ManualClock) -> None:
    storage = HangingStorage(clock)
    metrics = Metrics()
    heartbeat = WriterHeartbeat(storage, T, interval_ms=60_000, tolerable_misses=2, clock=clock, metrics=metrics)
    heartbeat.start()
    clock.advance(60)
    assert until(lambda: clock.parked() >= 2), "the beat that hangs, and the thread that watches over it"
    clock.advance(3_600)
    assert heartbeat.is_fresh
    assert age_ms(storage) <= 60_000
    assert metrics.counter(HEARTBEAT_MISS) == 1
    storage.is_let_go.set()
    heartbeat.stop()
    assert not storage.exists(heartbeat_path(T))


@pytest.mark.parametrize("error", [StorageError("slow down"), RuntimeError("a bug"), OSError("reset by peer")])
def test_no_error_ends_the_beating(
    storage: MemoryStorage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    metrics = Metrics()
    heartbeat = WriterHeartbeat(storage, T, interval_ms=60_000, tolerable_misses=2, clock=clock, metrics=metrics)
    heartbeat.start()

    def fail(_: str) -> bool:
        raise error

    monkeypatch.setattr(storage, "touch", fail)
    clock.advance(73)
    monkeypatch.undo()
    clock.advance(600)
    assert heartbeat.is_fresh
    assert metrics.counter(HEARTBEAT_MISS) == 3
    ages = metrics.snapshot()[HEARTBEAT_AGE]
    assert isinstance(ages, Timing)
    assert ages.longest_s == pytest.approx(78)
    heartbeat.stop()


def test_a_writer_that_slept_does_not_touch_its_file_again(
    storage: MemoryStorage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was stopped: no thread of it ran, and others have taken it for dead since."""
    heartbeat = make(storage, clock)
    heartbeat.start()
    touched: list[str] = []
    monkeypatch.setattr(storage, "touch", touched.append)
    with clock._lock:
        clock._now_s += 600
    assert not heartbeat.is_fresh
    clock.advance(60)
    assert (touched, "no beat for 6" in heartbeat.lost_because) == ([], True)
    heartbeat.stop()


def test_a_loss_is_told_at_once_and_once(storage: MemoryStorage, clock: ManualClock) -> None:
    heartbeat = make(storage, clock)
    heartbeat.start()
    told: list[str] = []
    heartbeat.call_when_lost(told.append)
    storage.delete(heartbeat_path(T))
    clock.advance(300)
    assert [reason.rpartition(" was ")[2] for reason in told] == ["removed"]
    heartbeat.call_when_lost(told.append)
    assert told[1:] == told[:1]
    heartbeat.stop()


def test_the_end_of_a_write_is_no_loss(storage: MemoryStorage, clock: ManualClock) -> None:
    heartbeat = make(storage, clock)
    heartbeat.start()
    told: list[str] = []
    heartbeat.call_when_lost(told.append)
    heartbeat.stop()
    clock.advance(300)
    assert told == []


def test_expired_are_the_missing_and_the_old_by_the_stores_clock(storage: MemoryStorage, clock: ManualClock) -> None:
    storage.replace(heartbeat_path("1"), b"")
    clock.advance(60)
    storage.replace(heartbeat_path("2"), b"")
    clock.advance(60)
    assert find_expired(storage, ["1", "2", "3"], limit_ms=120_000) == {"3"}
    clock.advance(0.001)
    assert find_expired(storage, ["1", "2", "3"], limit_ms=120_000) == {"1", "3"}
