"""The delay that RFC-56 allows: what passes the early look together meets at the publish."""

from __future__ import annotations

from collections.abc import Callable, Set
from itertools import permutations
from typing import ClassVar

import pytest
from transaction_harness import Harness

from hudi_locks.early_conflict import EarlyConflict, SimpleDirectMarkerBased
from hudi_locks.errors import HoodieEarlyConflictDetectionException
from hudi_locks.format.claim import FileGroupId
from hudi_locks.transaction import Outcome, PublishResult, Transactions

PREFIX = "hoodie.write.concurrency.early.conflict.detection."


class Seam(SimpleDirectMarkerBased):
    """Does something between the first look and the marker."""

    action: ClassVar[list[Callable[[], object]]] = []

    def find_conflict(self, groups: Set[FileGroupId]) -> EarlyConflict | None:
        found = super().find_conflict(groups)
        if self.action:
            self.action.pop()()
        return found


def open_looking(harness: Harness) -> Transactions:
    return harness.open(**{f"{PREFIX}enable": "true", f"{PREFIX}strategy": f"{__name__}:Seam"})


@pytest.mark.parametrize("stopped", [0, 1])
@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_of_two_that_both_passed_and_wrote_exactly_one_commits(
    harness: Harness, stopped: int, order: tuple[int, int]
) -> None:
    transactions = [open_looking(harness).begin("commit", "UPSERT") for _ in range(2)]
    written = {}

    def write(number: int) -> None:
        written[number] = harness.write(transactions[number], "f")

    Seam.action.append(lambda: write(1 - stopped))
    write(stopped)
    assert all(harness.names(f".hoodie/.temp/{tx.instant}/p") for tx in transactions), "both announced it, and wrote"
    results = [transactions[number].publish(written[number]) for number in order]
    assert [result.outcome for result in results] == [Outcome.COMMITTED, Outcome.ABORTED]
    conflict = results[1].conflict
    assert conflict is not None
    assert (conflict.groups, conflict.other) == ((FileGroupId("p", "f"),), transactions[order[0]].instant)
    assert not conflict.is_early


def test_one_that_comes_a_moment_later_is_stopped_before_it_writes(harness: Harness) -> None:
    first, second = (open_looking(harness).begin("commit", "UPSERT") for _ in range(2))
    metadata = harness.write(first, "f")
    with pytest.raises(HoodieEarlyConflictDetectionException, match=first.instant):
        harness.write(second, "f")
    assert first.publish(metadata).outcome is Outcome.COMMITTED


def test_the_driver_raises_it_with_the_facts_that_the_task_told(harness: Harness) -> None:
    first, second = (open_looking(harness).begin("commit", "UPSERT") for _ in range(2))
    metadata = harness.write(first, "f")
    with pytest.raises(HoodieEarlyConflictDetectionException) as told:
        harness.write(second, "f")
    result = PublishResult(second.instant, Outcome.ABORTED, conflict=second.find_early_conflict())
    with pytest.raises(HoodieEarlyConflictDetectionException) as raised:
        result.raise_unless_committed()
    assert told.value.facts.items() <= raised.value.facts.items()
    assert (raised.value.kind, raised.value.other) == ("marker", first.instant)
    assert first.publish(metadata).outcome is Outcome.COMMITTED


def test_a_commit_that_was_met_early_names_its_writer_as_a_publish_does(harness: Harness) -> None:
    checks = {f"{PREFIX}enable": "true", "hoodie.write.concurrency.early.conflict.check.commit.conflict": "true"}
    looking, plain = harness.open(**checks), harness.open()
    early, late, first = (each.begin("commit", "UPSERT") for each in (looking, plain, plain))
    left_to_the_publish = harness.write(late, "f")
    assert first.publish(harness.write(first, "f")).outcome is Outcome.COMMITTED
    with pytest.raises(HoodieEarlyConflictDetectionException) as met:
        harness.write(early, "f")
    found, told = early.find_early_conflict(), late.publish(left_to_the_publish).conflict
    assert (met.value.kind, met.value.other) == ("commit", first.instant)
    assert found is not None
    assert told is not None
    assert found.other_writer == told.other_writer
    assert (found.other_action, found.other_age_ms) == (told.other_action, told.other_age_ms)


def test_a_commit_of_the_jvm_that_was_met_early_is_said_to_be_one(harness: Harness) -> None:
    checks = {f"{PREFIX}enable": "true", "hoodie.write.concurrency.early.conflict.check.commit.conflict": "true"}
    early = harness.open(**checks).begin("commit", "UPSERT")
    harness.foreign_commit("20990101000000000", "20990101000000001", "f")
    with pytest.raises(HoodieEarlyConflictDetectionException):
        harness.write(early, "f")
    found = early.find_early_conflict()
    assert found is not None
    assert found.other_writer == "a JVM writer"
