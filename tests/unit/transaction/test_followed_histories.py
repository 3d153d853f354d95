"""Processes that keep what they know of the timeline, in seeded histories; `HUDI_LOCKS_HISTORIES=300` plays more."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import pytest
from followed_simulator import play_followed
from history_digest import do_one_step_at_a_time
from hypothesis import strategies as st
from transaction_plays import Dealt

from hudi_locks.errors import TableError
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import known_timeline

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "12"))
Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.histories


@pytest.fixture(autouse=True)
def one_step_at_a_time(monkeypatch: Patch) -> None:
    do_one_step_at_a_time(monkeypatch.setattr)


def test_histories_of_processes_that_go_by_claims_are_serialisable_and_meet_what_they_are_for(
    monkeypatch: Patch,
) -> None:
    followed: list[int] = []
    completing = Timeline.completing

    def count(self: Timeline, writes: Any) -> Timeline:
        followed.append(len(writes))
        return completing(self, writes)

    monkeypatch.setattr(Timeline, "completing", count)
    for seed in range(HISTORIES):
        simulator = play_followed(seed)
        assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
        assert not simulator.files.exists(".hoodie/.hudi_locks/notices/foreign-writer.json")
    assert sum(map(bool, followed)) > 3 * HISTORIES
    assert max(followed) > 1


@hypothesis.settings(max_examples=max(3, HISTORIES // 5), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(dealt=st.lists(st.integers(0, 2**16 - 1), max_size=300), seed=st.integers(0, 59))
def test_such_histories_that_are_searched_for_are_so_too(dealt: list[int], seed: int) -> None:
    simulator = play_followed(seed, rng=Dealt(tuple(dealt)))
    assert simulator.wrong() == "", "\n".join(simulator.trail)


def test_a_snapshot_without_what_was_claimed_since_is_found(monkeypatch: Patch) -> None:
    monkeypatch.setattr(known_timeline, "_find_published", lambda *_: [])
    assert any(goes_wrong(seed) for seed in range(60))


def goes_wrong(seed: int) -> bool:
    """By what the table holds in the end, by an alarm of the product, or by never ending."""
    try:
        return bool(play_followed(seed).wrong())
    except (AssertionError, TableError):
        return True
