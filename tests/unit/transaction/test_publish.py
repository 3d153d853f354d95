"""Publishing: who wins, and what a writer that dies on the way leaves."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest
from transaction_harness import At, Killed, LosingLock, Mortal, kill

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


def test_a_commit_is_claimed_completed_and_swept(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert result.outcome is Outcome.COMMITTED
    assert result.warnings == ()
    instant = harness.timeline().get(tx.instant)
    assert (instant.state, instant.completion) == (State.COMPLETED, result.completion_time)
    claim = harness.claims()[0]
    assert (claim.kind, claim.instant, claim.writes) == (ClaimKind.PUBLISH, tx.instant, {FileGroupId("p", "g-0")})
    assert harness.names(".hoodie/.temp") == harness.names(".hoodie/.heartbeat") == []
    assert harness.names(".hoodie/.hudi_locks/staging") == []


def test_times_grow_along_claims_even_when_the_clock_stands_still(harness: Any) -> None:
    instants = [harness.commit("g-0") for _ in range(3)]
    times = [claim.time for claim in harness.claims()]
    completions = [harness.timeline().get(instant).completion for instant in instants]
    assert times == sorted(set(times)) == completions
    assert all(later > earlier for earlier, later in zip(completions, instants[1:], strict=False))


def test_the_second_writer_of_a_file_group_meets_a_conflict_that_says_all(harness: Any) -> None:
    first, second = harness.open().begin("commit", "UPSERT"), harness.open().begin("commit", "UPSERT")
    metadata = harness.write(second, "g-0", "h-0")
    first.publish(harness.write(first, "g-0"))
    harness.clock.advance(5)
    result = second.publish(metadata)
    assert result.outcome is Outcome.ABORTED
    with pytest.raises(WriteConflict, match="g-0") as caught:
        result.raise_unless_committed()
    error = caught.value
    assert (error.partition, error.file_id, error.other, error.other_action) == ("p", "g-0", first.instant, "commit")
    assert error.other_age_ms in range(4_990, 5_001)
    assert "job" in error.other_writer
    assert "fresh snapshot" in error.advice
    assert [n for n in harness.names("p") if second.instant in n] == []
    assert harness.timeline().pending() == ()


def test_a_conflict_can_be_foreseen_and_avoided(harness: Any) -> None:
    first, second = harness.open().begin("commit", "UPSERT"), harness.open().begin("commit", "INSERT")
    metadata = harness.write(second, "g-0", "h-0")
    assert second.check_conflict(metadata) is None
    first.publish(harness.write(first, "g-0"))
    assert second.check_conflict(metadata).groups == (FileGroupId("p", "g-0"),)
    moved, kept = harness.write(second, "k-0"), metadata.stats[1]
    around = CommitMetadata.of([*moved.stats, kept], "INSERT", schema="{}")
    assert second.check_conflict(around) is None
    assert second.publish(around).is_committed
    assert sorted(n.split("_")[0] for n in harness.names("p") if second.instant in n) == ["h-0", "k-0"]


def test_writers_of_different_file_groups_both_commit(harness: Any) -> None:
    first, second = harness.open().begin("commit", "UPSERT"), harness.open().begin("commit", "UPSERT")
    assert first.publish(harness.write(first, "g-0")).is_committed
    assert second.publish(harness.write(second, "h-0")).is_committed
    assert second.claim_head == 0


def test_a_writer_that_ended_refuses_to_go_on(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    tx.publish(metadata)
    with pytest.raises(WriteAborted, match="COMMITTED"):
        tx.publish(metadata)
    with pytest.raises(WriteAborted, match="COMMITTED"):
        tx.abort("late")


def test_a_block_that_fails_rolls_its_write_back(harness: Any) -> None:
    with contextlib.suppress(ZeroDivisionError), harness.open().begin("commit", "UPSERT") as tx:
        harness.write(tx, "g-0")
        raise ZeroDivisionError
    assert harness.timeline().get(tx.instant) is None
    assert harness.names("p") == []
    assert [claim.kind for claim in harness.claims()] == [ClaimKind.ROLLBACK]


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("publish:")])
def test_wherever_a_publish_dies_the_next_writer_finds_all_or_nothing(harness: Any, at: At, point: StopPoint) -> None:
    tx = Mortal(harness, at, point).transactions.begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    with pytest.raises(Killed):
        tx.publish(metadata)
    harness.clock.advance(200)
    is_claimed = any(claim.kind is ClaimKind.PUBLISH for claim in harness.claims())
    following = harness.commit("g-0")
    files = [name.split("_")[-1].split(".")[0] for name in harness.names("p")]
    assert files == ([tx.instant, following] if is_claimed else [following])
    assert (harness.timeline().get(tx.instant) is not None) is is_claimed
    assert harness.timeline().pending() == ()


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("publish:")])
def test_a_block_interrupted_within_its_publish_never_removes_what_it_claimed(
    harness: Any, at: At, point: StopPoint
) -> None:
    """As by Ctrl-C: the process lives on, and the block aborts its write."""
    with pytest.raises(Killed), harness.open(trace=at(point, kill)).begin("commit", "UPSERT") as tx:
        tx.publish(harness.write(tx, "g-0"))
    is_claimed = any(claim.kind is ClaimKind.PUBLISH for claim in harness.claims())
    assert bool(harness.names("p")) is is_claimed
    found = harness.timeline().get(tx.instant)
    assert (found is not None and found.is_completed) is is_claimed
    assert harness.names(".hoodie/.heartbeat") == []


def test_an_abort_of_what_was_claimed_says_that_it_is_committed(harness: Any, at: At) -> None:
    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(harness.write(tx, "g-0"))
    result = tx.abort("the user gave up")
    assert (result.outcome, result.completion_time) == (Outcome.COMMITTED, harness.claims()[0].time)
    assert harness.timeline().get(tx.instant).completion == result.completion_time
    assert len(harness.names("p")) == 1


def test_an_abort_that_fails_hides_no_error_and_lets_the_heartbeat_go_out(harness: Any) -> None:
    lock, others = LosingLock(), set(threading.enumerate())

    def fail(tx: Any) -> None:
        with tx:
            harness.write(tx, "g-0")
            lock.is_refused = True
            raise ZeroDivisionError

    tx = harness.open(locks=lock).begin("commit", "UPSERT")
    with pytest.raises(ZeroDivisionError):
        fail(tx)
    assert lock.holds == 0
    ours = [thread for thread in set(threading.enumerate()) - others if thread.name == f"heartbeat-{tx.instant}"]
    assert ours == []
    harness.clock.advance(200)
    harness.commit("h-0")
    assert harness.timeline().get(tx.instant) is None


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("begin:")])
def test_an_interrupted_begin_leaves_no_heartbeat_behind(harness: Any, at: At, point: StopPoint) -> None:
    before = set(threading.enumerate())
    with pytest.raises(Killed):
        harness.open(trace=at(point, kill)).begin("commit", "UPSERT")
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("begin:")])
def test_wherever_a_begin_dies_the_next_writer_goes_on(harness: Any, at: At, point: StopPoint) -> None:
    with pytest.raises(Killed):
        Mortal(harness, at, point).transactions.begin("commit", "UPSERT")
    harness.clock.advance(200)
    harness.commit("g-0")
    assert harness.timeline().pending() == ()
    assert len(harness.timeline().completed(("commit",))) == 1


def test_a_publish_paused_between_its_two_looks_never_brings_an_archived_instant_back(harness: Any, at: At) -> None:
    def complete_and_archive() -> None:
        harness.open().roll_back_failed()
        harness.archive(tx.instant)

    tx = harness.open(trace=at(StopPoint.PUBLISH_LOOKED, complete_and_archive)).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert result.outcome is Outcome.COMMITTED
    assert harness.timeline().get(tx.instant) is None
    assert harness.names("p") != []


def test_a_reader_of_the_log_finishes_what_a_dead_writer_claimed(harness: Any, at: At) -> None:
    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(harness.write(tx, "g-0"))
    assert not harness.timeline().get(tx.instant).is_completed
    following = harness.open().begin("commit", "UPSERT")
    assert following.timeline.get(tx.instant).is_completed
    assert following.instant > following.timeline.get(tx.instant).completion


def test_a_beaten_claim_costs_the_check_and_nothing_else(harness: Any, at: At) -> None:
    def be_faster() -> None:
        other = harness.open().begin("commit", "UPSERT")
        assert other.publish(harness.write(other, "h-0")).is_committed

    tx = harness.open(trace=at(StopPoint.PUBLISH_PREPARED, be_faster)).begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0")).is_committed
    assert [claim.writes for claim in harness.claims()] == [{FileGroupId("p", "h-0")}, {FileGroupId("p", "g-0")}]


def test_a_beaten_claim_is_checked_again(harness: Any, at: At) -> None:
    def be_faster() -> None:
        other = harness.open().begin("commit", "UPSERT")
        assert other.publish(harness.write(other, "g-0")).is_committed

    tx = harness.open(trace=at(StopPoint.PUBLISH_PREPARED, be_faster)).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert (result.outcome, result.conflict.file_id) == (Outcome.ABORTED, "g-0")


def test_resolve_of_an_instant_that_nobody_knows_is_aborted(harness: Any) -> None:
    harness.commit("g-0")
    assert harness.open().resolve("20200101000000000") is Outcome.ABORTED


def test_a_writer_that_was_rolled_back_is_told_and_leaves_nothing(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.storage.delete(f".hoodie/.heartbeat/{tx.instant}")
    assert harness.open().roll_back_failed() == [tx.instant]
    result = tx.publish(metadata)
    assert (result.outcome, result.conflict) == (Outcome.ABORTED, None)
    assert "rolled the instant back by claim 1" in result.reason
    assert harness.names("p") == []


def test_an_inflight_file_that_is_gone_aborts(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.storage.delete(LAYOUT_2.path(Instant(tx.instant, "commit", State.INFLIGHT)))
    result = tx.publish(metadata)
    assert (result.outcome, "inflight file is gone" in result.reason) == (Outcome.ABORTED, True)


def test_files_of_failed_attempts_are_removed_before_the_commit(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.write(tx, "stray-0")
    assert tx.publish(metadata).is_committed
    assert [name.split("_")[0] for name in harness.names("p")] == ["g-0"]


def test_a_clock_far_from_the_stores_is_refused(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    monkeypatch.setattr(harness.storage, "now_ms", lambda: harness.clock.wall_ms() - 11_000)
    with pytest.raises(ClockRefused, match=r"\+11000 ms") as caught:
        tx.publish(metadata)
    assert caught.value.bound_ms == 10_000
    monkeypatch.undo()
    assert tx.publish(metadata).is_committed


def test_a_time_from_next_year_on_the_timeline_is_refused(harness: Any) -> None:
    harness.foreign_commit("20241114221320000", "20241114221320001", "x-0")
    with pytest.raises(ClockRefused, match="ahead of the store"):
        harness.open().begin("commit", "UPSERT")


def test_a_pending_restore_keeps_writers_out(harness: Any) -> None:
    harness.storage.replace(LAYOUT_2.path(Instant("20231114221319000", "restore", State.INFLIGHT)), b"")
    with pytest.raises(WriteAborted, match="restore 20231114221319000"):
        harness.open().begin("commit", "UPSERT")


def test_several_writers_need_a_lock_and_single_ones_do_not(harness: Any) -> None:
    with pytest.raises(ConfigError, match=r"hoodie.write.lock.provider"):
        harness.open(hoodie__write__concurrency__mode="optimistic_concurrency_control", locks=None)
    with pytest.raises(ConfigError, match="NON_BLOCKING"):
        harness.open(hoodie__write__concurrency__mode="NON_BLOCKING_CONCURRENCY_CONTROL", locks=LosingLock())
    assert isinstance(harness.open_single(), Transactions)


def test_an_action_that_is_no_write_is_refused(harness: Any) -> None:
    with pytest.raises(ConfigError, match="clean"):
        harness.open().begin("clean", "CLEAN")


# ---- foreign writers ----
