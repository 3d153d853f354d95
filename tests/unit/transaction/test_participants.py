"""What takes part in a commit is prepared inside the lock, before the claim, and can refuse it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from transaction_desk import OPEN_LOCK, Desk, DeskClock

from hudi_locks.errors import StorageError, WriteAborted
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import CommitParticipant, Outcome, PreparedCommit, Transactions


@pytest.fixture
def desk() -> Desk:
    clock = DeskClock()
    return Desk(clock, MemoryStorage(clock))


@dataclass
class Participant:
    """Notes what it is asked, and how many claims were there."""

    desk: Desk
    act: Callable[[PreparedCommit], None] = lambda commit: None
    asked: list[PreparedCommit] = field(default_factory=list)
    claims: list[int] = field(default_factory=list)

    def prepare(self, commit: PreparedCommit) -> None:
        self.asked.append(commit)
        self.claims.append(len(self.desk.claims()))
        self.act(commit)


def open_with(desk: Desk, *participants: CommitParticipant, **options: Any) -> Transactions:
    table: Any = SimpleNamespace(
        storage=desk.storage, layout=LAYOUT_2, config=SimpleNamespace(table_type="COPY_ON_WRITE", extra={})
    )
    given = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control", **options}
    return Transactions(table, OPEN_LOCK, options=given, clock=desk.clock, participants=participants)


def fail(error: Exception) -> Callable[[PreparedCommit], None]:
    def act(_commit: PreparedCommit) -> None:
        raise error

    return act


def test_a_participant_is_asked_before_the_claim_with_what_will_be_committed(desk: Desk) -> None:
    first, second = Participant(desk), Participant(desk)
    tx = open_with(desk, first, second).begin("commit", "UPSERT")
    written = desk.write(tx, "g-0")
    assert tx.publish(written).is_committed
    (commit,) = first.asked
    assert commit.instant.requested == tx.instant
    assert commit.metadata.paths == written.paths
    assert commit.timeline.get(tx.instant) is not None
    assert (first.claims, second.claims, len(desk.claims())) == ([0], [0], 1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(WriteAborted("the index is behind"), "the index is behind"), (StorageError("no answer"), "the store failed")],
)
def test_a_participant_that_refuses_or_fails_leaves_nothing_published(
    desk: Desk, error: Exception, reason: str
) -> None:
    later = Participant(desk)
    tx = open_with(desk, Participant(desk, fail(error)), later).begin("commit", "UPSERT")
    result = tx.publish(desk.write(tx, "g-0"))
    assert result.outcome is Outcome.ABORTED
    assert reason in result.reason
    assert later.asked == []
    assert desk.timeline().completed(("commit",)) == ()


def test_a_participant_is_asked_again_when_another_claim_was_first(desk: Desk) -> None:
    others = [lambda: desk.commit("h-0")]

    def let_another_be_first(_commit: PreparedCommit) -> None:
        while others:
            others.pop()()

    participant = Participant(desk, let_another_be_first)
    tx = open_with(desk, participant).begin("commit", "UPSERT")
    assert tx.publish(desk.write(tx, "g-0")).is_committed
    assert participant.claims == [0, 1]
