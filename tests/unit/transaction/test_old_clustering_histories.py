"""A merge-on-read table of version 6 that is clustered, compacted and archived under its writers.

`HUDI_LOCKS_HISTORIES=1500` plays more.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from history_digest import do_one_step_at_a_time
from old_clustering_simulator import OldClusteringSimulator, play_old_clustering, play_old_clustering_beside_jvm
from replacing_breaks import forget_what_is_replaced, let_clustering_win_always

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "8"))
PLAYS = {"native": play_old_clustering, "beside a JVM": play_old_clustering_beside_jvm}
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
    assert sum(len(simulator.clustered) for simulator in simulators) > HISTORIES / 2
    assert any(simulator.compacted for simulator in simulators)
    assert any(process.is_crashed for simulator in simulators for process in simulator.processes)


# ---- planted breaks: each drops one rule, and must be found ----


BREAKS: list[tuple[Callable[[Patch], None], Callable[..., OldClusteringSimulator]]] = [
    (forget_what_is_replaced, play_old_clustering),
    (let_clustering_win_always, play_old_clustering),
    (let_clustering_win_always, play_old_clustering_beside_jvm),
]


@pytest.mark.parametrize(("plant", "play"), BREAKS)
def test_each_rule_that_is_dropped_is_found(
    monkeypatch: Patch, plant: Callable[[Patch], None], play: Callable[..., OldClusteringSimulator]
) -> None:
    plant(monkeypatch)
    assert any("sees" in play(seed).wrong() for seed in range(60))
