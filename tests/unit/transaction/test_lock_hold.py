"""How long the table lock is held, by whom, and what is looked at again once it is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from transaction_harness import LosingLock

from hudi_locks.format import WriteStat
from hudi_locks.observe import (
    CONFLICT_RESOLUTION_FAILURE,
    CONFLICT_RESOLUTION_SUCCESS,
    CONFLICT_RESOLUTION_TIMER,
    Gauge,
    Timing,
)
from hudi_locks.transaction import Outcome, StopPoint

_INSIDE_THE_LOCK = {point for point in StopPoint if point.value.startswith("publish:")} - {
    StopPoint.PUBLISH_UNLOCKED,
    StopPoint.PUBLISH_CLEANED,
}


class SlowLock(LosingLock):
    """Is waited for a while, and tells whether it is held."""

    def __init__(self, harness: Any, wait_s: float) -> None:
        super().__init__()
        self._harness, self._wait_s = harness, wait_s

    def lock(self) -> LosingLock:
        self._harness.clock.advance(self._wait_s)
        return super().lock()


def test_the_metrics_show_what_the_last_commit_wrote_and_nothing_of_aborts(harness: Any) -> None:
    """Under the names of JVM Hudi's."""
    transactions = harness.open()
    tx = transactions.begin("commit", "UPSERT")
    stat = WriteStat("p", "g-1", "p/g-1_0", prev_commit="20240101000000000", num_writes=9, num_update_writes=4)
    written = harness.write(tx, "g-0")
    harness.clock.advance(1.5)
    assert tx.publish(replace(written, partition_to_write_stats={"p": (*written.stats, stat)})).is_committed
    lost = transactions.begin("commit", "UPSERT")
    lost.abort("a test")
    shown = {name: value for name, value in transactions.metrics.snapshot().items() if isinstance(value, Gauge)}
    assert {name for name in shown if not name.startswith("commit.")} == {
        "finalize.duration", "finalize.numFilesFinalized", "rollback.duration", "rollback.numFilesDeleted",
        "clean.pendingCleanInstantCount", "clustering.pendingClusteringInstantCount",
        "compaction.pendingCompactionInstantCount", "rollback.pendingRollbackInstantCount",
    }  # fmt: skip
    assert shown["finalize.numFilesFinalized"] == Gauge(1)
    assert {name.removeprefix("commit.") for name in shown if name.startswith("commit.")} == {
        "totalPartitionsWritten", "totalFilesInsert", "totalFilesUpdate", "totalRecordsWritten", "totalRecordsDeleted",
        "totalInsertRecordsWritten", "totalUpdateRecordsWritten", "totalBytesWritten", "duration", "commitTime",
    }  # fmt: skip
    assert (shown["commit.totalFilesInsert"], shown["commit.totalFilesUpdate"]) == (Gauge(1), Gauge(1))
    assert (shown["commit.totalRecordsWritten"], shown["commit.totalUpdateRecordsWritten"]) == (Gauge(9), Gauge(4))
    assert shown["commit.duration"].value >= 1_500


@pytest.mark.parametrize(("foreign", "begin_ms"), [(True, (2_000, 300)), (False, (0, 0))])
def test_a_commit_tells_how_long_it_waited_for_the_lock_and_held_it(
    harness: Any, foreign: bool, begin_ms: tuple[int, int]
) -> None:
    """Where no JVM writer takes its times inside the lock, a begin needs none."""
    harness.foreign = foreign
    holds = {StopPoint.BEGIN_LISTED: 0.3, StopPoint.PUBLISH_CHECKED: 0.7, StopPoint.BEGIN_UNLOCKED: 20.0}
    transactions = harness.open(
        locks=SlowLock(harness, 2), trace=lambda point: harness.clock.advance(holds.get(point, 0))
    )
    tx = transactions.begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert (result.begin_wait_ms, result.begin_held_ms) == begin_ms
    assert (result.lock_wait_ms, result.lock_held_ms) == (2_000, 700)


@pytest.mark.parametrize("action", ["commit", "replacecommit"])
def test_nobody_holds_the_lock_while_files_are_written(harness: Any, action: str) -> None:
    """Neither writes nor table services, which are writes in this: others begin and publish meanwhile."""
    lock = LosingLock()
    held: list[tuple[StopPoint, int]] = []
    tx = harness.open(locks=lock, trace=lambda point: held.append((point, lock.holds))).begin(action, "CLUSTER")
    metadata = harness.write(tx, "g-0")
    assert lock.holds == 0
    assert tx.publish(metadata).is_committed
    assert {point for point, holds in held if holds} == _INSIDE_THE_LOCK
    assert lock.holds == 0


def test_a_heartbeat_that_expires_while_the_lock_is_waited_for_aborts_the_write(harness: Any) -> None:
    """It was fresh when the publish was asked for; JVM Hudi looks then, and not again."""
    tx = harness.open(locks=SlowLock(harness, 130)).begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    tx._state.heartbeat._stopped.set()
    tx._state.heartbeat._last_s = harness.clock.monotonic()
    assert tx.lost_because == ""
    result = tx.publish(metadata)
    assert (result.outcome, "the heartbeat expired" in result.reason) == (Outcome.ABORTED, True)
    assert harness.names("p") == []


def test_a_write_tells_when_its_heartbeat_is_lost(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    told: list[str] = []
    tx.call_when_lost(told.append)
    harness.storage.delete(f".hoodie/.heartbeat/{tx.instant}")
    harness.clock.advance(61)
    assert told == [tx.lost_because] == [f".hoodie/.heartbeat/{tx.instant} was removed"]


def test_looks_for_conflicts_are_counted_and_timed(harness: Any) -> None:
    transactions = harness.open()
    first, second = (transactions.begin("commit", "UPSERT") for _ in range(2))
    assert first.publish(harness.write(first, "g-0")).is_committed
    assert second.publish(harness.write(second, "g-0")).conflict is not None
    metrics = transactions.metrics
    assert metrics.counter(CONFLICT_RESOLUTION_SUCCESS) == metrics.counter(CONFLICT_RESOLUTION_FAILURE) == 1
    timing = metrics.snapshot()[CONFLICT_RESOLUTION_TIMER]
    assert isinstance(timing, Timing)
    assert timing.count == 2
