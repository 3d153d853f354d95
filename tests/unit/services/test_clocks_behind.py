"""A JVM writer whose clock is behind gets the lock next, and can take no time that an instant of ours has."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from metadata_harness import MetadataHarness
from service_harness import ServiceHarness
from transaction_harness import OpenLock

from hudi_locks.format import Instant, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.metadata_table import METADATA_LAYOUT
from hudi_locks.services import Cleaner, CleanSettings, Restorer, TableServices
from hudi_locks.storage import Storage
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.transaction import Transactions

SKEW_MS = 200
SKEW = {"hoodie__time__generator__max_expected_clock_skew_ms": SKEW_MS}


class Neighbour(OpenLock):
    """Notes, whenever the lock is let go, the time that such a writer takes, and the newest that has been taken."""

    def __init__(self, harness: ServiceHarness) -> None:
        self.harness = harness
        self.turns: list[tuple[str, str]] = []

    def lock(self) -> Neighbour:
        return self

    def release(self) -> None:
        theirs = LAYOUT_2.time(self.harness.clock.wall_ms() - SKEW_MS + 1)
        self.turns.append((max(list_times(self.harness.storage)), theirs))


def list_times(storage: Storage) -> list[str]:
    timelines = [Timeline.load(storage, layout) for layout in (LAYOUT_2, METADATA_LAYOUT)]
    return [instant.requested for timeline in timelines for instant in timeline.instants]


def die(transactions: Transactions, harness: ServiceHarness) -> Transactions:
    tx = transactions.begin("commit", "UPSERT")
    harness.rewrite(tx, "p/h-0")
    tx._state.heartbeat.pause()
    return transactions


Act = Callable[[Transactions, ServiceHarness], object]
ACTS: dict[str, Act] = {
    "begin": lambda transactions, _: transactions.begin("commit", "UPSERT"),
    "abort": lambda transactions, _: transactions.begin("commit", "UPSERT").abort("enough"),
    "roll back": lambda transactions, harness: die(transactions, harness).roll_back_failed(),
    "clean": lambda transactions, _: Cleaner(
        transactions.coordinator, CleanSettings.of({"hoodie.clean.commits.retained": 1})
    ).run(),
    "restore": lambda transactions, harness: Restorer(transactions.coordinator).run(
        harness.timeline().completed(("commit",))[0].requested
    ),
}


@pytest.fixture
def foreign(harness: ServiceHarness) -> ServiceHarness:
    for _ in range(3):
        harness.put("p/g-0")
    harness.foreign = True
    return harness


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_every_instant_is_older_than_what_a_clock_behind_says_next(foreign: ServiceHarness, act: Act) -> None:
    neighbour, before = Neighbour(foreign), set(list_times(foreign.storage))
    act(foreign.open(locks=neighbour, **SKEW), foreign)
    assert set(list_times(foreign.storage)) - before
    assert [turn for turn in neighbour.turns if turn[0] >= turn[1]] == []


@pytest.mark.parametrize("version", [8, 9])
def test_so_is_a_compaction_of_the_metadata_table(foreign: ServiceHarness, version: int) -> None:
    kept = MetadataHarness.of(foreign, version)
    kept.foreign = True
    for _ in range(3):
        kept.put("p/g-0")
    neighbour = Neighbour(kept)
    options = {"hoodie.metadata.compact.max.delta.commits": "2"}
    done = TableServices(kept.open(locks=neighbour, **SKEW), options).serve_metadata_table()
    assert len(done.compactions) == 1
    assert [turn for turn in neighbour.turns if turn[0] >= turn[1]] == []


def test_nobody_waits_where_only_writers_of_this_package_are_at_work(foreign: ServiceHarness) -> None:
    foreign.foreign = False
    before_ms = foreign.clock.wall_ms()
    foreign.open(**SKEW).begin("commit", "UPSERT").abort("enough")
    assert foreign.clock.wall_ms() == before_ms


def test_a_rollback_that_got_the_time_of_a_commit_of_the_jvm_is_carried_out(harness: ServiceHarness) -> None:
    """As an older release, which did not wait, may have left it."""
    tx = harness.open().begin("commit", "UPSERT")
    harness.rewrite(tx, "p/h-0")
    coordinator = harness.open().coordinator
    pending = Instant(tx.instant, "commit", State.INFLIGHT)
    draft = coordinator.rollback.draft(coordinator.peek(), pending, kind=ClaimKind.ROLLBACK)
    assert coordinator.rollback.append(draft) is not None
    taken = str(draft.rollback_instant)
    harness.foreign_instant(taken, "commit", f"{taken[:-3]}999", b"{}")
    harness.clock.advance(1)
    harness.put("p/g-0")
    timeline = harness.timeline()
    assert [done.requested for done in timeline.completed(("rollback",))] == [taken]
    assert timeline.get(tx.instant) is None
    assert timeline.get(taken) in timeline.completed(("commit",))
