"""Writes that end whole partitions: nothing stays that they did not see, and nobody builds on what they ended."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from hudi_locks.errors import DamagedTable, WriteConflict
from hudi_locks.format import CommitMetadata, Instant, State, WriteStat
from hudi_locks.format.claim import claim_path, decode_claim, encode_claim
from hudi_locks.table import latest_base_files, read_commit
from hudi_locks.timeline import LAYOUT_2, read_instant
from hudi_locks.transaction import Outcome, ReadSet, StopPoint

OVERWRITE, TABLE, DELETE = "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"
THEIRS = "20231114221319990"


def begin(harness: Any, **how: Any) -> Any:
    return harness.open(**how).begin("replacecommit", OVERWRITE)


def overwriting(metadata: CommitMetadata, operation: str = OVERWRITE, **replaced: tuple[str, ...]) -> CommitMetadata:
    """What ends the file groups `replaced` and brings those of `metadata`."""
    return dataclasses.replace(metadata, operation=operation, replaced_file_ids=replaced)


def insert(harness: Any, group: str, partition: str = "p") -> str:
    tx = harness.open().begin("commit", "INSERT")
    assert tx.publish(harness.write(tx, group, partition=partition)).is_committed
    return str(tx.instant)


def test_a_replacing_commit_that_is_archived_under_a_writer_still_hides_what_it_replaced(harness: Any) -> None:
    insert(harness, "old-0")
    ended = begin(harness)
    assert ended.publish(overwriting(harness.write(ended, "new-0"), p=("old-0",))).is_committed
    last = insert(harness, "other-0")
    tx = harness.open().begin("commit", "UPSERT")
    harness.archive(ended.instant)
    assert [file.file_id for file in latest_base_files(harness.storage, tx.timeline, partitions="p")] == [
        "new-0",
        "other-0",
    ]
    assert read_commit(harness.storage, tx.timeline, requested=ended.instant).operation == OVERWRITE
    assert tx.publish(harness.write(tx, "new-0")).is_committed
    harness.storage.delete(tx.timeline.paths[tx.timeline.get(last)])
    with pytest.raises(DamagedTable, match="is gone"):
        read_instant(harness.storage, tx.timeline, instant=tx.timeline.get(last))


@pytest.mark.parametrize(
    ("operation", "partition", "is_conflict"),
    [(OVERWRITE, "p", True), (DELETE, "p", True), (OVERWRITE, "q", False), (DELETE, "q", False), (TABLE, "q", True)],
)
def test_what_came_to_an_overwritten_partition_unseen_is_a_conflict(
    harness: Any, operation: str, partition: str, is_conflict: bool
) -> None:
    harness.commit("g-0")
    tx = begin(harness)
    metadata = overwriting(CommitMetadata(), operation, p=("g-0",))
    other = insert(harness, "new-0", partition)
    result = tx.publish(metadata)
    assert result.is_committed is not is_conflict
    if is_conflict:
        assert (result.conflict.other, result.conflict.overwritten) == (other, (partition,))


def test_the_conflict_names_the_partition_and_what_a_retry_does(harness: Any) -> None:
    tx = begin(harness)
    metadata = overwriting(harness.write(tx, "mine-0"), p=())
    other = insert(harness, "new-0")
    with pytest.raises(WriteConflict, match="both change partition 'p', which one of them overwrites") as caught:
        tx.publish(metadata).raise_unless_committed()
    assert (caught.value.other, caught.value.partition, caught.value.overwritten) == (other, "p", ("p",))
    assert "what the other wrote there is then replaced too" in str(caught.value)
    assert [name for name in harness.names("p") if tx.instant in name] == []


def test_two_overwrites_of_a_partition_that_is_still_empty_conflict(harness: Any) -> None:
    first, second = begin(harness), begin(harness)
    theirs, ours = (overwriting(harness.write(tx, f"{tx.instant}-0"), p=()) for tx in (first, second))
    assert first.publish(theirs).is_committed
    assert second.publish(ours).conflict.overwritten == ("p",)


def test_a_write_that_comes_while_the_claim_is_made_is_seen(harness: Any, at: Any) -> None:
    tx = begin(harness, trace=at(StopPoint.PUBLISH_TIMED, lambda: insert(harness, "new-0")))
    assert tx.publish(overwriting(CommitMetadata(), DELETE, p=())).conflict.overwritten == ("p",)


def test_a_retry_from_a_fresh_snapshot_ends_what_came_between(harness: Any) -> None:
    tx = begin(harness)
    insert(harness, "new-0")
    assert tx.publish(overwriting(CommitMetadata(), DELETE, p=())).outcome is Outcome.ABORTED
    again = begin(harness)
    assert again.publish(overwriting(CommitMetadata(), DELETE, p=("new-0",))).is_committed
    claim = harness.claims()[-1]
    assert (claim.overwrites, claim.overwrites_table, claim.action) == ({"p"}, False, "replacecommit")


def test_an_update_of_a_file_group_that_was_replaced_is_a_conflict(harness: Any) -> None:
    harness.commit("g-0")
    tx, other = harness.open().begin("commit", "UPSERT"), begin(harness)
    metadata = harness.write(tx, "g-0")
    assert other.publish(overwriting(CommitMetadata(), DELETE, p=("g-0",))).is_committed
    result = tx.publish(metadata)
    assert (result.conflict.other, result.conflict.file_id) == (other.instant, "g-0")


@pytest.mark.parametrize(("reads", "is_conflict"), [({"p"}, True), ({"q"}, False), (set(), False)])
@pytest.mark.parametrize("operation", [OVERWRITE, TABLE])
def test_keys_that_were_looked_for_where_all_was_overwritten_must_be_looked_for_again(
    harness: Any, operation: str, reads: set[str], is_conflict: bool
) -> None:
    """A row that lost against a row of the table is not written: it would be new, had it come after the overwrite."""
    tx, other = harness.open().begin("commit", "UPSERT"), begin(harness)
    metadata = harness.write(tx, "new-0", partition="r")
    assert other.publish(overwriting(harness.write(other, "theirs-0"), operation, p=())).is_committed
    result = tx.publish(metadata, reads=ReadSet(frozenset(reads)))
    assert result.is_committed is not (is_conflict or (operation == TABLE and bool(reads)))
    if not result.is_committed:
        assert result.conflict.overwritten == tuple(reads)


def test_an_overwrite_that_died_after_its_claim_is_finished_and_met(harness: Any, at: Any) -> None:
    harness.commit("g-0")
    other = begin(harness)

    def die() -> None:
        raise KeyboardInterrupt

    tx = begin(harness, trace=at(StopPoint.PUBLISH_CLAIMED, die))
    with pytest.raises(KeyboardInterrupt):
        tx.publish(overwriting(CommitMetadata(), DELETE, p=("g-0",)))
    assert other.publish(overwriting(CommitMetadata(), DELETE, p=("g-0",))).conflict.other == tx.instant
    completed = harness.timeline().get(tx.instant)
    assert (completed.action, completed.is_completed) == ("replacecommit", True)


def foreign_overwrite(harness: Any, operation: str) -> None:
    """What a JVM writer leaves behind."""
    instant = Instant(THEIRS, "replacecommit", State.COMPLETED, "20231114221320003")
    stats = [WriteStat("p", "theirs-0", f"p/theirs-0_1-2-3_{THEIRS}.parquet")]
    metadata = CommitMetadata.of(stats, operation, schema="{}", replaced_file_ids={"p": ()})
    harness.storage.replace(LAYOUT_2.path(instant), metadata.encode("replacecommit", layout_version=2))


@pytest.mark.parametrize(("operation", "is_conflict"), [(OVERWRITE, True), (TABLE, True), ("CLUSTER", False)])
def test_overwrites_of_the_jvm_are_known_by_their_operation(harness: Any, operation: str, is_conflict: bool) -> None:
    harness.foreign = True
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "new-0")
    foreign_overwrite(harness, operation)
    assert tx.publish(metadata, reads=ReadSet(frozenset({"p"}))).is_committed is not is_conflict


def test_what_the_jvm_brings_to_an_overwritten_partition_is_met(harness: Any) -> None:
    harness.foreign = True
    tx = begin(harness)
    harness.foreign_commit(THEIRS, "20231114221320003", "new-0")
    assert tx.publish(overwriting(CommitMetadata(), DELETE, p=())).conflict.overwritten == ("p",)


def test_claims_of_the_time_before_partitions_were_named_are_read(harness: Any) -> None:
    harness.commit("g-0")
    claim = harness.claims()[0]
    fields = json.loads(harness.storage.read(claim_path(1)))
    old = {name: value for name, value in fields.items() if not name.startswith("overwrites")}
    assert decode_claim(json.dumps(old).encode(), 1) == claim
    told = dataclasses.replace(claim, overwrites=frozenset({"p", "q"}), overwrites_table=True)
    assert decode_claim(encode_claim(told), 1) == told


def test_an_overwrite_of_ours_is_no_foreign_writer_to_a_publish_elsewhere(harness: Any, at: Any) -> None:
    harness.foreign = True
    other = begin(harness)
    theirs = overwriting(harness.write(other, "theirs-0", partition="q"), q=())
    between = at(StopPoint.PUBLISH_LOOKED_AGAIN, lambda: other.publish(theirs))
    tx = harness.open(trace=between).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"), reads=ReadSet(frozenset({"p"})))
    assert (result.outcome, result.warnings) == (Outcome.COMMITTED, ())
    assert harness.names(".hoodie/.hudi_locks/notices") == []
    assert harness.timeline().get(other.instant).is_completed
