"""Histories of a table of version 6: names tell no completion time, and the archive is of logs.

`HUDI_LOCKS_HISTORIES=5000` plays as many as you like.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest
from old_simulator import OldSimulator
from transaction_plays import play_mixed, play_native

from hudi_locks.format.claim import ClaimKind
from hudi_locks.transaction import Outcome
from hudi_locks.transaction.concurrent_writes import ConcurrentWrites

HISTORIES = max(30, int(os.environ.get("HUDI_LOCKS_HISTORIES", "0")))
PLAYS = {"native": play_native, "mixed": play_mixed}
pytestmark = pytest.mark.histories


@pytest.mark.parametrize("name", PLAYS)
def test_histories_lose_nothing_and_meet_what_they_are_for(name: str) -> None:
    play = partial(PLAYS[name], kind=OldSimulator)
    simulators = [play_sound(play, seed) for seed in range(HISTORIES)]
    kinds = {claim.kind for simulator in simulators for claim in simulator.claims()}
    outcomes = {outcome for simulator in simulators for outcome in simulator.outcomes.values()}
    assert kinds >= {ClaimKind.PUBLISH, ClaimKind.ROLLBACK}
    assert name == "native" or ClaimKind.VOID in kinds
    assert outcomes >= {Outcome.COMMITTED, Outcome.ABORTED}
    assert name == "native" or any(simulator.list_archived() for simulator in simulators)
    assert any("is dead" in line for simulator in simulators for line in simulator.trail)


def test_a_writer_that_looks_for_no_conflict_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted break."""
    monkeypatch.setattr(ConcurrentWrites, "find_conflict", lambda *_: None)
    found = (play_native(seed, kind=OldSimulator).wrong() for seed in range(HISTORIES))
    assert any("lost update" in text for text in found)


def play_sound(play: Any, seed: int) -> Any:
    simulator = play(seed)
    assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    return simulator
