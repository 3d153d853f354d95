"""A writer sleeps before it makes its completed file; others make it and archive the instant; it wakes up and dies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from clustering_harness import ClusteringHarness
from service_harness import ServiceHarness
from transaction_harness import FailingStorage, Killed, kill, move_elsewhere

from hudi_locks.clock import SystemClock
from hudi_locks.errors import PossibleLostUpdate, WriteAborted
from hudi_locks.format import Instant, State
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings, Janitor, Restorer, Savepoints
from hudi_locks.storage import LocalStorage, MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint


def archive(harness: ServiceHarness) -> None:
    for _ in range(5):
        harness.put("p/g-0")
    harness.clock.advance(7200)
    Janitor(harness.open().coordinator).sweep()
    given = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    cleaning = CleanSettings.of({"hoodie.clean.commits.retained": 1})
    assert Archiver(harness.open().coordinator, ArchiveSettings.of(given), clean_settings=cleaning).run().archived


def without_beats(harness: ServiceHarness) -> FailingStorage:
    """The files as a process has them that sleeps: nobody renews its heartbeats."""
    return FailingStorage(harness.storage, lambda verb, _: verb == "touch")


DYING = (StopPoint.PUBLISH_COMPLETED, StopPoint.SERVICE_REQUESTED, StopPoint.SERVICE_COMPLETED)


def sleep_at(point: StopPoint, wake: Callable[[], None]) -> Callable[[StopPoint], None]:
    slept: list[StopPoint] = []

    def trace(reached: StopPoint) -> None:
        if slept and reached in DYING:
            kill()
        if reached is point and not slept:
            slept.append(reached)
            wake()

    return trace


@pytest.mark.parametrize("point", [StopPoint.PUBLISH_CLAIMED, StopPoint.PUBLISH_STAGED, StopPoint.PUBLISH_LOOKED])
def test_what_was_archived_does_not_come_back(harness: ServiceHarness, point: StopPoint) -> None:
    def wake() -> None:
        tx._state.heartbeat.pause()
        move_elsewhere(harness.storage)
        archive(harness)

    harness.put("p/g-0")
    tx = harness.open(trace=sleep_at(point, wake)).begin("commit", "UPSERT")
    metadata = harness.rewrite(tx, "p/h-0")
    with contextlib.suppress(Killed):
        assert tx.publish(metadata).is_committed
    names = harness.names(LAYOUT_2.folder)
    assert [name for name in names if name.startswith(tx.instant)] == []
    assert harness.open().resolve(tx.instant).value == "COMMITTED"


def test_a_sweep_takes_away_what_came_back(harness: ServiceHarness) -> None:
    """Older releases, and archivers of the JVM, can still leave it."""
    first = harness.put("p/g-0")
    completed = harness.timeline().get(first)
    assert completed is not None
    path = LAYOUT_2.path(completed)
    data = harness.storage.read(path) or b""
    archive(harness)
    assert not harness.storage.exists(path)
    begins = harness.timeline().first_active
    harness.storage.create_if_absent(path, data)
    assert harness.timeline().first_active == first
    Janitor(harness.open().coordinator).sweep()
    assert not harness.storage.exists(path)
    assert harness.timeline().first_active == begins
    pending = LAYOUT_2.path(Instant(first, "commit", State.INFLIGHT))
    assert not harness.storage.exists(pending)


@pytest.mark.parametrize(
    "point",
    [
        StopPoint.SERVICE_CLAIMED,
        StopPoint.PLAN_STAGED,
        StopPoint.PLAN_LOOKED,
        StopPoint.SERVICE_DONE,
        StopPoint.SERVICE_STAGED,
        StopPoint.SERVICE_LOOKED,
    ],
)
def test_a_clean_that_others_finished_and_archived_does_not_come_back(
    harness: ServiceHarness, point: StopPoint
) -> None:
    def wake() -> None:
        move_elsewhere(harness.storage)
        harness.clock.advance(7200)
        done.extend(harness.cleaner(commits__retained=1).run().instants)
        archive(harness)

    for _ in range(3):
        harness.put("p/g-0")
    done: list[str] = []
    with contextlib.suppress(Killed):
        harness.cleaner(trace=sleep_at(point, wake), storage=without_beats(harness), commits__retained=1).run()
    assert done
    assert [name for name in harness.names(LAYOUT_2.folder) if name.startswith(done[0])] == []


@pytest.mark.parametrize("point", [StopPoint.SERVICE_STAGED, StopPoint.SERVICE_LOOKED])
def test_a_clean_is_completed_once_whoever_sleeps(harness: ServiceHarness, point: StopPoint) -> None:
    def wake() -> None:
        move_elsewhere(harness.storage)
        harness.clock.advance(7200)
        done.extend(harness.cleaner(commits__retained=1).run().instants)

    for _ in range(3):
        harness.put("p/g-0")
    done: list[str] = []
    slept: list[StopPoint] = []

    def trace(reached: StopPoint) -> None:
        if reached is point and not slept:
            slept.append(reached)
            wake()

    assert harness.cleaner(trace=trace, storage=without_beats(harness), commits__retained=1).run().instants == ()
    names = [name for name in harness.names(LAYOUT_2.folder) if name.startswith(done[0])]
    assert len([name for name in names if name.endswith(".clean")]) == 1


def test_a_plan_that_was_rolled_back_does_not_come_back(harness: ServiceHarness) -> None:
    def wake() -> None:
        harness.open().coordinator.look()  # whoever looks puts the plan on the timeline
        other = clustered.clustering()
        [pending] = other.list_pending(clustered.harness.timeline())
        aborted.append(other.abort(pending.instant))

    clustered = ClusteringHarness.at(harness)
    clustered.commit("g-0", "h-0")
    aborted: list[Outcome] = []
    with contextlib.suppress(WriteAborted):
        clustered.clustering(trace=sleep_at(StopPoint.PLAN_LOOKED, wake)).schedule()
    assert aborted == [Outcome.ABORTED]
    assert [name for name in harness.names(LAYOUT_2.folder) if "clustering" in name] == []


class HookedStorage(MemoryStorage):
    """Shares the files of another storage; calls `hook` before each file goes."""

    def __init__(self, files: MemoryStorage, hook: Callable[[str], None]) -> None:
        super().__init__(files._clock)
        self._files = files._files
        self._hook = hook

    def delete(self, path: str) -> bool:
        self._hook(path)
        return super().delete(path)


def test_a_write_that_was_restored_away_does_not_come_back(harness: ServiceHarness) -> None:
    kept = harness.put("p/g-0")
    undone = harness.put("p/h-0")
    completed = harness.timeline().get(undone)
    assert completed is not None
    path = LAYOUT_2.path(completed)
    data = harness.storage.read(path) or b""

    def name_it_again(target: str) -> None:
        """As a sleeper does that has staged the file, and has looked for the inflight file."""
        if target.endswith(f"{undone}.commit.requested"):
            harness.storage.create_if_absent(path, data)

    Restorer(harness.open(storage=HookedStorage(harness.storage, name_it_again)).coordinator).run(kept)
    assert not harness.storage.exists(path)


SETTLING = (StopPoint.PUBLISH_SETTLING, StopPoint.PUBLISH_NAMED, StopPoint.PUBLISH_STAGED, StopPoint.PUBLISH_LOOKED)


@pytest.mark.parametrize("point", SETTLING)
def test_a_helper_that_slept_while_a_write_was_restored_away_raises_no_alarm(
    harness: ServiceHarness, point: StopPoint
) -> None:
    """Another helper completed the write, and the restore that came after it undid it: nothing was lost."""
    first = harness.put("p/g-0")
    tx = harness.open(trace=sleep_at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(harness.rewrite(tx, "p/g-0"))

    def restore() -> None:
        assert tx.instant in Restorer(harness.open().coordinator).run(first).undone

    helper = harness.open(trace=sleep_at(point, restore))
    with helper.coordinator.hold():
        helper.coordinator.look()
    harness.put("p/g-0")
    assert harness.open().coordinator.peek().timeline.get(tx.instant) is None


def test_a_rollback_of_somebody_else_is_an_alarm_though_there_was_a_restore(harness: ServiceHarness) -> None:
    """The restore went back to a later write, and kept this one."""
    tx = harness.open(trace=sleep_at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(harness.rewrite(tx, "p/g-0"))

    def restore_and_lose() -> None:
        later = harness.put("p/g-1")
        harness.put("p/g-1")
        assert tx.instant not in Restorer(harness.open().coordinator).run(later).undone
        for name in harness.names(LAYOUT_2.folder):
            if name.startswith(tx.instant):
                harness.storage.delete(f"{LAYOUT_2.folder}/{name}")

    helper = harness.open(trace=sleep_at(StopPoint.PUBLISH_SETTLING, restore_and_lose))
    with helper.coordinator.hold(), pytest.raises(PossibleLostUpdate):
        helper.coordinator.look()


def test_a_sweep_beside_an_archiver_leaves_no_gap(harness: ServiceHarness) -> None:
    """Where an archiver is at work on an older write, what came back behind it stays until that one is gone."""
    first, second = harness.put("p/g-0"), harness.put("p/g-0")
    kept = {LAYOUT_2.path(i): harness.storage.read(LAYOUT_2.path(i)) or b"" for i in harness.timeline().completed()}
    inflight = LAYOUT_2.path(Instant(first, "commit", State.INFLIGHT))
    archive(harness)
    for path, data in kept.items():
        harness.storage.create_if_absent(path, data)
    harness.storage.create_if_absent(inflight, b"")
    Janitor(harness.open().coordinator).sweep()
    assert {first, second} <= {instant.requested for instant in harness.timeline().completed()}
    harness.storage.delete(inflight)
    Janitor(harness.open().coordinator).sweep()
    assert not {first, second} & {instant.requested for instant in harness.timeline().instants}


def test_a_clean_and_a_savepoint_leave_no_staging_folder(tmp_path: Path) -> None:
    """On a real disk, where a folder outlives what was in it."""
    harness = ServiceHarness(SystemClock(), LocalStorage(str(tmp_path)))  # type: ignore[arg-type]
    for _ in range(3):
        tx = harness.open().begin("commit", "UPSERT")
        assert tx.publish(harness.rewrite(tx, "p/g-0")).is_committed
    harness.clock = SystemClock()  # type: ignore[assignment]
    Savepoints(harness.open().coordinator).create(tx.instant)
    assert harness.cleaner(commits__retained=1).run().instants
    assert harness.storage.list_names(".hoodie/.hudi_locks/staging") == []
