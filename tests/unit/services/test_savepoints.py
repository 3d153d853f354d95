"""What a savepoint keeps stays, and a table goes back to it, whoever dies on the way."""

from __future__ import annotations

from typing import Any

import pytest
from mortal_storage import MortalStorage
from service_desk import ServiceDesk
from transaction_desk import Killed

from hudi_locks.errors import SavepointRefused, WriteAborted
from hudi_locks.format import Instant, RestoreMetadata, RestorePlan, SavepointMetadata, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import Restorer, Savepoints
from hudi_locks.table import latest_base_files
from hudi_locks.timeline import LAYOUT_2, read_instant
from hudi_locks.transaction import Outcome, StopPoint


def savepoints(desk: ServiceDesk, **how: Any) -> Savepoints:
    return Savepoints(desk.open(**how).coordinator)


def restorer(desk: ServiceDesk, **how: Any) -> Restorer:
    return Restorer(desk.open(**how).coordinator)


def shown(desk: ServiceDesk) -> list[str]:
    return [
        f"{file.partition}/{file.file_id}@{file.instant}" for file in latest_base_files(desk.storage, desk.timeline())
    ]


def stop_at(point: StopPoint, action: Any) -> Any:
    left = [action]

    def trace(reached: StopPoint) -> None:
        if reached is point and left:
            left.pop()()

    return trace


def test_a_savepoint_is_written_as_hudi_does(desk: ServiceDesk) -> None:
    first = desk.put("p/g-0", "q/h-0")
    second = desk.put("p/g-0")
    made = savepoints(desk).create(user="me", comments="before the change")
    timeline = desk.timeline()
    assert (made.instant, made.user, made.comments, made.files) == (second, "me", "before the change", 2)
    instant = Instant(second, "savepoint", State.COMPLETED, made.completion_time)
    kept = SavepointMetadata.decode(read_instant(desk.storage, timeline, instant=instant), "it")
    assert kept.files == {"p": (f"g-0_0-0-0_{second}.parquet",), "q": (f"h-0_0-0-0_{first}.parquet",)}
    assert desk.storage.read(LAYOUT_2.path(instant.as_inflight())) == b""
    assert timeline.get(second) == Instant(second, "commit", State.COMPLETED, timeline.get(second).completion)  # type: ignore[union-attr]
    assert savepoints(desk).list() == [made]
    assert savepoints(desk).create(second) == made


def test_a_clean_leaves_what_a_savepoint_keeps_until_it_is_deleted(desk: ServiceDesk) -> None:
    times = [desk.put("p/g-0", "q/h-0") for _ in range(2)]
    savepoints(desk).create(times[0])
    desk.clock.advance(1)
    times += [desk.put("p/g-0", "q/h-0") for _ in range(4)]
    desk.cleaner(commits__retained=1).run()
    assert [f"p/g-0@{times[0]}", f"q/h-0@{times[0]}"] == [file for file in desk.files() if times[0] in file]
    assert savepoints(desk).delete(times[0])
    assert not savepoints(desk).delete(times[0])
    desk.cleaner(commits__retained=1).run(everywhere=False)
    assert desk.files() == [f"{group}@{time}" for group in ("p/g-0", "q/h-0") for time in times[-2:]]


def test_a_write_that_is_unknown_or_pending_cannot_be_kept(desk: ServiceDesk) -> None:
    with pytest.raises(SavepointRefused, match="no completed write"):
        savepoints(desk).create()
    desk.put("p/g-0")
    tx = desk.open().begin("commit", "UPSERT")
    for instant in (tx.instant, "20200101000000000"):
        with pytest.raises(SavepointRefused, match=instant):
            savepoints(desk).create(instant)
    tx.abort("enough")


def test_what_was_cleaned_cannot_be_kept(desk: ServiceDesk) -> None:
    first, *_ = [desk.put("p/g-0") for _ in range(4)]
    desk.cleaner(commits__retained=1).run()
    with pytest.raises(SavepointRefused, match="a clean kept only"):
        savepoints(desk).create(first)


def test_what_a_clean_by_versions_removed_cannot_be_kept(desk: ServiceDesk) -> None:
    times = [desk.put("p/g-0", "q/h-0") for _ in range(2)]
    desk.put("p/g-0")
    desk.put("q/k-0", replaces=("q/h-0",))
    desk.cleaner(policy="KEEP_LATEST_FILE_VERSIONS", fileversions__retained=1).run()
    with pytest.raises(SavepointRefused, match=r"p/g-0|q/h-0"):
        savepoints(desk).create(times[1])
    assert savepoints(desk).create().files == 2


@pytest.mark.parametrize("point", [StopPoint.SERVICE_PLANNED, StopPoint.SERVICE_CLAIMED, StopPoint.SERVICE_DONE])
def test_a_savepoint_beside_a_clean_is_whole_or_refused(desk: ServiceDesk, point: StopPoint) -> None:
    first, *_ = [desk.put("p/g-0") for _ in range(4)]
    refused: list[SavepointRefused] = []

    def save() -> None:
        try:
            savepoints(desk).create(first)
        except SavepointRefused as error:
            refused.append(error)

    desk.cleaner(trace=stop_at(point, save), commits__retained=1).run()
    assert bool(refused) == (point is not StopPoint.SERVICE_PLANNED)
    assert (f"p/g-0@{first}" in desk.files()) == (not refused)


@pytest.mark.parametrize("life", range(8))
def test_a_savepoint_is_there_or_not_wherever_its_maker_dies(desk: ServiceDesk, life: int) -> None:
    first = desk.put("p/g-0")
    try:
        savepoints(desk, storage=MortalStorage(desk.storage, life)).create()
    except Killed:
        desk.put("p/g-0")
    made = savepoints(desk).create(first)
    assert savepoints(desk).list() == [made]
    try:
        savepoints(desk, storage=MortalStorage(desk.storage, life)).delete(first)
    except Killed:
        desk.put("p/g-0")
    savepoints(desk).delete(first)
    assert savepoints(desk).list() == []
    assert desk.timeline().is_completed(first)


def test_a_savepoint_that_a_jvm_job_deleted_does_not_come_back(desk: ServiceDesk) -> None:
    first = desk.put("p/g-0")
    savepoints(desk).create()
    for name in [name for name in desk.names(LAYOUT_2.folder) if "savepoint" in name]:
        desk.storage.delete(f"{LAYOUT_2.folder}/{name}")
    desk.put("p/g-0")
    assert savepoints(desk).list() == []
    assert desk.timeline().is_completed(first)


def test_savepoints_are_no_foreign_writers(desk: ServiceDesk) -> None:
    desk.foreign = True
    desk.put("p/g-0")
    tx = desk.open().begin("commit", "UPSERT")
    made = savepoints(desk).create()
    savepoints(desk).delete(made.instant)
    assert tx.publish(desk.rewrite(tx, "p/g-0")).is_committed
    assert [claim.kind for claim in desk.claims()].count(ClaimKind.VOID) == 0


def test_a_savepoint_hides_no_conflict_with_the_write_that_it_keeps(desk: ServiceDesk) -> None:
    desk.foreign = True
    desk.put("p/g-0")
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.rewrite(tx, "p/g-0")
    desk.foreign_commit("20231114221327000", "20231114221327001", "g-0")
    savepoints(desk).create("20231114221327000")
    result = tx.publish(metadata)
    assert result.outcome is Outcome.ABORTED
    assert result.conflict is not None


def test_a_table_goes_back_to_a_savepoint(desk: ServiceDesk) -> None:
    first = desk.put("p/g-0", "q/h-0")
    before = shown(desk)
    savepoints(desk).create(first)
    desk.clock.advance(1)
    later = [desk.put("p/g-0"), desk.put("r/k-0"), desk.put("q/n-0", replaces=("q/h-0",))]
    savepoints(desk).create(later[0])
    desk.clock.advance(1)
    result = restorer(desk).run(first)
    assert (result.savepoint, result.undone, result.deleted) == (first, tuple(reversed(later)), 3)
    assert shown(desk) == before
    assert desk.files() == before
    assert [point.instant for point in savepoints(desk).list()] == [first]
    following = desk.put("p/g-0")
    assert following > result.instant > later[-1]
    assert f"p/g-0@{following}" in shown(desk)


def test_the_answer_to_a_publish_stands_though_a_restore_undid_the_write(desk: ServiceDesk) -> None:
    """Whoever asks wants to know whether to write once more: that would bring back what the restore took away."""
    first, second = desk.put("p/g-0"), desk.put("p/g-0")
    assert restorer(desk).run(first).undone == (second,)
    assert desk.timeline().get(second) is None
    assert desk.open().resolve(second) is Outcome.COMMITTED


def test_a_restore_is_written_as_hudi_does(desk: ServiceDesk) -> None:
    first = desk.put("p/g-0")
    later = desk.put("p/g-0")
    result = restorer(desk).run(first)
    timeline = desk.timeline()
    done = timeline.completed(("restore",))[0]
    requested = desk.storage.read(LAYOUT_2.path(Instant(result.instant, "restore", State.REQUESTED))) or b""
    assert RestorePlan.decode(requested, "it") == RestorePlan(first, ((later, "commit"),))
    assert desk.storage.read(LAYOUT_2.path(Instant(result.instant, "restore", State.INFLIGHT))) == b""
    metadata = RestoreMetadata.decode(read_instant(desk.storage, timeline, instant=done), "it")
    assert metadata.instants == ((later, "commit"),)
    (rollback,) = metadata.rollbacks[later]
    assert rollback.partitions["p"].deleted == (desk.storage.address(f"p/g-0_0-0-0_{later}.parquet"),)


def test_a_write_under_way_meets_a_conflict_and_leaves_nothing(desk: ServiceDesk) -> None:
    first = desk.put("p/g-0")
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.rewrite(tx, "q/h-0")
    result = restorer(desk).run(first)
    assert result.undone == (tx.instant,)
    assert tx.publish(metadata).outcome is Outcome.ABORTED
    assert desk.files() == [f"p/g-0@{first}"]


def test_a_write_that_was_begun_before_the_savepoint_and_completed_after_it_is_undone(desk: ServiceDesk) -> None:
    desk.put("p/g-0")
    slow = desk.open().begin("commit", "UPSERT")
    first = desk.put("q/h-0")
    savepoints(desk).create(first)
    desk.clock.advance(1)
    assert slow.publish(desk.rewrite(slow, "p/g-0")).is_committed
    assert restorer(desk).run(first).undone == (slow.instant,)


@pytest.mark.parametrize("point", [StopPoint.SERVICE_CLAIMED, StopPoint.RESTORE_UNDONE, StopPoint.SERVICE_DONE])
def test_nobody_begins_while_a_restore_is_pending(desk: ServiceDesk, point: StopPoint) -> None:
    first = desk.put("p/g-0")
    savepoints(desk).create(first)
    desk.clock.advance(1)
    desk.put("p/g-0")
    tried: list[bool] = []

    def try_to_write() -> None:
        with pytest.raises(WriteAborted, match="restore"):
            desk.open().begin("commit", "UPSERT")
        tried.append(True)

    restorer(desk, trace=stop_at(point, try_to_write)).run(first)
    assert tried
    assert desk.put("p/g-0") in shown(desk)[0]


@pytest.mark.parametrize("life", range(34))
def test_a_restore_that_died_is_finished_by_repeating_it(desk: ServiceDesk, life: int) -> None:
    first = desk.put("p/g-0", "q/h-0")
    before = shown(desk)
    later = [desk.put("p/g-0"), desk.put("q/h-0")]
    try:
        restorer(desk, storage=MortalStorage(desk.storage, life)).run(first)
    except Killed:
        desk.clock.advance(300)
    restorer(desk).run(first)
    assert (shown(desk), desk.files()) == (before, before)
    assert desk.timeline().pending() == ()
    assert not any(desk.timeline().get(time) for time in later)
    assert f"p/g-0@{desk.put('p/g-0')}" in shown(desk)


def test_another_restore_waits_for_the_one_that_died(desk: ServiceDesk) -> None:
    first, second = desk.put("p/g-0"), desk.put("p/g-0")
    savepoints(desk).create(second)
    desk.clock.advance(1)
    desk.put("p/g-0")

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        restorer(desk, trace=stop_at(StopPoint.SERVICE_INFLIGHT, die)).run(first)
    with pytest.raises(SavepointRefused, match=f"to {first} is not finished"):
        restorer(desk).run(second)
    with pytest.raises(SavepointRefused, match="is pending"):
        savepoints(desk).delete(first)


@pytest.mark.parametrize("point", [StopPoint.PUBLISH_LOCKED, StopPoint.PUBLISH_CHECKED, StopPoint.PUBLISH_CLAIMED])
def test_of_a_publish_and_a_restore_without_a_lock_the_claims_decide(desk: ServiceDesk, point: StopPoint) -> None:
    first = desk.put("p/g-0")
    results: list[tuple[str, ...]] = []

    def restore() -> None:
        results.append(restorer(desk).run(first).undone)

    tx = desk.open(trace=stop_at(point, restore)).begin("commit", "UPSERT")
    tx.publish(desk.rewrite(tx, "p/g-0"))
    assert results == [(tx.instant,)]
    assert shown(desk) == desk.files() == [f"p/g-0@{first}"]


def test_a_clean_does_not_run_into_a_restore(desk: ServiceDesk) -> None:
    first = desk.put("p/g-0")
    savepoints(desk).create(first)
    desk.clock.advance(1)
    for _ in range(3):
        desk.put("p/g-0")

    def restore() -> None:
        restorer(desk).run(first)

    desk.cleaner(trace=stop_at(StopPoint.SERVICE_PLANNED, restore), commits__retained=1).run()
    assert desk.timeline().completed(("clean",)) == ()
    assert shown(desk) == [f"p/g-0@{first}"]
