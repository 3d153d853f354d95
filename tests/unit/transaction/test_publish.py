from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import (
    AcquireTimeout,
    ClockRefused,
    ConfigError,
    LockLost,
    OutcomeUnknown,
    StorageError,
    UpdateEndangered,
    WriteAborted,
    WriteConflict,
)
from hudi_locks.format import Instant, State
from hudi_locks.format.claim import ClaimKind, FileGroupId, claim_path
from hudi_locks.lock import LockManager
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint, Transactions
from hudi_locks.transaction.notices import NOTICE_FOLDER

At = Callable[[StopPoint, Callable[[], object]], Any]


class Killed(BaseException):
    pass


def kill() -> None:
    raise Killed


class FailingStorage(MemoryStorage):
    """Shares the files of another storage; fails when `fails(verb, path)` says so."""

    def __init__(self, files: MemoryStorage, fails: Callable[[str, str], bool]) -> None:
        super().__init__(files._clock)
        self._files = files._files
        self._fails = fails

    def create_if_absent(self, path: str, data: bytes) -> bool:
        if self._fails("create", path):
            raise StorageError(f"cannot create {path}: no space left on device", path=path)
        return super().create_if_absent(path, data)

    def touch(self, path: str) -> bool:
        if self._fails("touch", path):
            raise StorageError(f"cannot touch {path}", path=path)
        return super().touch(path)


class Mortal:
    """A process that dies at a stop point, its heartbeat with it."""

    def __init__(self, desk: Any, at: At, point: StopPoint) -> None:
        self.is_dead = False
        storage = FailingStorage(desk.storage, lambda verb, _: self.is_dead and verb == "touch")
        self.transactions = desk.open(storage=storage, trace=at(point, self.die))

    def die(self) -> None:
        self.is_dead = True
        raise Killed


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
    lock = LosingLock()

    def fail(tx: Any) -> None:
        with tx:
            desk.write(tx, "g-0")
            lock.is_refused = True
            raise ZeroDivisionError

    tx = desk.open(locks=lock).begin("commit", "UPSERT")
    with pytest.raises(ZeroDivisionError):
        fail(tx)
    assert lock.holds == 0
    heartbeats = [thread for thread in threading.enumerate() if thread.name == f"heartbeat-{tx.instant}"]
    assert heartbeats == []
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


def test_no_answer_to_the_claim_is_answered_by_occupying_its_number(desk: Any) -> None:
    asked: list[str] = []

    def fails(verb: str, path: str) -> bool:
        return path == claim_path(1) and not asked and not asked.append(path)  # type: ignore[func-returns-value]

    tx = desk.open(storage=FailingStorage(desk.storage, fails)).begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert (result.outcome, [claim.kind for claim in desk.claims()]) == (Outcome.ABORTED, [ClaimKind.ROLLBACK])
    assert "did not answer" in result.reason
    assert not desk.storage.create_if_absent(claim_path(1), b"late")


def test_a_claim_that_landed_without_an_answer_counts(desk: Any) -> None:
    class Deaf(FailingStorage):
        def create_if_absent(self, path: str, data: bytes) -> bool:
            made = super().create_if_absent(path, data)
            if path == claim_path(1) and made:
                raise StorageError("no answer", path=path)
            return made

    tx = desk.open(storage=Deaf(desk.storage, lambda *_: False)).begin("commit", "UPSERT")
    assert tx.publish(desk.write(tx, "g-0")).outcome is Outcome.COMMITTED
    assert desk.timeline().get(tx.instant).is_completed


def test_a_store_that_stays_silent_makes_the_outcome_unknown_and_resolve_decides(desk: Any) -> None:
    silent = [True]
    storage = FailingStorage(desk.storage, lambda _, path: silent[0] and "/claims/" in path)
    transactions = desk.open(storage=storage)
    tx = transactions.begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert result.outcome is Outcome.UNKNOWN
    with pytest.raises(OutcomeUnknown, match="no space left"):
        result.raise_unless_committed()
    with pytest.raises(StorageError):
        transactions.resolve(tx.instant)
    silent[0] = False
    assert transactions.resolve(tx.instant) is Outcome.ABORTED
    assert desk.open().resolve(tx.instant) is Outcome.ABORTED
    assert desk.names("p") == []


def test_a_full_disk_after_the_claim_is_unknown_and_becomes_committed(desk: Any) -> None:
    storage = FailingStorage(desk.storage, lambda _, path: path.endswith(".commit"))
    tx = desk.open(storage=storage).begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert (result.outcome, "no space left" in result.reason) == (Outcome.UNKNOWN, True)
    assert desk.open().resolve(tx.instant) is Outcome.COMMITTED
    desk.archive(tx.instant)
    assert desk.open().resolve(tx.instant) is Outcome.COMMITTED


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


class LosingLock:
    token = 7

    def __init__(self) -> None:
        self.is_lost, self.is_refused, self.holds = False, False, 0

    def lock(self) -> LosingLock:
        if self.is_refused:
            raise AcquireTimeout("somebody else has it")
        self.holds += 1
        return self

    def verify(self) -> None:
        if self.is_lost:
            raise LockLost("the lock is gone")

    def release(self) -> None:
        self.holds -= 1
        if self.is_lost:
            raise LockLost("the lock is gone")


def test_a_lost_lock_aborts_before_the_claim_and_warns_at_release(desk: Any) -> None:
    lock = LosingLock()
    tx = desk.open(locks=lock).begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    lock.is_lost = True
    result = tx.publish(metadata)
    assert (result.outcome, result.reason) == (Outcome.ABORTED, "the lock is gone")
    assert "not released in order" in result.warnings[0]
    assert lock.holds == 0


def test_a_lock_file_that_a_jvm_peer_removed_is_missed_before_the_claim(desk: Any, at: At, tmp_path: Path) -> None:
    options = {"hoodie.write.lock.provider": "filesystem", "hoodie.write.lock.filesystem.path": str(tmp_path)}
    lock = tmp_path / "lock"
    with LockManager.from_options(options) as locks:
        trace = at(StopPoint.PUBLISH_FORWARDED, lock.unlink)
        tx = desk.open(locks=locks, trace=trace).begin("commit", "UPSERT")
        result = tx.publish(desk.write(tx, "g-0"))
        assert (result.outcome, "no longer held" in result.reason) == (Outcome.ABORTED, True)
        following = desk.open(locks=locks).begin("commit", "UPSERT")
        assert following.publish(desk.write(following, "g-0")).is_committed
    assert not lock.exists()


def test_a_lock_lost_after_the_claim_changes_nothing(desk: Any, at: At) -> None:
    lock = LosingLock()
    trace = at(StopPoint.PUBLISH_CLAIMED, lambda: setattr(lock, "is_lost", True))
    tx = desk.open(locks=lock, trace=trace).begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert (result.outcome, len(result.warnings)) == (Outcome.COMMITTED, 1)
    assert desk.claims()[0].fencing_token == 7


def test_several_writers_need_a_lock_and_single_ones_do_not(desk: Any) -> None:
    with pytest.raises(ConfigError, match=r"hoodie.write.lock.provider"):
        desk.open(hoodie__write__concurrency__mode="optimistic_concurrency_control")
    with pytest.raises(ConfigError, match="NON_BLOCKING"):
        desk.open(hoodie__write__concurrency__mode="NON_BLOCKING_CONCURRENCY_CONTROL", locks=LosingLock())
    assert isinstance(desk.open(), Transactions)


def test_an_action_that_is_no_write_is_refused(desk: Any) -> None:
    with pytest.raises(ConfigError, match="clean"):
        desk.open().begin("clean", "CLEAN")


# ---- foreign writers ----


def test_a_foreign_commit_on_the_same_file_group_is_a_conflict(desk: Any) -> None:
    desk.foreign = True
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.foreign_commit("20231114221319990", "20231114221320003", "g-0")
    result = tx.publish(metadata)
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, "20231114221319990")
    assert result.conflict.other_writer == "a JVM writer"


def test_a_foreign_commit_elsewhere_is_none(desk: Any) -> None:
    desk.foreign = True
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.foreign_commit("20231114221319990", "20231114221320003", "h-0")
    assert tx.publish(metadata).is_committed


def test_a_foreign_commit_that_was_archived_meanwhile_is_seen(desk: Any) -> None:
    desk.foreign = True
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.foreign_commit("20231114221319990", "20231114221320003", "g-0")
    desk.archive("20231114221319990")
    assert tx.publish(metadata).conflict.other == "20231114221319990"


@pytest.mark.parametrize("state", [State.REQUESTED, State.COMPLETED])
def test_an_unfinished_claim_is_voided_when_a_foreign_instant_appeared(desk: Any, at: At, state: State) -> None:
    desk.foreign = True
    tx = desk.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(desk.write(tx, "g-0"))
    foreign = Instant("20231114221320009", "commit", state, "20231114221320010" if state is State.COMPLETED else None)
    if state is State.COMPLETED:
        desk.foreign_commit(foreign.requested, foreign.completion, "g-0")
    else:
        desk.storage.replace(LAYOUT_2.path(foreign), b"")
    assert desk.open().resolve(tx.instant) is Outcome.ABORTED
    assert [claim.kind for claim in desk.claims()] == [ClaimKind.PUBLISH, ClaimKind.VOID]
    assert [name for name in desk.names("p") if tx.instant in name] == []


def test_an_unfinished_claim_is_voided_when_a_foreign_cleaner_rolled_it_back(desk: Any, at: At) -> None:
    desk.foreign = True
    tx = desk.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(desk.write(tx, "g-0"))
    for state in (State.INFLIGHT, State.REQUESTED):
        desk.storage.delete(LAYOUT_2.path(Instant(tx.instant, "commit", state)))
    assert desk.open().resolve(tx.instant) is Outcome.ABORTED
    assert desk.claims()[-1].kind is ClaimKind.VOID
    following = desk.open().begin("commit", "UPSERT")
    assert following.publish(desk.write(following, "g-0")).is_committed


def test_a_voided_claim_does_not_conflict(desk: Any, at: At) -> None:
    desk.foreign = True
    other = desk.open().begin("commit", "UPSERT")
    tx = desk.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(desk.write(tx, "g-0"))
    desk.storage.replace(LAYOUT_2.path(Instant("20231114221320009", "commit", State.REQUESTED)), b"")
    assert other.publish(desk.write(other, "g-0")).is_committed


def test_a_foreign_commit_during_the_publish_is_detected_named_and_stops_writers(desk: Any, at: At) -> None:
    desk.foreign = True

    def break_in() -> None:
        desk.foreign_commit("20231114221319990", "20231114221320013", "g-0")

    tx = desk.open(trace=at(StopPoint.PUBLISH_LOOKED_AGAIN, break_in)).begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert result.outcome is Outcome.COMMITTED
    assert "20231114221319990" in result.warnings[0]
    transactions = desk.open()
    with pytest.raises(UpdateEndangered, match="20231114221319990") as caught:
        transactions.begin("commit", "UPSERT")
    assert (caught.value.instant, caught.value.other) == (tx.instant, "20231114221319990")
    assert transactions.notices.acknowledge(tx.instant)
    assert not transactions.notices.acknowledge(tx.instant)
    assert transactions.begin("commit", "UPSERT").instant


def test_a_foreign_rollback_after_completion_is_detected(desk: Any, at: At) -> None:
    desk.foreign = True

    def roll_back() -> None:
        for name in desk.names(LAYOUT_2.folder):
            desk.storage.delete(f"{LAYOUT_2.folder}/{name}")

    tx = desk.open(trace=at(StopPoint.PUBLISH_LOOKED_AGAIN, roll_back)).begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert result.outcome is Outcome.UNKNOWN
    assert "gone from the timeline" in result.reason
    with pytest.raises(UpdateEndangered):
        desk.open().begin("commit", "UPSERT")


def test_a_foreign_commit_in_a_table_without_foreign_writers_turns_the_flag_off(desk: Any) -> None:
    transactions = desk.open()
    tx = transactions.begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.foreign_commit("20231114221319990", "20231114221320003", "g-0")
    assert tx.publish(metadata).conflict.other == "20231114221319990"
    assert transactions.notices.foreign_writer_seen
    assert desk.names(NOTICE_FOLDER) == ["foreign-writer.json"]
    other = desk.open()
    other.begin("commit", "UPSERT").abort("enough")
    assert other.notices.foreign_writer_seen


def test_the_skew_wait_is_kept_only_with_foreign_writers(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(desk.clock, "sleep", slept.append)
    key = {"hoodie__time__generator__max_expected_clock_skew_ms": 200}
    for foreign in (False, True):
        desk.foreign = foreign
        tx = desk.open(**key).begin("commit", "UPSERT")
        assert tx.publish(desk.write(tx, "g-0")).is_committed
    assert slept == [pytest.approx(0.2, abs=0.01)]
