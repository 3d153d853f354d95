"""A merge-on-read table of version 6 that is compacted and archived under its writers.

`HUDI_LOCKS_HISTORIES=1500` plays more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import hypothesis
import pytest
from history_digest import do_one_step_at_a_time
from hypothesis import strategies as st
from old_logging_simulator import OldLoggingSimulator, play_old_logs, play_old_logs_beside_jvm
from transaction_plays import Dealt

from hudi_locks.format.claim import ClaimKind
from hudi_locks.services.compaction import OldLogsBelow
from hudi_locks.transaction.concurrent_writes import ConcurrentWrites
from hudi_locks.transaction.rollback import Rollback

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "12"))
PLAYS = {"native": play_old_logs, "beside a JVM": play_old_logs_beside_jvm}
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def one_step_at_a_time(monkeypatch: Patch) -> None:
    do_one_step_at_a_time(monkeypatch.setattr)


@pytest.mark.histories
@pytest.mark.parametrize("name", PLAYS)
def test_readers_see_every_write_once_at_any_time(name: str) -> None:
    simulators = [PLAYS[name](seed) for seed in range(HISTORIES)]
    for seed, simulator in enumerate(simulators):
        assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    assert sum(len(simulator.compacted) for simulator in simulators) > HISTORIES
    assert sum(simulator.has_logs_above_plans() for simulator in simulators) > HISTORIES / 4
    assert name == "native" or any(simulator.has_archived() for simulator in simulators)
    assert any(process.is_crashed for simulator in simulators for process in simulator.processes)
    ended = {claim.kind for simulator in simulators for claim in simulator.claims() if claim.action == "compaction"}
    assert ended >= {ClaimKind.SCHEDULE, ClaimKind.PUBLISH}
    assert ClaimKind.ROLLBACK in ended or name != "native"


@pytest.mark.histories
@hypothesis.settings(max_examples=max(6, HISTORIES // 5), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(dealt=st.lists(st.integers(0, 2**16 - 1), max_size=300), seed=st.integers(0, 59))
def test_histories_that_are_searched_for_are_so_too(dealt: list[int], seed: int) -> None:
    simulator = play_old_logs(seed, rng=Dealt(tuple(dealt)))
    assert simulator.wrong() == "", "\n".join(simulator.trail)


# ---- planted breaks: each drops one rule, and must be found ----


def write_without_a_look_at_plans(patch: Patch) -> None:
    """A compaction is planned beside a pending write that does not know of it, and the write does not look."""
    patch.setattr(ConcurrentWrites, "_hides_logs", lambda *_: False)


def merge_beside_who_began_before(patch: Patch) -> None:
    """A JVM writer that looks for no plan completes below the base file."""
    patch.setattr(OldLogsBelow, "describe", lambda *_: "")


def take_plans_back(patch: Patch) -> None:
    patch.setattr(Rollback, "keeps_plan", lambda *_: False)


BREAKS: list[tuple[Callable[[Patch], None], Callable[..., OldLoggingSimulator]]] = [
    (write_without_a_look_at_plans, play_old_logs),
    (merge_beside_who_began_before, partial(play_old_logs_beside_jvm, heeds=False)),
    (take_plans_back, play_old_logs),
]


@pytest.mark.parametrize(("plant", "play"), BREAKS, ids=[plant.__name__ for plant, _ in BREAKS])
def test_each_rule_that_is_dropped_is_found(
    monkeypatch: Patch, plant: Callable[[Patch], None], play: Callable[..., OldLoggingSimulator]
) -> None:
    plant(monkeypatch)
    assert any("JVM sees" in play(seed).wrong() for seed in range(30))
