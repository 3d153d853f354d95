"""The delay that RFC-56 allows: what passes the early look together meets at the publish."""

from __future__ import annotations

from collections.abc import Callable, Set
from itertools import permutations
from typing import ClassVar

import pytest
from transaction_desk import Desk

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


def open_looking(desk: Desk) -> Transactions:
    return desk.open(**{f"{PREFIX}enable": "true", f"{PREFIX}strategy": f"{__name__}:Seam"})


@pytest.mark.parametrize("stopped", [0, 1])
@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_of_two_that_both_passed_and_wrote_exactly_one_commits(
    desk: Desk, stopped: int, order: tuple[int, int]
) -> None:
    transactions = [open_looking(desk).begin("commit", "UPSERT") for _ in range(2)]
    written = {}

    def write(number: int) -> None:
        written[number] = desk.write(transactions[number], "f")

    Seam.action.append(lambda: write(1 - stopped))
    write(stopped)
    assert all(desk.names(f".hoodie/.temp/{tx.instant}/p") for tx in transactions), "both announced it, and wrote"
    results = [transactions[number].publish(written[number]) for number in order]
    assert [result.outcome for result in results] == [Outcome.COMMITTED, Outcome.ABORTED]
    conflict = results[1].conflict
    assert conflict is not None
    assert (conflict.groups, conflict.other) == ((FileGroupId("p", "f"),), transactions[order[0]].instant)
    assert not conflict.is_early


def test_one_that_comes_a_moment_later_is_stopped_before_it_writes(desk: Desk) -> None:
    first, second = (open_looking(desk).begin("commit", "UPSERT") for _ in range(2))
    metadata = desk.write(first, "f")
    with pytest.raises(HoodieEarlyConflictDetectionException, match=first.instant):
        desk.write(second, "f")
    assert first.publish(metadata).outcome is Outcome.COMMITTED


def test_the_driver_raises_it_with_the_facts_that_the_task_told(desk: Desk) -> None:
    first, second = (open_looking(desk).begin("commit", "UPSERT") for _ in range(2))
    metadata = desk.write(first, "f")
    with pytest.raises(HoodieEarlyConflictDetectionException) as told:
        desk.write(second, "f")
    result = PublishResult(second.instant, Outcome.ABORTED, conflict=second.find_early_conflict())
    with pytest.raises(HoodieEarlyConflictDetectionException) as raised:
        result.raise_unless_committed()
    assert told.value.facts.items() <= raised.value.facts.items()
    assert (raised.value.kind, raised.value.other) == ("marker", first.instant)
    assert first.publish(metadata).outcome is Outcome.COMMITTED


def test_a_commit_that_was_met_early_names_its_writer_as_a_publish_does(desk: Desk) -> None:
    checks = {f"{PREFIX}enable": "true", "hoodie.write.concurrency.early.conflict.check.commit.conflict": "true"}
    looking, plain = desk.open(**checks), desk.open()
    early, late, first = (each.begin("commit", "UPSERT") for each in (looking, plain, plain))
    left_to_the_publish = desk.write(late, "f")
    assert first.publish(desk.write(first, "f")).outcome is Outcome.COMMITTED
    with pytest.raises(HoodieEarlyConflictDetectionException) as met:
        desk.write(early, "f")
    found, told = early.find_early_conflict(), late.publish(left_to_the_publish).conflict
    assert (met.value.kind, met.value.other) == ("commit", first.instant)
    assert found is not None
    assert told is not None
    assert found.other_writer == told.other_writer
    assert (found.other_action, found.other_age_ms) == (told.other_action, told.other_age_ms)


def test_a_commit_of_the_jvm_that_was_met_early_is_said_to_be_one(desk: Desk) -> None:
    checks = {f"{PREFIX}enable": "true", "hoodie.write.concurrency.early.conflict.check.commit.conflict": "true"}
    early = desk.open(**checks).begin("commit", "UPSERT")
    desk.foreign_commit("20990101000000000", "20990101000000001", "f")
    with pytest.raises(HoodieEarlyConflictDetectionException):
        desk.write(early, "f")
    found = early.find_early_conflict()
    assert found is not None
    assert found.other_writer == "a JVM writer"
