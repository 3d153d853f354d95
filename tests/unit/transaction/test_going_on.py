"""Going on under the same instant from a later snapshot: when a write may, and what it leaves behind."""

from __future__ import annotations

from typing import Any

from hudi_locks.format import CommitMetadata
from hudi_locks.services import TableServices
from hudi_locks.table import BaseFile, create_partition_metadata, latest_base_files
from hudi_locks.transaction import Outcome


def newest(harness: Any, timeline: Any) -> dict[str, BaseFile]:
    return {file.file_id: file for file in latest_base_files(harness.storage, timeline, partitions="p")}


def overtake(harness: Any, *groups: str) -> tuple[Any, Any]:
    """A write that one which began before it is quicker than, and what it made of g and h."""
    quicker, tx = (harness.open().begin("commit", "UPSERT") for _ in range(2))
    made = harness.write(tx, "g-0", "h-0")
    assert quicker.publish(harness.write(quicker, *groups)).is_committed
    return tx, made


def test_what_stays_and_what_is_written_again_are_published_together(harness: Any) -> None:
    harness.commit("g-0", "h-0")
    tx, made = overtake(harness, "g-0")
    later = tx.look_again()
    outdated, kept = made.stats
    assert tx.go_on(later, bases=[newest(harness, later.timeline)["g-0"]])
    [again] = harness.write(tx, "g-0", data=b"again").stats
    draft = CommitMetadata.of([again, kept], "UPSERT", schema="{}")
    assert tx.check_conflict(draft) is None
    assert tx.publish(draft).is_committed
    assert (again.path, again.ticket != outdated.ticket) == (outdated.path, True)
    assert [harness.storage.read(stat.path) for stat in (again, kept)] == [b"again", b"rows"]
    assert not harness.storage.redeem(outdated.ticket, outdated.path)
    assert {file.instant for file in newest(harness, harness.timeline()).values()} == {tx.instant}


def test_what_comes_after_the_later_snapshot_is_a_conflict_still(harness: Any) -> None:
    harness.commit("g-0", "h-0")
    third = harness.open().begin("commit", "UPSERT")
    tx, made = overtake(harness, "g-0")
    later = tx.look_again()
    assert tx.go_on(later, bases=[newest(harness, later.timeline)["g-0"]])
    harness.write(tx, "g-0")
    assert third.publish(harness.write(third, "h-0")).is_committed
    result = tx.publish(made)
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, third.instant)
    assert [name for name in harness.names("p") if tx.instant in name] == []


def test_nothing_is_built_on_a_file_that_was_begun_later(harness: Any) -> None:
    harness.commit("g-0", "h-0")
    tx = harness.open().begin("commit", "UPSERT")
    made = harness.write(tx, "g-0", "h-0")
    harness.commit("g-0")
    later = tx.look_again()
    assert not tx.go_on(later, bases=[newest(harness, later.timeline)["g-0"]])
    assert tx.publish(made).conflict is not None


def test_a_write_that_was_rolled_back_does_not_go_on(harness: Any) -> None:
    tx, made = overtake(harness, "g-0")
    tx._state.heartbeat.pause()
    harness.clock.advance(7200)
    assert harness.open().roll_back_failed() == [tx.instant]
    assert tx.look_again() is None
    assert tx.publish(made).outcome is Outcome.ABORTED


def test_a_write_that_a_restore_undid_does_not_go_on(harness: Any) -> None:
    create_partition_metadata(harness.storage, "p", instant="0")
    harness.commit("g-0")
    services = TableServices(harness.open(), {})
    first = services.savepoints.create().instant
    tx, made = overtake(harness, "k-0")
    services.restore(first)
    assert tx.look_again() is None
    assert tx.publish(made).outcome is Outcome.ABORTED


def test_what_looks_for_conflicts_early_goes_by_the_later_snapshot(harness: Any) -> None:
    harness.commit("g-0", "h-0")
    tx, _ = overtake(harness, "g-0")
    before, later = tx.files, tx.look_again()
    assert tx.go_on(later, bases=[newest(harness, later.timeline)["g-0"]])
    assert tx.files is not before
