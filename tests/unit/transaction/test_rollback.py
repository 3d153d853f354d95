from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from transaction_harness import move_elsewhere, write_staged

from hudi_locks.errors import PossibleLostUpdate, StorageError, WriteAborted
from hudi_locks.format import Instant, IOType, MarkerName, RollbackMetadata, RollbackPlan, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint

At = Callable[[StopPoint, Callable[[], object]], Any]


class Killed(BaseException):
    pass


def kill() -> None:
    raise Killed


def abandon(harness: Any, tx: Any) -> None:
    """What is left when a writer dies."""
    tx._state.heartbeat.pause()
    harness.clock.advance(121)


def test_a_rollback_leaves_an_instant_that_the_jvm_understands(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    name = f"g-0_0-0-0_{tx.instant}.parquet"
    tx.markers.create("p", name, io_type=IOType.CREATE)
    harness.storage.replace(f"p/{name}", b"rows")
    result = tx.abort("a change of mind")
    assert (result.outcome, result.reason, result.warnings) == (Outcome.ABORTED, "a change of mind", ())
    rollback = harness.timeline().completed(("rollback",))[0]
    data = harness.storage.read(LAYOUT_2.path(rollback))
    done = RollbackMetadata.decode(data, "it")
    assert done.rolled_back == ((tx.instant, "commit"),)
    assert [path.rsplit("/", 1)[-1][:3] for path in done.partitions["p"].deleted] == ["g-0"]
    plan = RollbackPlan.decode(harness.storage.read(LAYOUT_2.path(rollback.as_requested())), "it")
    assert (plan.rolled_back, plan.action, len(plan.requests)) == (tx.instant, "commit", 1)
    assert harness.names(".hoodie/.heartbeat") == harness.names(".hoodie/.temp") == harness.names("p") == []


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("rollback:")])
def test_wherever_a_rollback_dies_the_next_writer_finishes_it(harness: Any, at: At, point: StopPoint) -> None:
    tx = harness.open(trace=at(point, kill)).begin("commit", "UPSERT")
    harness.write(tx, "g-0")
    with pytest.raises(Killed):
        tx.abort("enough")
    tx._state.heartbeat.pause()
    harness.commit("h-0")
    assert harness.timeline().pending() == ()
    assert len(harness.timeline().completed(("rollback",))) == 1
    assert [name[:3] for name in harness.names("p")] == ["h-0"]
    assert harness.storage.stat(LAYOUT_2.path(Instant(tx.instant, "commit", State.REQUESTED))) is None


def test_a_rollback_that_a_jvm_writer_finished_is_done(harness: Any, at: At) -> None:
    tx = harness.open(trace=at(StopPoint.ROLLBACK_INFLIGHT_DELETED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.abort("enough")
    tx._state.heartbeat.pause()
    rollback = harness.timeline().pending(("rollback",))[0]
    harness.storage.replace(LAYOUT_2.path(rollback.as_completed("20231114221320100")), b"theirs")
    harness.storage.delete(LAYOUT_2.path(Instant(tx.instant, "commit", State.REQUESTED)))
    harness.commit("h-0")
    assert [i.completion for i in harness.timeline().completed(("rollback",))] == ["20231114221320100"]


def test_a_failed_write_is_rolled_back_before_the_next_one(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    harness.write(tx, "g-0")
    abandon(harness, tx)
    harness.commit("h-0")
    assert [claim.kind for claim in harness.claims()] == [ClaimKind.ROLLBACK, ClaimKind.PUBLISH]
    assert [name[:3] for name in harness.names("p")] == ["h-0"]


def test_a_writer_is_dead_after_as_many_missed_heartbeats_as_are_tolerated(harness: Any) -> None:
    beat: dict[str, Any] = {
        "hoodie.client.heartbeat.interval_in_ms": 1_000,
        "hoodie.client.heartbeat.tolerable.misses": 5,
    }
    tx = harness.open(**beat).begin("commit", "UPSERT")
    move_elsewhere(harness.storage)
    tx._state.heartbeat.pause()
    harness.clock.advance(4)
    assert harness.open(**beat).roll_back_failed() == []
    harness.clock.advance(2)
    assert list(harness.open(**beat).roll_back_failed()) == [tx.instant]


def test_a_writer_with_a_heartbeat_is_left_alone(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.commit("h-0")
    assert harness.open().roll_back_failed() == []
    assert tx.publish(metadata).is_committed


def test_policy_never_rolls_nothing_back(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    abandon(harness, tx)
    harness.open_single(hoodie__clean__failed__writes__policy="NEVER").begin("commit", "UPSERT")
    assert harness.timeline().pending()[0].requested == tx.instant


def test_a_write_that_completes_during_the_heartbeat_test_is_kept(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    listing = harness.storage.list

    def complete_first(folder: str) -> Any:
        if folder == ".hoodie/.heartbeat" and not metadata_left.pop():
            monkeypatch.undo()
            assert tx.publish(metadata).is_committed
        return listing(folder)

    metadata_left = [False]
    monkeypatch.setattr(harness.storage, "list", complete_first)
    assert harness.open().roll_back_failed() == []
    assert harness.timeline().get(tx.instant).is_completed


@pytest.mark.parametrize("foreign", [True, False])
def test_files_of_a_jvm_writer_are_found_by_listing_when_its_markers_are_gone(harness: Any, foreign: bool) -> None:
    """Where there is none, nothing was named, and no table is listed for that."""
    harness.foreign = foreign
    tx = harness.open().begin("commit", "UPSERT")
    for folder in ("a/b/", ""):
        harness.storage.replace(f"{folder}g-0_0-0-0_{tx.instant}.parquet", b"rows")
    kept = harness.commit("k-0")
    tx.abort("enough")
    left = [path for path, _ in harness.storage.walk("") if path.endswith(".parquet")]
    assert {path.split("_")[-1] for path in left} == {
        f"{kept}.parquet",
        *([] if foreign else [f"{tx.instant}.parquet"]),
    }


def test_markers_of_a_jvm_timeline_server_are_followed(harness: Any) -> None:
    instant = Instant("20231114221319000", "commit", State.REQUESTED)
    for path in (LAYOUT_2.path(instant), LAYOUT_2.path(instant.as_inflight())):
        harness.storage.create_if_absent(path, b"")
    folder, name = f".hoodie/.temp/{instant.requested}", f"g-0_1-2-3_{instant.requested}.parquet"
    harness.storage.replace(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    harness.storage.replace(f"{folder}/MARKERS7", f"p=1/{name}.marker.CREATE\n".encode())
    harness.storage.replace(f"p=1/{name}", b"theirs")
    assert harness.open().roll_back_failed() == [instant.requested]
    assert harness.names("p=1") == []


def test_pending_table_services_are_left_alone(harness: Any) -> None:
    for action in ("compaction", "clustering", "clean"):
        harness.storage.replace(
            LAYOUT_2.path(Instant(f"2023111422131900{len(action) % 10}", action, State.REQUESTED)), b""
        )
    assert harness.open().roll_back_failed() == []


def test_a_task_that_seals_after_the_rollback_hears_of_it_and_leaves_nothing(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    staged = tx.files.start("p", f"g-0_0-0-0_{tx.instant}.parquet", io_type=IOType.CREATE)
    write_staged(staged, b"rows")
    tx.abort("enough")
    with pytest.raises(WriteAborted, match=tx.instant):
        tx.files.seal(staged)
    assert harness.storage.list_staged() == set()
    assert harness.names("p") == []


def test_what_a_jvm_task_names_between_the_deletion_and_the_end_of_the_inflight_file_goes_too(
    harness: Any, at: At
) -> None:
    harness.foreign = True
    name = "h-0_0-0-0_{}.parquet"

    def finish_late() -> None:
        harness.storage.create_if_absent(f"p/{name.format(tx.instant)}", b"rows")

    tx = harness.open(trace=at(StopPoint.ROLLBACK_FILES_DELETED, finish_late)).begin("commit", "UPSERT")
    tx.files.announce([MarkerName("p", name.format(tx.instant), IOType.CREATE)])
    tx.abort("enough")
    assert harness.names("p") == []


def test_rollbacks_and_writes_never_share_a_time(harness: Any, at: At) -> None:
    tx = harness.open().begin("commit", "UPSERT")

    def roll_back() -> None:
        tx.abort("enough")

    following = harness.open(trace=at(StopPoint.BEGIN_LISTED, roll_back)).begin("commit", "UPSERT")
    rollback = harness.timeline().completed(("rollback",))[0]
    assert following.instant != rollback.requested
    assert following.publish(harness.write(following, "g-0")).is_committed


def test_a_rollback_of_what_a_foreign_writer_completed_stops_everybody(harness: Any, at: At) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    abandon(harness, tx)

    def complete() -> None:
        harness.foreign_commit(tx.instant, "20231114221521100", "g-0")

    with pytest.raises(PossibleLostUpdate, match=tx.instant):
        harness.open(trace=at(StopPoint.ROLLBACK_CLAIMED, complete)).roll_back_failed()
    assert harness.names("p") != []


def test_a_rollback_that_fails_is_a_warning_and_left_to_the_next_writer(harness: Any, monkeypatch: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    harness.write(tx, "g-0")
    monkeypatch.setattr(harness.storage, "read", _refuse)
    result = tx.abort("enough")
    assert (result.outcome, len(result.warnings)) == (Outcome.ABORTED, 1)
    monkeypatch.undo()
    harness.commit("h-0")
    assert [name[:3] for name in harness.names("p")] == ["h-0"]


def _refuse(path: str) -> bytes:
    raise StorageError(f"cannot read {path}", path=path)
