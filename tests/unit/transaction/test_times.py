"""Times of several writers whose clocks jump, and of one that sleeps while it has a time (RFC-66, TrueTime)."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from transaction_harness import At, Harness, heartbeats_that_end

from hudi_locks.clock import ManualClock
from hudi_locks.errors import ClockRefused
from hudi_locks.storage import MemoryStorage
from hudi_locks.transaction import StopPoint, Transaction

_WRITERS = 3
_BOUND_MS = 4_000
Steps = list[tuple[int, int]]
NON_BLOCKING = {
    "hoodie__write__concurrency__mode": "non_blocking_concurrency_control",
    "hoodie__index__type": "BUCKET",
}


class Writer:
    """One process with a wall clock of its own, which begins a write, publishes it, begins the next one."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.clock = ManualClock()
        self.harness = Harness(self.clock, storage, table_type="MERGE_ON_READ")
        self._transactions = self.harness.open(**NON_BLOCKING)
        self._open: Transaction | None = None
        self._off_ms = 0

    def jump(self, to_ms: int) -> None:
        """Be `to_ms` ahead of the store."""
        self.clock.jump_wall(to_ms - self._off_ms)
        self._off_ms = to_ms

    def go_on(self) -> str:
        """The time that the next step was given."""
        if self._open is None:
            self._open = self._transactions.begin("deltacommit", "UPSERT")
            return self._open.instant
        tx, self._open = self._open, None
        return str(tx.publish(self.harness.log(tx, "g-0")).completion_time)


@hypothesis.given(
    st.lists(st.tuples(st.integers(0, _WRITERS - 1), st.integers(-_BOUND_MS, _BOUND_MS)), min_size=2, max_size=30)
)
def test_times_grow_over_all_writers_whatever_their_clocks_do(steps: Steps) -> None:
    storage = MemoryStorage(ManualClock())
    writers = [Writer(storage) for _ in range(_WRITERS)]
    times = []
    with pytest.MonkeyPatch.context() as patch, heartbeats_that_end(patch):
        for number, off_ms in steps:
            writers[number].jump(off_ms)
            times.append(writers[number].go_on())
    assert all(earlier < later for earlier, later in itertools.pairwise(times))
    claims = writers[0].harness.claims()
    named = {claim.instant: claim.time for claim in claims}
    shown = {i.requested: i.completion for i in writers[0].harness.timeline().completed()}
    assert shown == named


@pytest.mark.parametrize("off_s", [-30, 30])
def test_a_clock_may_be_off_by_as_much_as_is_allowed(harness: Any, off_s: int) -> None:
    harness.clock = ManualClock()  # the store keeps its own
    harness.clock.jump_wall(off_s * 1000)
    with pytest.raises(ClockRefused, match="000 ms off the store's, and 10000 ms are allowed") as caught:
        harness.open().begin("commit", "UPSERT")
    assert caught.value.now_ms - caught.value.store_ms == off_s * 1000
    harness.open(**{"hudi_locks.max_clock_drift_ms": 30_000}).begin("commit", "UPSERT").abort("enough")


def test_a_time_that_was_taken_before_another_write_completed_is_taken_anew(harness: Any, at: At) -> None:
    """A writer sleeps, without a lock that would hold others off, and its clock is behind when it wakes up."""

    def overtake() -> None:
        between.append(harness.commit("h-0"))
        harness.clock.jump_wall(-_BOUND_MS)

    between: list[str] = []
    tx = harness.open(trace=at(StopPoint.PUBLISH_TIMED, overtake)).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    other = harness.timeline().get(between[0])
    assert result.completion_time > other.completion
    assert [claim.time for claim in harness.claims()] == [other.completion, result.completion_time]
