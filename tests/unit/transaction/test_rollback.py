from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from transaction_desk import move_elsewhere

from hudi_locks.errors import PossibleLostUpdate, StorageError, WriteAborted
from hudi_locks.format import Instant, IOType, RollbackMetadata, RollbackPlan, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint

At = Callable[[StopPoint, Callable[[], object]], Any]


class Killed(BaseException):
    pass


def kill() -> None:
    raise Killed


def abandon(desk: Any, tx: Any) -> None:
    """What is left when a writer dies."""
    tx._state.heartbeat.pause()
    desk.clock.advance(121)


def test_a_rollback_leaves_an_instant_that_the_jvm_understands(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    desk.write(tx, "g-0")
    result = tx.abort("a change of mind")
    assert (result.outcome, result.reason, result.warnings) == (Outcome.ABORTED, "a change of mind", ())
    rollback = desk.timeline().completed(("rollback",))[0]
    data = desk.storage.read(LAYOUT_2.path(rollback))
    done = RollbackMetadata.decode(data, "it")
    assert done.rolled_back == ((tx.instant, "commit"),)
    assert [path.rsplit("/", 1)[-1][:3] for path in done.partitions["p"].deleted] == ["g-0"]
    plan = RollbackPlan.decode(desk.storage.read(LAYOUT_2.path(rollback.as_requested())), "it")
    assert (plan.rolled_back, plan.action, len(plan.requests)) == (tx.instant, "commit", 1)
    assert desk.names(".hoodie/.heartbeat") == desk.names(".hoodie/.temp") == desk.names("p") == []


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("rollback:")])
def test_wherever_a_rollback_dies_the_next_writer_finishes_it(desk: Any, at: At, point: StopPoint) -> None:
    tx = desk.open(trace=at(point, kill)).begin("commit", "UPSERT")
    desk.write(tx, "g-0")
    with pytest.raises(Killed):
        tx.abort("enough")
    tx._state.heartbeat.pause()
    desk.commit("h-0")
    assert desk.timeline().pending() == ()
    assert len(desk.timeline().completed(("rollback",))) == 1
    assert [name[:3] for name in desk.names("p")] == ["h-0"]
    assert desk.storage.stat(LAYOUT_2.path(Instant(tx.instant, "commit", State.REQUESTED))) is None


def test_a_rollback_that_a_jvm_writer_finished_is_done(desk: Any, at: At) -> None:
    tx = desk.open(trace=at(StopPoint.ROLLBACK_INFLIGHT_DELETED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.abort("enough")
    tx._state.heartbeat.pause()
    rollback = desk.timeline().pending(("rollback",))[0]
    desk.storage.replace(LAYOUT_2.path(rollback.as_completed("20231114221320100")), b"theirs")
    desk.storage.delete(LAYOUT_2.path(Instant(tx.instant, "commit", State.REQUESTED)))
    desk.commit("h-0")
    assert [i.completion for i in desk.timeline().completed(("rollback",))] == ["20231114221320100"]


def test_a_failed_write_is_rolled_back_before_the_next_one(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    desk.write(tx, "g-0")
    abandon(desk, tx)
    desk.commit("h-0")
    assert [claim.kind for claim in desk.claims()] == [ClaimKind.ROLLBACK, ClaimKind.PUBLISH]
    assert [name[:3] for name in desk.names("p")] == ["h-0"]


def test_a_writer_is_dead_after_as_many_missed_heartbeats_as_are_tolerated(desk: Any) -> None:
    beat: dict[str, Any] = {
        "hoodie.client.heartbeat.interval_in_ms": 1_000,
        "hoodie.client.heartbeat.tolerable.misses": 5,
    }
    tx = desk.open(**beat).begin("commit", "UPSERT")
    move_elsewhere(desk.storage)
    tx._state.heartbeat.pause()
    desk.clock.advance(4)
    assert desk.open(**beat).roll_back_failed() == []
    desk.clock.advance(2)
    assert list(desk.open(**beat).roll_back_failed()) == [tx.instant]


def test_a_writer_with_a_heartbeat_is_left_alone(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.commit("h-0")
    assert desk.open().roll_back_failed() == []
    assert tx.publish(metadata).is_committed


def test_policy_never_rolls_nothing_back(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    abandon(desk, tx)
    desk.open_single(hoodie__clean__failed__writes__policy="NEVER").begin("commit", "UPSERT")
    assert desk.timeline().pending()[0].requested == tx.instant


def test_a_write_that_completes_during_the_heartbeat_test_is_kept(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    listing = desk.storage.list

    def complete_first(folder: str) -> Any:
        if folder == ".hoodie/.heartbeat" and not metadata_left.pop():
            monkeypatch.undo()
            assert tx.publish(metadata).is_committed
        return listing(folder)

    metadata_left = [False]
    monkeypatch.setattr(desk.storage, "list", complete_first)
    assert desk.open().roll_back_failed() == []
    assert desk.timeline().get(tx.instant).is_completed


def test_files_are_found_by_listing_when_the_markers_are_gone(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    desk.write(tx, "g-0", partition="a/b")
    desk.write(tx, "h-0", partition="")
    kept = desk.commit("k-0")
    tx.markers.delete()
    tx.abort("enough")
    left = [path for path, _ in desk.storage.walk("") if path.endswith(".parquet")]
    assert [path.split("_")[-1] for path in left] == [f"{kept}.parquet"]


def test_markers_of_a_jvm_timeline_server_are_followed(desk: Any) -> None:
    instant = Instant("20231114221319000", "commit", State.REQUESTED)
    for path in (LAYOUT_2.path(instant), LAYOUT_2.path(instant.as_inflight())):
        desk.storage.create_if_absent(path, b"")
    folder, name = f".hoodie/.temp/{instant.requested}", f"g-0_1-2-3_{instant.requested}.parquet"
    desk.storage.replace(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    desk.storage.replace(f"{folder}/MARKERS7", f"p=1/{name}.marker.CREATE\n".encode())
    desk.storage.replace(f"p=1/{name}", b"theirs")
    assert desk.open().roll_back_failed() == [instant.requested]
    assert desk.names("p=1") == []


def test_pending_table_services_are_left_alone(desk: Any) -> None:
    for action in ("compaction", "clustering", "clean"):
        desk.storage.replace(
            LAYOUT_2.path(Instant(f"2023111422131900{len(action) % 10}", action, State.REQUESTED)), b""
        )
    assert desk.open().roll_back_failed() == []


def test_a_task_that_finishes_after_the_rollback_takes_its_file_away(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    staged = tx.files.start("p", f"g-0_0-0-0_{tx.instant}.parquet", io_type=IOType.CREATE)
    desk.storage.replace(staged.path, b"rows")
    tx.abort("enough")
    desk.storage.replace(staged.path, b"rows")
    with pytest.raises(WriteAborted, match=tx.instant):
        tx.files.finish(staged)
    with pytest.raises(WriteAborted, match=tx.instant):
        tx.files.start("p", "x", io_type=IOType.CREATE)
    assert desk.names("p") == []


def test_a_file_made_between_the_deletion_and_the_end_of_the_inflight_file_goes_too(desk: Any, at: At) -> None:
    def finish_late() -> None:
        staged = tx.files.start("p", f"h-0_0-0-0_{tx.instant}.parquet", io_type=IOType.CREATE)
        desk.storage.replace(staged.path, b"rows")
        assert tx.files.finish(staged)

    tx = desk.open(trace=at(StopPoint.ROLLBACK_FILES_DELETED, finish_late)).begin("commit", "UPSERT")
    desk.write(tx, "g-0")
    tx.abort("enough")
    assert desk.names("p") == []


def test_rollbacks_and_writes_never_share_a_time(desk: Any, at: At) -> None:
    tx = desk.open().begin("commit", "UPSERT")

    def roll_back() -> None:
        tx.abort("enough")

    following = desk.open(trace=at(StopPoint.BEGIN_LISTED, roll_back)).begin("commit", "UPSERT")
    rollback = desk.timeline().completed(("rollback",))[0]
    assert following.instant != rollback.requested
    assert following.publish(desk.write(following, "g-0")).is_committed


def test_a_rollback_of_what_a_foreign_writer_completed_stops_everybody(desk: Any, at: At) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    abandon(desk, tx)

    def complete() -> None:
        desk.foreign_commit(tx.instant, "20231114221521100", "g-0")

    with pytest.raises(PossibleLostUpdate, match=tx.instant):
        desk.open(trace=at(StopPoint.ROLLBACK_CLAIMED, complete)).roll_back_failed()
    assert desk.names("p") != []


def test_a_rollback_that_fails_is_a_warning_and_left_to_the_next_writer(desk: Any, monkeypatch: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    desk.write(tx, "g-0")
    monkeypatch.setattr(desk.storage, "read", _refuse)
    result = tx.abort("enough")
    assert (result.outcome, len(result.warnings)) == (Outcome.ABORTED, 1)
    monkeypatch.undo()
    desk.commit("h-0")
    assert [name[:3] for name in desk.names("p")] == ["h-0"]


def _refuse(path: str) -> bytes:
    raise StorageError(f"cannot read {path}", path=path)
