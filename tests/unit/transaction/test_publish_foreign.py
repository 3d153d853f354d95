"""Publishing beside writers that know nothing of claims."""

from __future__ import annotations

from typing import Any

import pytest
from transaction_harness import At, Killed, kill

from hudi_locks.errors import (
    PossibleLostUpdate,
)
from hudi_locks.format import Instant, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint
from hudi_locks.transaction.foreign_writers import NOTICE_FOLDER


def test_a_foreign_commit_on_the_same_file_group_is_a_conflict(harness: Any) -> None:
    harness.foreign = True
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.foreign_commit("20231114221319990", "20231114221320003", "g-0")
    result = tx.publish(metadata)
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, "20231114221319990")
    assert result.conflict.other_writer == "a JVM writer"


def test_a_foreign_commit_elsewhere_is_none(harness: Any) -> None:
    harness.foreign = True
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.foreign_commit("20231114221319990", "20231114221320003", "h-0")
    assert tx.publish(metadata).is_committed


def test_a_foreign_commit_that_was_archived_meanwhile_is_seen(harness: Any) -> None:
    harness.foreign = True
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.foreign_commit("20231114221319990", "20231114221320003", "g-0")
    harness.archive("20231114221319990")
    assert tx.publish(metadata).conflict.other == "20231114221319990"


def test_a_foreign_commit_of_a_slow_clock_that_was_archived_meanwhile_is_seen(harness: Any) -> None:
    """Its completion time is before the begin of ours, and yet it came later: clocks are off within the bound."""
    harness.foreign = True
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.foreign_commit("20231114221314000", "20231114221315000", "g-0")
    harness.archive("20231114221314000")
    assert tx.publish(metadata).conflict.other == "20231114221314000"


def test_a_foreign_commit_that_was_archived_before_the_write_began_is_no_conflict(harness: Any) -> None:
    """JVM writers archive at once where they keep few commits; the write built on what they left."""
    harness.foreign = True
    harness.foreign_commit("20231114221314000", "20231114221314500", "g-0")
    harness.foreign_commit("20231114221314600", "20231114221314700", "h-0")
    harness.archive("20231114221314000")
    tx = harness.open().begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0")).outcome is Outcome.COMMITTED


@pytest.mark.parametrize("archives_meanwhile", [False, True])
def test_the_history_is_read_while_the_lock_is_held_only_if_it_grew_meanwhile(
    harness: Any, at: At, monkeypatch: pytest.MonkeyPatch, archives_meanwhile: bool
) -> None:
    harness.foreign = True
    harness.foreign_commit("20231114221314000", "20231114221314500", "g-0")
    harness.foreign_commit("20231114221314600", "20231114221314700", "g-0")
    harness.foreign_commit("20231114221314800", "20231114221314900", "h-0")
    harness.archive("20231114221314000")
    seen: list[str] = []

    def note(storage: MemoryStorage, path: str, read: Any = MemoryStorage.read) -> Any:
        seen.append(path)
        return read(storage, path)

    def lock() -> None:
        if archives_meanwhile:
            harness.archive("20231114221314600")
        monkeypatch.setattr(MemoryStorage, "read", note)

    tx = harness.open(trace=at(StopPoint.BEGIN_LOCKED, lock)).begin("commit", "UPSERT")
    assert any(path.startswith(LAYOUT_2.archive) for path in seen) is archives_meanwhile
    assert tx.publish(harness.write(tx, "g-0")).outcome is Outcome.COMMITTED


def test_a_foreign_commit_that_was_archived_past_a_pending_one_is_a_conflict(harness: Any) -> None:
    """Readers do not take its files for committed while an older write is on the timeline, so neither did the write."""
    harness.foreign = True
    older = harness.open().begin("commit", "UPSERT")
    harness.foreign_commit("20231114221320100", "20231114221320200", "g-0")
    harness.archive("20231114221320100")
    tx = harness.open().begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0")).conflict.other == "20231114221320100"
    older.abort("the end of the test")


def test_an_unfinished_claim_is_voided_when_a_slow_clocks_commit_was_archived_since(harness: Any, at: At) -> None:
    harness.foreign = True
    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(harness.write(tx, "g-0"))
    harness.foreign_commit("20231114221314000", "20231114221315000", "g-0")
    harness.archive("20231114221314000")
    assert harness.open().resolve(tx.instant) is Outcome.ABORTED


def test_what_was_there_before_a_claim_and_is_archived_since_voids_nothing(harness: Any, at: At) -> None:
    harness.foreign = True
    harness.foreign_commit("20231114221314000", "20231114221315000", "g-0")
    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(harness.write(tx, "g-0"))
    harness.archive("20231114221314000")
    assert harness.open().resolve(tx.instant) is Outcome.COMMITTED


@pytest.mark.parametrize("state", [State.REQUESTED, State.COMPLETED])
def test_an_unfinished_claim_is_voided_when_a_foreign_instant_appeared(harness: Any, at: At, state: State) -> None:
    harness.foreign = True
    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(harness.write(tx, "g-0"))
    foreign = Instant("20231114221320009", "commit", state, "20231114221320010" if state is State.COMPLETED else None)
    if state is State.COMPLETED:
        harness.foreign_commit(foreign.requested, foreign.completion, "g-0")
    else:
        harness.storage.replace(LAYOUT_2.path(foreign), b"")
    assert harness.open().resolve(tx.instant) is Outcome.ABORTED
    assert [claim.kind for claim in harness.claims()] == [ClaimKind.PUBLISH, ClaimKind.VOID]
    assert [name for name in harness.names("p") if tx.instant in name] == []


def test_an_unfinished_claim_is_voided_when_a_foreign_cleaner_rolled_it_back(harness: Any, at: At) -> None:
    harness.foreign = True
    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(harness.write(tx, "g-0"))
    rolled_back = Instant("20231114221320100", "rollback", State.INFLIGHT).as_completed("20231114221320101")
    for state in (State.INFLIGHT, State.REQUESTED):
        harness.storage.delete(LAYOUT_2.path(Instant(tx.instant, "commit", state)))
    harness.storage.replace(LAYOUT_2.path(rolled_back), b"")
    assert harness.open().resolve(tx.instant) is Outcome.ABORTED
    assert harness.claims()[-1].kind is ClaimKind.VOID
    following = harness.open().begin("commit", "UPSERT")
    assert following.publish(harness.write(following, "g-0")).is_committed


def test_a_voided_claim_does_not_conflict(harness: Any, at: At) -> None:
    harness.foreign = True
    other = harness.open().begin("commit", "UPSERT")
    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(harness.write(tx, "g-0"))
    harness.storage.replace(LAYOUT_2.path(Instant("20231114221320009", "commit", State.REQUESTED)), b"")
    assert other.publish(harness.write(other, "g-0")).is_committed


def test_a_foreign_commit_during_the_publish_is_detected_named_and_stops_writers(harness: Any, at: At) -> None:
    harness.foreign = True

    def break_in() -> None:
        harness.foreign_commit("20231114221319990", "20231114221320013", "g-0")

    tx = harness.open(trace=at(StopPoint.PUBLISH_LOOKED_AGAIN, break_in)).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert result.outcome is Outcome.COMMITTED
    assert "20231114221319990" in result.warnings[0]
    transactions = harness.open()
    with pytest.raises(PossibleLostUpdate, match="20231114221319990") as caught:
        transactions.begin("commit", "UPSERT")
    assert (caught.value.instant, caught.value.other) == (tx.instant, "20231114221319990")
    assert transactions.notices.acknowledge(tx.instant)
    assert not transactions.notices.acknowledge(tx.instant)
    assert transactions.begin("commit", "UPSERT").instant


def test_a_foreign_rollback_after_completion_is_detected(harness: Any, at: At) -> None:
    harness.foreign = True

    def roll_back() -> None:
        for name in harness.names(LAYOUT_2.folder):
            harness.storage.delete(f"{LAYOUT_2.folder}/{name}")

    tx = harness.open(trace=at(StopPoint.PUBLISH_LOOKED_AGAIN, roll_back)).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert result.outcome is Outcome.UNKNOWN
    assert "gone from the timeline" in result.reason
    with pytest.raises(PossibleLostUpdate):
        harness.open().begin("commit", "UPSERT")


def test_a_foreign_commit_in_a_table_without_foreign_writers_turns_the_flag_off(harness: Any) -> None:
    transactions = harness.open()
    tx = transactions.begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.foreign_commit("20231114221319990", "20231114221320003", "g-0")
    harness.clock.advance(2)  # a listing of the last second is believed
    assert tx.publish(metadata).conflict.other == "20231114221319990"
    assert transactions.notices.foreign_writer_seen
    assert harness.names(NOTICE_FOLDER) == ["foreign-writer.json"]
    other = harness.open()
    other.begin("commit", "UPSERT").abort("enough")
    assert other.notices.foreign_writer_seen


def test_the_skew_wait_is_kept_only_with_foreign_writers(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(harness.clock, "sleep", slept.append)
    key = {"hoodie__time__generator__max_expected_clock_skew_ms": 200}
    for foreign in (False, True):
        harness.foreign = foreign
        tx = harness.open(**key).begin("commit", "UPSERT")
        assert tx.publish(harness.write(tx, "g-0")).is_committed
    assert slept == [pytest.approx(0.2, abs=0.01)] * 2, "at the begin, and at the end"


def test_a_time_that_an_archived_foreign_commit_had_is_not_given_again(harness: Any) -> None:
    """A clock that is behind may come to it: a file of ours would have the name of one that is there."""
    harness.foreign = True
    taken = LAYOUT_2.time(harness.clock.wall_ms() + 40)
    harness.foreign_commit(taken, taken, "g-0")
    harness.archive(taken)
    assert harness.open().begin("commit", "UPSERT").instant > taken


def test_archived_times_that_no_clock_can_come_to_hold_nobody_up(harness: Any) -> None:
    harness.foreign = True
    far = LAYOUT_2.time(harness.clock.wall_ms() + 10_000_000)
    harness.foreign_commit(far, far, "g-0")
    harness.archive(far)
    assert harness.open().begin("commit", "UPSERT").instant < far
