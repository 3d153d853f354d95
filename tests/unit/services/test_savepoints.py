"""What a savepoint keeps stays, and a table goes back to it, whoever dies on the way."""

from __future__ import annotations

from typing import Any

import pytest
from mortal_storage import MortalStorage
from service_harness import ServiceHarness
from transaction_harness import Killed, stop_at

from hudi_locks.errors import SavepointRefused, WriteAborted
from hudi_locks.format import Instant, RestoreMetadata, RestorePlan, SavepointMetadata, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import Restorer, Savepoints
from hudi_locks.table import latest_base_files
from hudi_locks.timeline import LAYOUT_2, read_instant
from hudi_locks.transaction import Outcome, StopPoint


def savepoints(harness: ServiceHarness, **how: Any) -> Savepoints:
    return Savepoints(harness.open(**how).coordinator)


def restorer(harness: ServiceHarness, **how: Any) -> Restorer:
    return Restorer(harness.open(**how).coordinator)


def shown(harness: ServiceHarness) -> list[str]:
    return [
        f"{file.partition}/{file.file_id}@{file.instant}"
        for file in latest_base_files(harness.storage, harness.timeline())
    ]


def test_a_savepoint_is_written_as_hudi_does(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0", "q/h-0")
    second = harness.put("p/g-0")
    made = savepoints(harness).create(user="me", comments="before the change")
    timeline = harness.timeline()
    assert (made.instant, made.user, made.comments, made.files) == (second, "me", "before the change", 2)
    instant = Instant(second, "savepoint", State.COMPLETED, made.completion_time)
    kept = SavepointMetadata.decode(read_instant(harness.storage, timeline, instant=instant), "it")
    assert kept.files == {"p": (f"g-0_0-0-0_{second}.parquet",), "q": (f"h-0_0-0-0_{first}.parquet",)}
    assert harness.storage.read(LAYOUT_2.path(instant.as_inflight())) == b""
    assert timeline.get(second) == Instant(second, "commit", State.COMPLETED, timeline.get(second).completion)  # type: ignore[union-attr]
    assert savepoints(harness).list() == [made]
    assert savepoints(harness).create(second) == made


def test_a_clean_leaves_what_a_savepoint_keeps_until_it_is_deleted(harness: ServiceHarness) -> None:
    times = [harness.put("p/g-0", "q/h-0") for _ in range(2)]
    savepoints(harness).create(times[0])
    harness.clock.advance(1)
    times += [harness.put("p/g-0", "q/h-0") for _ in range(4)]
    harness.cleaner(commits__retained=1).run()
    assert [f"p/g-0@{times[0]}", f"q/h-0@{times[0]}"] == [file for file in harness.files() if times[0] in file]
    assert savepoints(harness).delete(times[0])
    assert not savepoints(harness).delete(times[0])
    harness.cleaner(commits__retained=1).run(everywhere=False)
    assert harness.files() == [f"{group}@{time}" for group in ("p/g-0", "q/h-0") for time in times[-2:]]


def test_a_write_that_is_unknown_or_pending_cannot_be_kept(harness: ServiceHarness) -> None:
    with pytest.raises(SavepointRefused, match="no completed write"):
        savepoints(harness).create()
    harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    for instant in (tx.instant, "20200101000000000"):
        with pytest.raises(SavepointRefused, match=instant):
            savepoints(harness).create(instant)
    tx.abort("enough")


def test_what_was_cleaned_cannot_be_kept(harness: ServiceHarness) -> None:
    first, *_ = [harness.put("p/g-0") for _ in range(4)]
    harness.cleaner(commits__retained=1).run()
    with pytest.raises(SavepointRefused, match="a clean kept only"):
        savepoints(harness).create(first)


def test_what_a_clean_by_versions_removed_cannot_be_kept(harness: ServiceHarness) -> None:
    times = [harness.put("p/g-0", "q/h-0") for _ in range(2)]
    harness.put("p/g-0")
    harness.put("q/k-0", replaces=("q/h-0",))
    harness.cleaner(policy="KEEP_LATEST_FILE_VERSIONS", fileversions__retained=1).run()
    with pytest.raises(SavepointRefused, match=r"p/g-0|q/h-0"):
        savepoints(harness).create(times[1])
    assert savepoints(harness).create().files == 2


@pytest.mark.parametrize("point", [StopPoint.SERVICE_PLANNED, StopPoint.SERVICE_CLAIMED, StopPoint.SERVICE_DONE])
def test_a_savepoint_beside_a_clean_is_whole_or_refused(harness: ServiceHarness, point: StopPoint) -> None:
    first, *_ = [harness.put("p/g-0") for _ in range(4)]
    refused: list[SavepointRefused] = []

    def save() -> None:
        try:
            savepoints(harness).create(first)
        except SavepointRefused as error:
            refused.append(error)

    harness.cleaner(trace=stop_at(point, save), commits__retained=1).run()
    assert bool(refused) == (point is not StopPoint.SERVICE_PLANNED)
    assert (f"p/g-0@{first}" in harness.files()) == (not refused)


@pytest.mark.parametrize("life", range(8))
def test_a_savepoint_is_there_or_not_wherever_its_maker_dies(harness: ServiceHarness, life: int) -> None:
    first = harness.put("p/g-0")
    try:
        savepoints(harness, storage=MortalStorage(harness.storage, life)).create()
    except Killed:
        harness.put("p/g-0")
    made = savepoints(harness).create(first)
    assert savepoints(harness).list() == [made]
    try:
        savepoints(harness, storage=MortalStorage(harness.storage, life)).delete(first)
    except Killed:
        harness.put("p/g-0")
    savepoints(harness).delete(first)
    assert savepoints(harness).list() == []
    assert harness.timeline().is_completed(first)


def test_a_savepoint_that_a_jvm_job_deleted_does_not_come_back(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    savepoints(harness).create()
    for name in [name for name in harness.names(LAYOUT_2.folder) if "savepoint" in name]:
        harness.storage.delete(f"{LAYOUT_2.folder}/{name}")
    harness.put("p/g-0")
    assert savepoints(harness).list() == []
    assert harness.timeline().is_completed(first)


def test_savepoints_are_no_foreign_writers(harness: ServiceHarness) -> None:
    harness.foreign = True
    harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    made = savepoints(harness).create()
    savepoints(harness).delete(made.instant)
    assert tx.publish(harness.rewrite(tx, "p/g-0")).is_committed
    assert [claim.kind for claim in harness.claims()].count(ClaimKind.VOID) == 0


def test_a_savepoint_hides_no_conflict_with_the_write_that_it_keeps(harness: ServiceHarness) -> None:
    harness.foreign = True
    harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.rewrite(tx, "p/g-0")
    harness.foreign_commit("20231114221327000", "20231114221327001", "g-0")
    savepoints(harness).create("20231114221327000")
    result = tx.publish(metadata)
    assert result.outcome is Outcome.ABORTED
    assert result.conflict is not None


def test_a_table_goes_back_to_a_savepoint(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0", "q/h-0")
    before = shown(harness)
    savepoints(harness).create(first)
    harness.clock.advance(1)
    later = [harness.put("p/g-0"), harness.put("r/k-0"), harness.put("q/n-0", replaces=("q/h-0",))]
    savepoints(harness).create(later[0])
    harness.clock.advance(1)
    result = restorer(harness).run(first)
    assert (result.savepoint, result.undone, result.deleted) == (first, tuple(reversed(later)), 3)
    assert shown(harness) == before
    assert harness.files() == before
    assert [point.instant for point in savepoints(harness).list()] == [first]
    following = harness.put("p/g-0")
    assert following > result.instant > later[-1]
    assert f"p/g-0@{following}" in shown(harness)


def test_the_answer_to_a_publish_stands_though_a_restore_undid_the_write(harness: ServiceHarness) -> None:
    """Whoever asks wants to know whether to write once more: that would bring back what the restore took away."""
    first, second = harness.put("p/g-0"), harness.put("p/g-0")
    assert restorer(harness).run(first).undone == (second,)
    assert harness.timeline().get(second) is None
    assert harness.open().resolve(second) is Outcome.COMMITTED


def test_a_restore_is_written_as_hudi_does(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    later = harness.put("p/g-0")
    result = restorer(harness).run(first)
    timeline = harness.timeline()
    done = timeline.completed(("restore",))[0]
    requested = harness.storage.read(LAYOUT_2.path(Instant(result.instant, "restore", State.REQUESTED))) or b""
    assert RestorePlan.decode(requested, "it") == RestorePlan(first, ((later, "commit"),))
    assert harness.storage.read(LAYOUT_2.path(Instant(result.instant, "restore", State.INFLIGHT))) == b""
    metadata = RestoreMetadata.decode(read_instant(harness.storage, timeline, instant=done), "it")
    assert metadata.instants == ((later, "commit"),)
    (rollback,) = metadata.rollbacks[later]
    assert rollback.partitions["p"].deleted == (harness.storage.address(f"p/g-0_0-0-0_{later}.parquet"),)


def test_a_write_under_way_meets_a_conflict_and_leaves_nothing(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.rewrite(tx, "q/h-0")
    result = restorer(harness).run(first)
    assert result.undone == (tx.instant,)
    assert tx.publish(metadata).outcome is Outcome.ABORTED
    assert harness.files() == [f"p/g-0@{first}"]


def test_a_write_that_was_begun_before_the_savepoint_and_completed_after_it_is_undone(harness: ServiceHarness) -> None:
    harness.put("p/g-0")
    slow = harness.open().begin("commit", "UPSERT")
    first = harness.put("q/h-0")
    savepoints(harness).create(first)
    harness.clock.advance(1)
    assert slow.publish(harness.rewrite(slow, "p/g-0")).is_committed
    assert restorer(harness).run(first).undone == (slow.instant,)


@pytest.mark.parametrize("point", [StopPoint.SERVICE_CLAIMED, StopPoint.RESTORE_UNDONE, StopPoint.SERVICE_DONE])
def test_nobody_begins_while_a_restore_is_pending(harness: ServiceHarness, point: StopPoint) -> None:
    first = harness.put("p/g-0")
    savepoints(harness).create(first)
    harness.clock.advance(1)
    harness.put("p/g-0")
    tried: list[bool] = []

    def try_to_write() -> None:
        with pytest.raises(WriteAborted, match="restore"):
            harness.open().begin("commit", "UPSERT")
        tried.append(True)

    restorer(harness, trace=stop_at(point, try_to_write)).run(first)
    assert tried
    assert harness.put("p/g-0") in shown(harness)[0]


@pytest.mark.parametrize("life", range(34))
def test_a_restore_that_died_is_finished_by_repeating_it(harness: ServiceHarness, life: int) -> None:
    first = harness.put("p/g-0", "q/h-0")
    before = shown(harness)
    later = [harness.put("p/g-0"), harness.put("q/h-0")]
    try:
        restorer(harness, storage=MortalStorage(harness.storage, life)).run(first)
    except Killed:
        harness.clock.advance(300)
    restorer(harness).run(first)
    assert (shown(harness), harness.files()) == (before, before)
    assert harness.timeline().pending() == ()
    assert not any(harness.timeline().get(time) for time in later)
    assert f"p/g-0@{harness.put('p/g-0')}" in shown(harness)


def test_another_restore_waits_for_the_one_that_died(harness: ServiceHarness) -> None:
    first, second = harness.put("p/g-0"), harness.put("p/g-0")
    savepoints(harness).create(second)
    harness.clock.advance(1)
    harness.put("p/g-0")

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        restorer(harness, trace=stop_at(StopPoint.SERVICE_INFLIGHT, die)).run(first)
    with pytest.raises(SavepointRefused, match=f"to {first} is not finished"):
        restorer(harness).run(second)
    with pytest.raises(SavepointRefused, match="is pending"):
        savepoints(harness).delete(first)


@pytest.mark.parametrize("point", [StopPoint.PUBLISH_LOCKED, StopPoint.PUBLISH_CHECKED, StopPoint.PUBLISH_CLAIMED])
def test_of_a_publish_and_a_restore_without_a_lock_the_claims_decide(harness: ServiceHarness, point: StopPoint) -> None:
    first = harness.put("p/g-0")
    results: list[tuple[str, ...]] = []

    def restore() -> None:
        results.append(restorer(harness).run(first).undone)

    tx = harness.open(trace=stop_at(point, restore)).begin("commit", "UPSERT")
    tx.publish(harness.rewrite(tx, "p/g-0"))
    assert results == [(tx.instant,)]
    assert shown(harness) == harness.files() == [f"p/g-0@{first}"]


def test_a_clean_does_not_run_into_a_restore(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    savepoints(harness).create(first)
    harness.clock.advance(1)
    for _ in range(3):
        harness.put("p/g-0")

    def restore() -> None:
        restorer(harness).run(first)

    harness.cleaner(trace=stop_at(StopPoint.SERVICE_PLANNED, restore), commits__retained=1).run()
    assert harness.timeline().completed(("clean",)) == ()
    assert shown(harness) == [f"p/g-0@{first}"]
