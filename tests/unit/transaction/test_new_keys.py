"""Keys that two writers insert into two new file groups, neither seeing the other's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import pytest

from hudi_locks.errors import WriteConflict
from hudi_locks.transaction import Outcome, StopPoint

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


def publish_beside(desk: Any, keys: Keys, partition: str = "p") -> tuple[Any, Any]:
    """Publish into g-0 while another writer was first with h-0."""
    first, second = desk.open().begin("commit", "INSERT"), desk.open().begin("commit", "UPSERT")
    assert first.publish(desk.write(first, "h-0", partition=partition)).is_committed
    return first, second.publish(desk.write(second, "g-0"), new_keys=keys)


def test_a_key_that_another_write_brought_meanwhile_is_a_conflict(desk: Any) -> None:
    keys = Keys()
    first, result = publish_beside(desk, keys)
    assert (result.outcome, result.conflict.keys, result.conflict.groups) == (Outcome.ABORTED, ("k",), ())
    assert keys.asked[-1] == (first.instant, {f"p/h-0_0-0-0_{first.instant}.parquet"})
    with pytest.raises(WriteConflict, match="both change record key 'k'") as caught:
        result.raise_unless_committed()
    assert (caught.value.keys, caught.value.other) == (("k",), first.instant)


@pytest.mark.parametrize(
    ("keys", "partition", "is_asked"),
    [(Keys(found=()), "p", True), (Keys(), "q", False), (Keys(partitions=frozenset()), "p", False)],
)
def test_other_keys_and_other_partitions_are_none(desk: Any, keys: Keys, partition: str, is_asked: bool) -> None:
    _, result = publish_beside(desk, keys, partition)
    assert (result.outcome, bool(keys.asked)) == (Outcome.COMMITTED, is_asked)


def test_what_the_snapshot_shows_is_not_looked_at(desk: Any) -> None:
    desk.commit("h-0")
    keys, tx = Keys(), desk.open().begin("commit", "UPSERT")
    assert tx.publish(desk.write(tx, "g-0"), new_keys=keys).is_committed
    assert keys.asked == []


@pytest.mark.parametrize("is_archived", [False, True])
def test_keys_of_foreign_writers_are_looked_for_too(desk: Any, is_archived: bool) -> None:
    desk.foreign = True
    keys, tx = Keys(), desk.open().begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    desk.foreign_commit(THEIRS, "20231114221320003", "h-0")
    if is_archived:
        desk.archive(THEIRS)
    result = tx.publish(metadata, new_keys=keys)
    assert (result.outcome, result.conflict.other, result.conflict.keys) == (Outcome.ABORTED, THEIRS, ("k",))


def test_keys_are_looked_for_before_the_lock_is_taken(desk: Any, at: Any) -> None:
    """And once more within it, which finds the answers known, and what came in between."""
    keys, before = Keys(), list[str]()
    locked = at(StopPoint.PUBLISH_LOCKED, lambda: before.extend(instant for instant, _ in keys.asked))
    tx = desk.open(trace=locked).begin("commit", "UPSERT")
    metadata = desk.write(tx, "g-0")
    other = desk.commit("h-0")
    assert tx.publish(metadata, new_keys=keys).conflict.keys == ("k",)
    assert before == [other]
