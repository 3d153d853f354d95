"""A merge-on-read table of version 6 that goes back in time under its writers and compactors.

`HUDI_LOCKS_HISTORIES=1500` plays more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

import pytest
from history_digest import do_one_step_at_a_time
from old_restoring_simulator import play_old_restores

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import restoring
from hudi_locks.storage import Storage
from hudi_locks.table import list_data_files
from hudi_locks.timeline import Timeline
from hudi_locks.transaction.begin import Begin
from hudi_locks.transaction.concurrent_writes import ConcurrentWrites

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "15"))
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def one_step_at_a_time(monkeypatch: Patch) -> None:
    do_one_step_at_a_time(monkeypatch.setattr)


@pytest.mark.histories
def test_readers_see_what_the_timeline_tells_before_and_after_each_restore() -> None:
    simulators = [play_old_restores(seed) for seed in range(HISTORIES)]
    for seed, simulator in enumerate(simulators):
        assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    assert sum(len(simulator.list_undone()) for simulator in simulators) > HISTORIES
    assert sum(len(simulator.compacted) for simulator in simulators) > HISTORIES
    assert any(process.is_crashed for simulator in simulators for process in simulator.processes)
    assert ClaimKind.RESTORE in {claim.kind for simulator in simulators for claim in simulator.claims()}


# ---- planted breaks: each drops one rule, and must be found ----


def delete_logs_by_their_names(patch: Patch) -> None:
    def list_by_name(storage: Storage, timeline: Timeline, undone: Collection[str]) -> dict[str, frozenset[str]]:
        logs = list_data_files(storage).logs
        return {time: frozenset(log.path for log in logs if log.instant == time) for time in undone}

    patch.setattr(restoring, "list_old_logs", list_by_name)


def undo_compactions_that_were_planned_before(patch: Patch) -> None:
    patch.setattr(restoring, "leave_old_compactions", lambda _storage, _timeline, later, _savepoint: list(later))


def let_a_plan_meet_the_restore_that_it_outlived(patch: Patch) -> None:
    patch.setattr(ConcurrentWrites, "_is_met", lambda *_: True)


def begin_beside_a_restore_that_came_meanwhile(patch: Patch) -> None:
    patch.setattr(Begin, "_read_finished", Begin._read)


BREAKS = (
    delete_logs_by_their_names,
    undo_compactions_that_were_planned_before,
    let_a_plan_meet_the_restore_that_it_outlived,
    begin_beside_a_restore_that_came_meanwhile,
)


@pytest.mark.parametrize("plant", BREAKS, ids=lambda plant: plant.__name__)
def test_each_rule_that_is_dropped_is_found(monkeypatch: Patch, plant: Callable[[Patch], None]) -> None:
    plant(monkeypatch)
    assert any(map(_is_wrong, range(34)))


def _is_wrong(seed: int) -> bool:
    try:
        return play_old_restores(seed).wrong() != ""
    except UnsupportedTable:  # a restore would take what stays
        return True
