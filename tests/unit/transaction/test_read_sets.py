"""What a write rests on beside what it changes: keys that were nowhere, file groups that it left as they are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import pytest

from hudi_locks.errors import WriteConflict
from hudi_locks.format import CommitMetadata
from hudi_locks.format.claim import FileGroupId
from hudi_locks.transaction import Outcome, ReadSet, StopPoint

THEIRS = "20231114221319990"


@dataclass
class Keys:
    """New keys of partition p; finds `found` in whatever it is asked for."""

    found: tuple[str, ...] = ("k",)
    partitions: frozenset[str] = frozenset({"p"})
    asked: list[tuple[str, set[str]]] = field(default_factory=list)

    def find_among(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        self.asked.append((instant, set(paths)))
        return self.found


def publish_beside(harness: Any, keys: Keys, partition: str = "p") -> tuple[Any, Any]:
    """Publish into g-0 while another writer was first with h-0."""
    first, second = harness.open().begin("commit", "INSERT"), harness.open().begin("commit", "UPSERT")
    assert first.publish(harness.write(first, "h-0", partition=partition)).is_committed
    return first, second.publish(harness.write(second, "g-0"), reads=ReadSet(absent_keys=keys))


def test_a_key_that_another_write_brought_meanwhile_is_a_conflict(harness: Any) -> None:
    keys = Keys()
    first, result = publish_beside(harness, keys)
    assert (result.outcome, result.conflict.keys, result.conflict.groups) == (Outcome.ABORTED, ("k",), ())
    assert keys.asked[-1] == (first.instant, {f"p/h-0_0-0-0_{first.instant}.parquet"})
    with pytest.raises(WriteConflict, match="record key 'k' of partition 'p'; the other came first") as caught:
        result.raise_unless_committed()
    error = caught.value
    assert (error.keys, error.partition, error.other) == (("k",), "p", first.instant)
    assert "finds the keys and updates their rows" in error.advice


@pytest.mark.parametrize(
    ("keys", "partition", "is_asked"),
    [(Keys(found=()), "p", True), (Keys(), "q", False), (Keys(partitions=frozenset()), "p", False)],
)
def test_other_keys_and_other_partitions_are_none(harness: Any, keys: Keys, partition: str, is_asked: bool) -> None:
    _, result = publish_beside(harness, keys, partition)
    assert (result.outcome, bool(keys.asked)) == (Outcome.COMMITTED, is_asked)


def test_what_the_snapshot_shows_is_not_looked_at(harness: Any) -> None:
    harness.commit("h-0")
    keys, tx = Keys(), harness.open().begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0"), reads=ReadSet(absent_keys=keys)).is_committed
    assert keys.asked == []


@pytest.mark.parametrize("is_archived", [False, True])
def test_keys_of_foreign_writers_are_looked_for_too(harness: Any, is_archived: bool) -> None:
    harness.foreign = True
    keys, tx = Keys(), harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.foreign_commit(THEIRS, "20231114221320003", "h-0")
    if is_archived:
        harness.archive(THEIRS)
    result = tx.publish(metadata, reads=ReadSet(absent_keys=keys))
    assert (result.outcome, result.conflict.other, result.conflict.keys) == (Outcome.ABORTED, THEIRS, ("k",))


def test_keys_are_looked_for_before_the_lock_is_taken(harness: Any, at: Any) -> None:
    """And once more within it, which finds the answers known, and what came in between."""
    keys, before = Keys(), list[str]()
    locked = at(StopPoint.PUBLISH_LOCKED, lambda: before.extend(instant for instant, _ in keys.asked))
    tx = harness.open(trace=locked).begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    other = harness.commit("h-0")
    assert tx.publish(metadata, reads=ReadSet(absent_keys=keys)).conflict.keys == ("k",)
    assert before == [other]


def reading(*file_ids: str, partition: str = "p") -> ReadSet:
    return ReadSet(groups=frozenset(FileGroupId(partition, file_id) for file_id in file_ids))


@pytest.mark.parametrize(("read", "is_conflict"), [("g-0", True), ("h-0", False)])
@pytest.mark.parametrize("is_foreign", [False, True])
def test_a_file_group_that_was_only_looked_at_must_not_have_changed(
    harness: Any, read: str, is_conflict: bool, is_foreign: bool
) -> None:
    harness.foreign = is_foreign
    tx = harness.open().begin("commit", "UPSERT")
    if is_foreign:
        harness.foreign_commit(THEIRS, "20231114221320003", "g-0")
    else:
        harness.commit("g-0")
    result = tx.publish(CommitMetadata(operation="UPSERT"), reads=reading(read))
    assert result.is_committed is not is_conflict
    if is_conflict:
        assert (result.conflict.is_read, result.conflict.groups) == (True, (("p", "g-0"),))
        assert f"changed file group g-0 of partition 'p', which decided what instant {tx.instant}" in result.reason


def test_with_buckets_the_bucket_must_not_have_come_into_being(harness: Any) -> None:
    options = {"hoodie__index__type": "BUCKET"}
    tx = harness.open(**options).begin("commit", "DELETE")
    harness.commit("00000001-theirs-0")
    result = tx.publish(CommitMetadata(operation="DELETE"), reads=reading("00000001-ours-0", "00000002-ours-0"))
    assert result.conflict.groups == (("p", "00000001-ours-0"),)


@pytest.mark.parametrize("is_done", [False, True])
def test_clustering_of_what_was_looked_at_matters_once_it_is_done(
    harness: Any, is_done: bool, clustering_plan: Callable[..., bytes]
) -> None:
    """Then rows lie in other file groups, where nobody would notice the next change."""
    harness.foreign = True
    tx = harness.open().begin("commit", "UPSERT")
    harness.storage.create_if_absent(f".hoodie/timeline/{THEIRS}.clustering.requested", clustering_plan(("p", "g-0")))
    if is_done:
        metadata = CommitMetadata.of((), "CLUSTER", schema="{}", replaced_file_ids={"p": ("g-0",)})
        completed = f".hoodie/timeline/{THEIRS}_20231114221320003.replacecommit"
        harness.storage.replace(completed, metadata.encode("replacecommit", layout_version=2))
    result = tx.publish(CommitMetadata(operation="UPSERT"), reads=reading("g-0"))
    assert result.is_committed is not is_done
