"""Logs merged into logs beside writers that do not block; `HUDI_LOCKS_HISTORIES=1500` plays more."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import pytest
from history_digest import do_one_step_at_a_time
from hypothesis import strategies as st
from log_compaction_simulator import play_log_compactions
from transaction_plays import Dealt

from hudi_locks.transaction import concurrent_writes, context, planning
from hudi_locks.transaction.conflicts import ConflictResolutionStrategy

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "30"))
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def one_step_at_a_time(monkeypatch: Patch) -> None:
    do_one_step_at_a_time(monkeypatch.setattr)


@pytest.mark.histories
def test_no_reader_sees_another_order_of_rows_and_no_write_gives_way() -> None:
    """Without a lock, with clocks that differ, answers that are lost, and deaths."""
    simulators = [play_log_compactions(seed) for seed in range(HISTORIES)]
    for seed, simulator in enumerate(simulators):
        assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    assert sum(len(simulator.joined) for simulator in simulators) > HISTORIES / 5
    assert any(simulator.compacted for simulator in simulators if simulator.joined)


@pytest.mark.histories
@hypothesis.settings(max_examples=max(6, HISTORIES // 5), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(dealt=st.lists(st.integers(0, 2**16 - 1), max_size=300), seed=st.integers(0, 59))
def test_histories_that_are_searched_for_are_so_too(dealt: list[int], seed: int) -> None:
    simulator = play_log_compactions(seed, rng=Dealt(tuple(dealt)))
    assert simulator.wrong() == "", "\n".join(simulator.trail)


# ---- planted breaks: each drops some rules, and must be found ----


def plan_beside_writes(patch: Patch) -> None:
    patch.setattr(planning, "INGESTION", ())


def publish_beside_writes(patch: Patch) -> None:
    patch.setattr(concurrent_writes, "earlier_operations", lambda *_, **__: ())


def begin_behind_a_plan(patch: Patch) -> None:
    patch.setattr(context, "_LOG_COMPACTION", "nothing")


def forget_the_order(patch: Patch) -> None:
    def see_nothing(*_: Any) -> bool:
        return False

    patch.setattr(ConflictResolutionStrategy, "_is_order_broken", see_nothing)


@pytest.mark.histories
@pytest.mark.parametrize(
    ("rules", "likely", "found"),
    [
        ((plan_beside_writes, publish_beside_writes), 0, "a write met another"),
        ((begin_behind_a_plan, publish_beside_writes), 90, "a write met another"),
        ((plan_beside_writes, publish_beside_writes, forget_the_order), 0, "readers disagree"),
        ((begin_behind_a_plan, publish_beside_writes, forget_the_order), 18, "readers disagree"),
    ],
)
def test_rules_that_are_dropped_are_found(rules: Any, likely: int, found: str, monkeypatch: Patch) -> None:
    """The claims alone keep the order; the other rules see to it that no write pays for that."""
    for plant in rules:
        plant(monkeypatch)
    assert any(goes_wrong(seed).startswith(found) for seed in (likely, *range(300)))


def goes_wrong(seed: int) -> str:
    """By what readers see, or by a log compaction that sees it first."""
    try:
        return play_log_compactions(seed).wrong()
    except AssertionError as error:
        return f"readers disagree: {error}"
