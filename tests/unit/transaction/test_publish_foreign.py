"""Publishing beside writers that know nothing of claims."""

from __future__ import annotations

from typing import Any

import pytest
from transaction_desk import At, Killed, kill

from hudi_locks.errors import (
    PossibleLostUpdate,
)
from hudi_locks.format import Instant, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint
from hudi_locks.transaction.foreign_writers import NOTICE_FOLDER


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


def test_a_foreign_commit_of_a_slow_clock_that_was_archived_meanwhile_is_seen(desk: Any) -> None:
    """Its completion time is before the begin of ours, and yet it came later: clocks are off within the bound."""
    desk.foreign = True
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.foreign_commit("20231114221314000", "20231114221315000", "g-0")
    desk.archive("20231114221314000")
    assert tx.publish(metadata).conflict.other == "20231114221314000"


def test_a_foreign_commit_that_was_archived_before_the_write_began_is_no_conflict(desk: Any) -> None:
    """JVM writers archive at once where they keep few commits; the write built on what they left."""
    desk.foreign = True
    desk.foreign_commit("20231114221314000", "20231114221314500", "g-0")
    desk.foreign_commit("20231114221314600", "20231114221314700", "h-0")
    desk.archive("20231114221314000")
    tx = desk.open().begin("commit", "UPSERT")
    assert tx.publish(desk.write(tx, "g-0")).outcome is Outcome.COMMITTED


@pytest.mark.parametrize("archives_meanwhile", [False, True])
def test_the_history_is_read_while_the_lock_is_held_only_if_it_grew_meanwhile(
    desk: Any, at: At, monkeypatch: pytest.MonkeyPatch, archives_meanwhile: bool
) -> None:
    desk.foreign = True
    desk.foreign_commit("20231114221314000", "20231114221314500", "g-0")
    desk.foreign_commit("20231114221314600", "20231114221314700", "g-0")
    desk.foreign_commit("20231114221314800", "20231114221314900", "h-0")
    desk.archive("20231114221314000")
    seen: list[str] = []

    def note(storage: MemoryStorage, path: str, read: Any = MemoryStorage.read) -> Any:
        seen.append(path)
        return read(storage, path)

    def lock() -> None:
        if archives_meanwhile:
            desk.archive("20231114221314600")
        monkeypatch.setattr(MemoryStorage, "read", note)

    tx = desk.open(trace=at(StopPoint.BEGIN_LOCKED, lock)).begin("commit", "UPSERT")
    assert any(path.startswith(LAYOUT_2.archive) for path in seen) is archives_meanwhile
    assert tx.publish(desk.write(tx, "g-0")).outcome is Outcome.COMMITTED


def test_a_foreign_commit_that_was_archived_past_a_pending_one_is_a_conflict(desk: Any) -> None:
    """Readers do not take its files for committed while an older write is on the timeline, so neither did the write."""
    desk.foreign = True
    older = desk.open().begin("commit", "UPSERT")
    desk.foreign_commit("20231114221320100", "20231114221320200", "g-0")
    desk.archive("20231114221320100")
    tx = desk.open().begin("commit", "UPSERT")
    assert tx.publish(desk.write(tx, "g-0")).conflict.other == "20231114221320100"
    older.abort("the end of the test")


def test_an_unfinished_claim_is_voided_when_a_slow_clocks_commit_was_archived_since(desk: Any, at: At) -> None:
    desk.foreign = True
    tx = desk.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(desk.write(tx, "g-0"))
    desk.foreign_commit("20231114221314000", "20231114221315000", "g-0")
    desk.archive("20231114221314000")
    assert desk.open().resolve(tx.instant) is Outcome.ABORTED


def test_what_was_there_before_a_claim_and_is_archived_since_voids_nothing(desk: Any, at: At) -> None:
    desk.foreign = True
    desk.foreign_commit("20231114221314000", "20231114221315000", "g-0")
    tx = desk.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(desk.write(tx, "g-0"))
    desk.archive("20231114221314000")
    assert desk.open().resolve(tx.instant) is Outcome.COMMITTED


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
    rolled_back = Instant("20231114221320100", "rollback", State.INFLIGHT).as_completed("20231114221320101")
    for state in (State.INFLIGHT, State.REQUESTED):
        desk.storage.delete(LAYOUT_2.path(Instant(tx.instant, "commit", state)))
    desk.storage.replace(LAYOUT_2.path(rolled_back), b"")
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
    with pytest.raises(PossibleLostUpdate, match="20231114221319990") as caught:
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
    with pytest.raises(PossibleLostUpdate):
        desk.open().begin("commit", "UPSERT")


def test_a_foreign_commit_in_a_table_without_foreign_writers_turns_the_flag_off(desk: Any) -> None:
    transactions = desk.open()
    tx = transactions.begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.foreign_commit("20231114221319990", "20231114221320003", "g-0")
    desk.clock.advance(2)  # a listing of the last second is believed
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
