"""What takes part in a commit is prepared inside the lock, before the claim, and can refuse it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from transaction_harness import OPEN_LOCK, Harness, HarnessClock

from hudi_locks.errors import StorageError, WriteAborted
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import CommitParticipant, Outcome, PreparedCommit, Transactions


@pytest.fixture
def harness() -> Harness:
    clock = HarnessClock()
    return Harness(clock, MemoryStorage(clock))


@dataclass
class Participant:
    """Notes what it is asked, and how many claims were there."""

    harness: Harness
    act: Callable[[PreparedCommit], None] = lambda commit: None
    asked: list[PreparedCommit] = field(default_factory=list)
    claims: list[int] = field(default_factory=list)

    def prepare(self, commit: PreparedCommit) -> None:
        self.asked.append(commit)
        self.claims.append(len(self.harness.claims()))
        self.act(commit)


def open_with(harness: Harness, *participants: CommitParticipant, **options: Any) -> Transactions:
    table: Any = SimpleNamespace(
        storage=harness.storage,
        layout=LAYOUT_2,
        config=SimpleNamespace(table_type="COPY_ON_WRITE", version=8, extra={}),
    )
    given = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control", **options}
    return Transactions(table, OPEN_LOCK, options=given, clock=harness.clock, participants=participants)


def fail(error: Exception) -> Callable[[PreparedCommit], None]:
    def act(_commit: PreparedCommit) -> None:
        raise error

    return act


def test_a_participant_is_asked_before_the_claim_with_what_will_be_committed(harness: Harness) -> None:
    first, second = Participant(harness), Participant(harness)
    tx = open_with(harness, first, second).begin("commit", "UPSERT")
    written = harness.write(tx, "g-0")
    assert tx.publish(written).is_committed
    (commit,) = first.asked
    assert commit.instant.requested == tx.instant
    assert commit.metadata.paths == written.paths
    assert commit.timeline.get(tx.instant) is not None
    assert (first.claims, second.claims, len(harness.claims())) == ([0], [0], 1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(WriteAborted("the index is behind"), "the index is behind"), (StorageError("no answer"), "the store failed")],
)
def test_a_participant_that_refuses_or_fails_leaves_nothing_published(
    harness: Harness, error: Exception, reason: str
) -> None:
    later = Participant(harness)
    tx = open_with(harness, Participant(harness, fail(error)), later).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert result.outcome is Outcome.ABORTED
    assert reason in result.reason
    assert later.asked == []
    assert harness.timeline().completed(("commit",)) == ()


def test_a_participant_is_asked_again_when_another_claim_was_first(harness: Harness) -> None:
    others = [lambda: harness.commit("h-0")]

    def let_another_be_first(_commit: PreparedCommit) -> None:
        while others:
            others.pop()()

    participant = Participant(harness, let_another_be_first)
    tx = open_with(harness, participant).begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0")).is_committed
    assert participant.claims == [0, 1]
