"""Publishing: who wins, and what a writer that dies on the way leaves."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest
from transaction_desk import At, Killed, LosingLock, Mortal, kill

from hudi_locks.errors import (
    ClockRefused,
    ConfigError,
    WriteAborted,
    WriteConflict,
)
from hudi_locks.format import CommitMetadata, Instant, State
from hudi_locks.format.claim import ClaimKind, FileGroupId
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint, Transactions


def test_a_commit_is_claimed_completed_and_swept(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert result.outcome is Outcome.COMMITTED
    assert result.warnings == ()
    instant = desk.timeline().get(tx.instant)
    assert (instant.state, instant.completion) == (State.COMPLETED, result.completion_time)
    claim = desk.claims()[0]
    assert (claim.kind, claim.instant, claim.writes) == (ClaimKind.PUBLISH, tx.instant, {FileGroupId("p", "g-0")})
    assert desk.names(".hoodie/.temp") == desk.names(".hoodie/.heartbeat") == []
    assert desk.names(".hoodie/.hudi_locks/staging") == []


def test_times_grow_along_claims_even_when_the_clock_stands_still(desk: Any) -> None:
    instants = [desk.commit("g-0") for _ in range(3)]
    times = [claim.time for claim in desk.claims()]
    completions = [desk.timeline().get(instant).completion for instant in instants]
    assert times == sorted(set(times)) == completions
    assert all(later > earlier for earlier, later in zip(completions, instants[1:], strict=False))


def test_the_second_writer_of_a_file_group_meets_a_conflict_that_says_all(desk: Any) -> None:
    first, second = desk.open().begin("commit", "UPSERT"), desk.open().begin("commit", "UPSERT")
    metadata = desk.write(second, "g-0", "h-0")
    first.publish(desk.write(first, "g-0"))
    desk.clock.advance(5)
    result = second.publish(metadata)
    assert result.outcome is Outcome.ABORTED
    with pytest.raises(WriteConflict, match="g-0") as caught:
        result.raise_unless_committed()
    error = caught.value
    assert (error.partition, error.file_id, error.other, error.other_action) == ("p", "g-0", first.instant, "commit")
    assert error.other_age_ms in range(4_990, 5_001)
    assert "job" in error.other_writer
    assert "fresh snapshot" in error.advice
    assert [n for n in desk.names("p") if second.instant in n] == []
    assert desk.timeline().pending() == ()


def test_a_conflict_can_be_foreseen_and_avoided(desk: Any) -> None:
    first, second = desk.open().begin("commit", "UPSERT"), desk.open().begin("commit", "INSERT")
    metadata = desk.write(second, "g-0", "h-0")
    assert second.check_conflict(metadata) is None
    first.publish(desk.write(first, "g-0"))
    assert second.check_conflict(metadata).groups == (FileGroupId("p", "g-0"),)
    moved, kept = desk.write(second, "k-0"), metadata.stats[1]
    around = CommitMetadata.of([*moved.stats, kept], "INSERT", schema="{}")
    assert second.check_conflict(around) is None
    assert second.publish(around).is_committed
    assert sorted(n.split("_")[0] for n in desk.names("p") if second.instant in n) == ["h-0", "k-0"]


def test_nothing_is_foreseen_where_the_files_left_out_would_fail_the_commit(desk: Any) -> None:
    strict = desk.open(hoodie__fail__job__on__duplicate__data__file__detection=True)
    first, second = desk.open().begin("commit", "UPSERT"), strict.begin("commit", "INSERT")
    metadata = desk.write(second, "g-0")
    first.publish(desk.write(first, "g-0"))
    assert second.check_conflict(metadata) is None
    assert second.publish(metadata).conflict is not None


def test_writers_of_different_file_groups_both_commit(desk: Any) -> None:
    first, second = desk.open().begin("commit", "UPSERT"), desk.open().begin("commit", "UPSERT")
    assert first.publish(desk.write(first, "g-0")).is_committed
    assert second.publish(desk.write(second, "h-0")).is_committed
    assert second.claim_head == 0


def test_a_writer_that_ended_refuses_to_go_on(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    tx.publish(metadata)
    with pytest.raises(WriteAborted, match="COMMITTED"):
        tx.publish(metadata)
    with pytest.raises(WriteAborted, match="COMMITTED"):
        tx.abort("late")


def test_a_block_that_fails_rolls_its_write_back(desk: Any) -> None:
    with contextlib.suppress(ZeroDivisionError), desk.open().begin("commit", "UPSERT") as tx:
        desk.write(tx, "g-0")
        raise ZeroDivisionError
    assert desk.timeline().get(tx.instant) is None
    assert desk.names("p") == []
    assert [claim.kind for claim in desk.claims()] == [ClaimKind.ROLLBACK]


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("publish:")])
def test_wherever_a_publish_dies_the_next_writer_finds_all_or_nothing(desk: Any, at: At, point: StopPoint) -> None:
    tx = Mortal(desk, at, point).transactions.begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    with pytest.raises(Killed):
        tx.publish(metadata)
    desk.clock.advance(200)
    is_claimed = any(claim.kind is ClaimKind.PUBLISH for claim in desk.claims())
    following = desk.commit("g-0")
    files = [name.split("_")[-1].split(".")[0] for name in desk.names("p")]
    assert files == ([tx.instant, following] if is_claimed else [following])
    assert (desk.timeline().get(tx.instant) is not None) is is_claimed
    assert desk.timeline().pending() == ()


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("publish:")])
def test_a_block_interrupted_within_its_publish_never_removes_what_it_claimed(
    desk: Any, at: At, point: StopPoint
) -> None:
    """As by Ctrl-C: the process lives on, and the block aborts its write."""
    with pytest.raises(Killed), desk.open(trace=at(point, kill)).begin("commit", "UPSERT") as tx:
        tx.publish(desk.write(tx, "g-0"))
    is_claimed = any(claim.kind is ClaimKind.PUBLISH for claim in desk.claims())
    assert bool(desk.names("p")) is is_claimed
    found = desk.timeline().get(tx.instant)
    assert (found is not None and found.is_completed) is is_claimed
    assert desk.names(".hoodie/.heartbeat") == []


def test_an_abort_of_what_was_claimed_says_that_it_is_committed(desk: Any, at: At) -> None:
    tx = desk.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(desk.write(tx, "g-0"))
    result = tx.abort("the user gave up")
    assert (result.outcome, result.completion_time) == (Outcome.COMMITTED, desk.claims()[0].time)
    assert desk.timeline().get(tx.instant).completion == result.completion_time
    assert len(desk.names("p")) == 1


def test_an_abort_that_fails_hides_no_error_and_lets_the_heartbeat_go_out(desk: Any) -> None:
    lock, others = LosingLock(), set(threading.enumerate())

    def fail(tx: Any) -> None:
        with tx:
            desk.write(tx, "g-0")
            lock.is_refused = True
            raise ZeroDivisionError

    tx = desk.open(locks=lock).begin("commit", "UPSERT")
    with pytest.raises(ZeroDivisionError):
        fail(tx)
    assert lock.holds == 0
    ours = [thread for thread in set(threading.enumerate()) - others if thread.name == f"heartbeat-{tx.instant}"]
    assert ours == []
    desk.clock.advance(200)
    desk.commit("h-0")
    assert desk.timeline().get(tx.instant) is None


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("begin:")])
def test_an_interrupted_begin_leaves_no_heartbeat_behind(desk: Any, at: At, point: StopPoint) -> None:
    before = set(threading.enumerate())
    with pytest.raises(Killed):
        desk.open(trace=at(point, kill)).begin("commit", "UPSERT")
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("begin:")])
def test_wherever_a_begin_dies_the_next_writer_goes_on(desk: Any, at: At, point: StopPoint) -> None:
    with pytest.raises(Killed):
        Mortal(desk, at, point).transactions.begin("commit", "UPSERT")
    desk.clock.advance(200)
    desk.commit("g-0")
    assert desk.timeline().pending() == ()
    assert len(desk.timeline().completed(("commit",))) == 1


def test_a_publish_paused_between_its_two_looks_never_brings_an_archived_instant_back(desk: Any, at: At) -> None:
    def complete_and_archive() -> None:
        desk.open().roll_back_failed()
        desk.archive(tx.instant)

    tx = desk.open(trace=at(StopPoint.PUBLISH_LOOKED, complete_and_archive)).begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert result.outcome is Outcome.COMMITTED
    assert desk.timeline().get(tx.instant) is None
    assert desk.names("p") != []


def test_a_reader_of_the_log_finishes_what_a_dead_writer_claimed(desk: Any, at: At) -> None:
    tx = desk.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(desk.write(tx, "g-0"))
    assert not desk.timeline().get(tx.instant).is_completed
    following = desk.open().begin("commit", "UPSERT")
    assert following.timeline.get(tx.instant).is_completed
    assert following.instant > following.timeline.get(tx.instant).completion


def test_a_beaten_claim_costs_the_check_and_nothing_else(desk: Any, at: At) -> None:
    def be_faster() -> None:
        other = desk.open().begin("commit", "UPSERT")
        assert other.publish(desk.write(other, "h-0")).is_committed

    tx = desk.open(trace=at(StopPoint.PUBLISH_RECONCILED, be_faster)).begin("commit", "UPSERT")
    assert tx.publish(desk.write(tx, "g-0")).is_committed
    assert [claim.writes for claim in desk.claims()] == [{FileGroupId("p", "h-0")}, {FileGroupId("p", "g-0")}]


def test_a_beaten_claim_is_checked_again(desk: Any, at: At) -> None:
    def be_faster() -> None:
        other = desk.open().begin("commit", "UPSERT")
        assert other.publish(desk.write(other, "g-0")).is_committed

    tx = desk.open(trace=at(StopPoint.PUBLISH_RECONCILED, be_faster)).begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert (result.outcome, result.conflict.file_id) == (Outcome.ABORTED, "g-0")


def test_resolve_of_an_instant_that_nobody_knows_is_aborted(desk: Any) -> None:
    desk.commit("g-0")
    assert desk.open().resolve("20200101000000000") is Outcome.ABORTED


def test_a_writer_that_was_rolled_back_is_told_and_leaves_nothing(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.storage.delete(f".hoodie/.heartbeat/{tx.instant}")
    assert desk.open().roll_back_failed() == [tx.instant]
    result = tx.publish(metadata)
    assert (result.outcome, result.conflict) == (Outcome.ABORTED, None)
    assert "rolled the instant back by claim 1" in result.reason
    assert desk.names("p") == []


def test_an_inflight_file_that_is_gone_aborts(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.storage.delete(LAYOUT_2.path(Instant(tx.instant, "commit", State.INFLIGHT)))
    result = tx.publish(metadata)
    assert (result.outcome, "inflight file is gone" in result.reason) == (Outcome.ABORTED, True)


def test_files_of_failed_attempts_are_removed_before_the_commit(desk: Any) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.write(tx, "stray-0")
    assert tx.publish(metadata).is_committed
    assert [name.split("_")[0] for name in desk.names("p")] == ["g-0"]


def test_stray_files_fail_the_commit_when_asked(desk: Any) -> None:
    tx = desk.open(hoodie__fail__job__on__duplicate__data__file__detection=True).begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.write(tx, "stray-0")
    result = tx.publish(metadata)
    assert (result.outcome, "stray-0" in result.reason) == (Outcome.ABORTED, True)


def test_a_clock_far_from_the_stores_is_refused(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    monkeypatch.setattr(desk.storage, "now_ms", lambda: desk.clock.wall_ms() - 11_000)
    with pytest.raises(ClockRefused, match=r"\+11000 ms") as caught:
        tx.publish(metadata)
    assert caught.value.bound_ms == 10_000
    monkeypatch.undo()
    assert tx.publish(metadata).is_committed


def test_a_time_from_next_year_on_the_timeline_is_refused(desk: Any) -> None:
    desk.foreign_commit("20241114221320000", "20241114221320001", "x-0")
    with pytest.raises(ClockRefused, match="ahead of the store"):
        desk.open().begin("commit", "UPSERT")


def test_a_pending_restore_keeps_writers_out(desk: Any) -> None:
    desk.storage.replace(LAYOUT_2.path(Instant("20231114221319000", "restore", State.INFLIGHT)), b"")
    with pytest.raises(WriteAborted, match="restore 20231114221319000"):
        desk.open().begin("commit", "UPSERT")


def test_several_writers_need_a_lock_and_single_ones_do_not(desk: Any) -> None:
    with pytest.raises(ConfigError, match=r"hoodie.write.lock.provider"):
        desk.open(hoodie__write__concurrency__mode="optimistic_concurrency_control", locks=None)
    with pytest.raises(ConfigError, match="NON_BLOCKING"):
        desk.open(hoodie__write__concurrency__mode="NON_BLOCKING_CONCURRENCY_CONTROL", locks=LosingLock())
    assert isinstance(desk.open_single(), Transactions)


def test_an_action_that_is_no_write_is_refused(desk: Any) -> None:
    with pytest.raises(ConfigError, match="clean"):
        desk.open().begin("clean", "CLEAN")


# ---- foreign writers ----
