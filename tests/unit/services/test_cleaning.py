"""A clean removes what nobody can read any more, whoever dies on the way."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from service_harness import ServiceHarness
from transaction_harness import FailingStorage, Killed, LosingLock, stop_at

from hudi_locks.errors import StorageError
from hudi_locks.format import CleanMetadata, CleanPlan, Instant, SavepointMetadata, State, add_ms
from hudi_locks.format.claim import ClaimKind
from hudi_locks.timeline import LAYOUT_2, read_instant
from hudi_locks.transaction import StopPoint

POINTS = [point for point in StopPoint if point.name.startswith("SERVICE_")]


def last_clean(harness: ServiceHarness) -> CleanMetadata:
    timeline = harness.timeline()
    clean = timeline.completed(("clean",))[-1]
    return CleanMetadata.decode(read_instant(harness.storage, timeline, instant=clean), "it")


def test_the_last_commits_stay_readable_and_what_is_older_goes(harness: ServiceHarness) -> None:
    times = [harness.put("p/g-0", *(["q/h-0"] if n < 2 else [])) for n in range(5)]
    result = harness.cleaner(commits__retained=2).run()
    assert harness.files() == [*(f"p/g-0@{time}" for time in times[2:]), f"q/h-0@{times[1]}"]
    assert (result.deleted, result.earliest_retained) == (3, times[3])
    assert harness.cleaner(commits__retained=2).run().instants == ()


def test_a_clean_leaves_on_the_timeline_what_the_jvm_goes_on_from(harness: ServiceHarness) -> None:
    times = [harness.put("p/g-0") for _ in range(3)]
    done = harness.cleaner(commits__retained=1).run().instants[0]
    requested = harness.storage.read(LAYOUT_2.path(Instant(done, "clean", State.REQUESTED)))
    inflight = harness.storage.read(LAYOUT_2.path(Instant(done, "clean", State.INFLIGHT)))
    plan = CleanPlan.decode(requested or b"", "it")
    assert requested == inflight
    assert plan.earliest == Instant(times[2], "commit", State.COMPLETED)
    assert (plan.last_completed, plan.policy) == (times[2], "KEEP_LATEST_COMMITS")
    assert plan.files == {"p": (harness.storage.address(f"p/g-0_0-0-0_{times[0]}.parquet"),)}
    metadata = last_clean(harness)
    assert (metadata.earliest, metadata.last_completed, metadata.deleted) == (times[2], times[2], 1)
    assert metadata.partitions["p"].deleted == (f"g-0_0-0-0_{times[0]}.parquet",)


def test_hours_keep_what_was_shown_in_that_time(harness: ServiceHarness) -> None:
    times = []
    for _ in range(4):
        times.append(harness.put("p/g-0"))
        harness.clock.advance(3600)
    harness.cleaner(policy="KEEP_LATEST_BY_HOURS", hoodie__clean__hours__retained=2).run()
    assert harness.files() == [f"p/g-0@{time}" for time in times[2:]]


def test_versions_are_counted_for_each_file_group(harness: ServiceHarness) -> None:
    times = [harness.put("p/g-0", *(["p/h-0"] if n == 0 else [])) for n in range(4)]
    harness.cleaner(policy="keep_latest_file_versions", fileversions__retained=2).run()
    assert harness.files() == [*(f"p/g-0@{time}" for time in times[2:]), f"p/h-0@{times[0]}"]
    assert last_clean(harness).earliest == ""


def test_replaced_file_groups_go_whole_once_no_kept_commit_shows_them(harness: ServiceHarness) -> None:
    old = harness.put("p/g-0", "q/k-0")
    harness.put("p/h-0", replaces=("p/g-0",))
    harness.cleaner(commits__retained=1).run()
    assert f"p/g-0@{old}" in harness.files()
    harness.put("q/k-0")
    harness.cleaner(commits__retained=1).run()
    assert f"p/g-0@{old}" not in harness.files()
    assert f"q/k-0@{old}" in harness.files()


def test_the_snapshot_of_a_running_write_stays(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    running = harness.open().begin("commit", "UPSERT")
    for _ in range(4):
        harness.put("p/g-0")
    assert harness.cleaner(commits__retained=1).run().deleted == 0
    assert f"p/g-0@{first}" in harness.files()
    running.abort("enough")
    assert harness.cleaner(commits__retained=1).run().deleted == 3


def test_versions_that_a_running_write_reads_are_no_surplus(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    slow = harness.open().begin("commit", "UPSERT")
    harness.open().begin("commit", "UPSERT")
    assert slow.publish(harness.rewrite(slow, "p/g-0")).is_committed
    harness.cleaner(policy="KEEP_LATEST_FILE_VERSIONS", fileversions__retained=1).run()
    assert f"p/g-0@{first}" in harness.files()


def test_a_write_that_was_begun_before_another_and_completed_after_it_takes_nothing_from_its_snapshot(
    harness: ServiceHarness,
) -> None:
    first = harness.put("p/g-0")
    slow = harness.open().begin("commit", "UPSERT")
    reader = harness.open().begin("commit", "UPSERT")
    assert slow.publish(harness.rewrite(slow, "p/g-0")).is_committed
    harness.put("q/k-0")
    harness.cleaner(commits__retained=1).run()
    assert f"p/g-0@{first}" in harness.files()
    assert Instant(slow.instant, "commit", State.INFLIGHT) in reader.timeline.instants


def test_files_of_failed_writes_are_no_versions(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    harness.storage.replace("p/g-0_0-0-0_20991231000000000.parquet", b"stray")
    harness.put("q/k-0")
    harness.cleaner(commits__retained=1, incremental__enabled="false").run()
    assert f"p/g-0@{first}" in harness.files()


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.value)
def test_a_cleaner_may_die_anywhere_and_the_next_one_finishes(harness: ServiceHarness, point: StopPoint) -> None:
    times = [harness.put("p/g-0") for _ in range(3)]
    dying = FailingStorage(harness.storage, lambda verb, _: verb == "touch" and died.is_set)
    died = type("Died", (), {"is_set": False})()
    with pytest.raises(Killed):
        harness.cleaner(trace=stop_at(point), storage=dying, commits__retained=1).run()
    died.is_set = True
    harness.clock.advance(300)
    harness.cleaner(commits__retained=1).run()
    assert harness.files() == [f"p/g-0@{time}" for time in times[1:]]
    assert harness.timeline().pending() == ()
    assert [last_clean(harness).deleted, len(harness.timeline().completed(("clean",)))] == [1, 1]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.value)
def test_two_cleaners_at_once_are_harmless(harness: ServiceHarness, point: StopPoint) -> None:
    times = [harness.put("p/g-0") for _ in range(3)]

    def clean() -> None:
        harness.cleaner(commits__retained=1).run()

    harness.cleaner(trace=stop_at(point, clean), commits__retained=1).run()
    assert harness.files() == [f"p/g-0@{time}" for time in times[1:]]
    assert harness.timeline().pending() == ()


def test_a_plan_is_made_anew_when_a_savepoint_came_in_between(harness: ServiceHarness) -> None:
    first, _, third = (harness.put("p/g-0") for _ in range(3))

    def save() -> None:
        kept = SavepointMetadata("me", 1, "why", {"p": (f"g-0_0-0-0_{first}.parquet",)})
        harness.foreign_instant(first, "savepoint", add_ms(third, 2), kept.encode())

    harness.cleaner(trace=stop_at(StopPoint.SERVICE_PLANNED, save), commits__retained=1).run()
    assert f"p/g-0@{first}" in harness.files()


def test_a_plan_is_made_anew_when_a_commit_was_archived_before_it_was_read(
    harness: ServiceHarness, monkeypatch: Any
) -> None:
    for _ in range(3):
        harness.put("p/g-0")
    harness.cleaner(commits__retained=1).run()
    times = [harness.put("p/g-0") for _ in range(4)]
    read, gone = harness.storage.read, list[str]()

    def read_late(path: str) -> bytes | None:
        name = path.rpartition("/")[2]
        if not gone and path.startswith(LAYOUT_2.folder) and name.endswith(".commit"):
            gone.extend(
                f"{LAYOUT_2.folder}/{file}" for file in harness.names(LAYOUT_2.folder) if file[:17] == name[:17]
            )
            for file in gone:
                harness.storage.delete(file)
        return read(path)

    monkeypatch.setattr(harness.storage, "read", read_late)
    harness.cleaner(commits__retained=1).run()
    assert gone
    assert f"p/g-0@{times[3]}" in harness.files()
    assert len(harness.timeline().completed(("clean",))) == 2


@pytest.mark.parametrize("is_incremental", [True, False])
def test_a_partition_that_did_not_change_is_not_looked_into_again_unless_asked_to(
    harness: ServiceHarness, monkeypatch: Any, is_incremental: bool
) -> None:
    for _ in range(3):
        harness.put("p/g-0", "q/h-0")
    harness.cleaner(commits__retained=1).run()
    for _ in range(3):
        harness.put("p/g-0")
    assert harness.cleaner(commits__retained=1).run().deleted == 4
    for _ in range(2):
        harness.put("p/g-0")
    asked: list[str] = []
    listing = harness.storage.list

    def listen(folder: str) -> Any:
        asked.append(folder)
        return listing(folder)

    monkeypatch.setattr(harness.storage, "list", listen)
    cleaner = harness.cleaner(commits__retained=1, hoodie__clean__incremental__enabled=is_incremental)
    assert cleaner.run().deleted == 2
    assert "p" in asked
    assert {"", "q"} & set(asked) == (set() if is_incremental else {"", "q"})


@pytest.mark.parametrize(("threads", "is_side_by_side"), [(1, False), (8, True)])
def test_files_are_removed_side_by_side_by_as_many_threads_as_asked(
    harness: ServiceHarness, monkeypatch: Any, threads: int, is_side_by_side: bool
) -> None:
    for _ in range(4):
        harness.put("p/g-0")
    delete, workers = harness.storage.delete, set[threading.Thread]()

    def watch(path: str) -> bool:
        if path.endswith(".parquet"):
            workers.add(threading.current_thread())
        return delete(path)

    monkeypatch.setattr(harness.storage, "delete", watch)
    assert harness.cleaner(commits__retained=1, hoodie__clean__parallelism=threads).run().deleted == 2
    assert (threading.current_thread() not in workers) is is_side_by_side


def test_a_clean_that_cannot_remove_a_file_is_finished_later(harness: ServiceHarness, monkeypatch: Any) -> None:
    for _ in range(3):
        harness.put("p/g-0")

    def refuse(path: str) -> bool:
        raise StorageError(f"cannot delete {path}", path=path)

    with monkeypatch.context() as patch:
        patch.setattr(harness.storage, "delete", refuse)
        with pytest.raises(StorageError, match="g-0"):
            harness.cleaner(commits__retained=1).run()
    assert len(harness.timeline().pending(("clean",))) == 1
    harness.clock.advance(300)
    assert harness.cleaner(commits__retained=1).run().deleted == 1


def test_a_jvm_cleaner_at_work_is_not_disturbed_and_one_that_died_is_finished(harness: ServiceHarness) -> None:
    times = [harness.put("p/g-0") for _ in range(3)]
    plan = CleanPlan(None, times[2], "KEEP_LATEST_COMMITS", {"p": (f"file:/x/p/g-0_0-0-0_{times[0]}.parquet",)})
    instant = Instant("20231114221959000", "clean", State.REQUESTED)
    harness.storage.replace(LAYOUT_2.path(instant), plan.encode())
    harness.cleaner(commits__retained=9).run()
    assert len(harness.timeline().pending(("clean",))) == 1
    harness.clock.advance(3700)
    assert harness.cleaner(commits__retained=9).run().instants == (instant.requested,)
    assert harness.files() == [f"p/g-0@{time}" for time in times[1:]]


def test_a_clean_holds_the_lock_for_its_decisions_only(harness: ServiceHarness) -> None:
    locks = LosingLock()
    for _ in range(3):
        harness.put("p/g-0")
    held = []
    harness.cleaner(trace=lambda point: held.append((point, locks.holds)), locks=locks, commits__retained=1).run()
    assert (StopPoint.SERVICE_PLANNED, 0) in held
    assert (StopPoint.SERVICE_CLAIMED, 1) in held
    assert (StopPoint.SERVICE_DONE, 0) in held
    assert (StopPoint.SERVICE_COMPLETED, 1) in held


def test_a_clean_is_no_foreign_writer_to_those_who_write_meanwhile(harness: ServiceHarness) -> None:
    harness.foreign = True
    for _ in range(3):
        harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    harness.cleaner(commits__retained=1).run()
    assert tx.publish(harness.rewrite(tx, "p/g-0")).is_committed
    assert [claim.kind for claim in harness.claims()].count(ClaimKind.VOID) == 0


@pytest.mark.parametrize("point", [StopPoint.PUBLISH_CLAIMED, StopPoint.PUBLISH_LOOKED, StopPoint.PUBLISH_COMPLETED])
def test_a_clean_sees_to_a_publish_before_it_comes_to_the_timeline(harness: ServiceHarness, point: StopPoint) -> None:
    harness.foreign = True
    for _ in range(3):
        harness.put("p/g-0")

    def clean() -> None:
        harness.cleaner(commits__retained=1).run()

    tx = harness.open(trace=stop_at(point, clean)).begin("commit", "UPSERT")
    assert tx.publish(harness.rewrite(tx, "q/h-0")).is_committed
    assert harness.timeline().is_completed(tx.instant)
