"""A merge-on-read table cleaned and archived under its writers; `HUDI_LOCKS_HISTORIES=1500` plays more."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
from clean_breaks import judge_by_names, take_pending_for_completed
from history_digest import do_one_step_at_a_time
from hypothesis import strategies as st
from kept_logs_simulator import KeptLogsSimulator, play_kept_logs, play_loaded_logs
from transaction_plays import Dealt

from hudi_locks.errors import TableError
from hudi_locks.services import Archiver, archival
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Outcome
from hudi_locks.transaction.conflicts import NonBlocking

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "12"))
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def one_step_at_a_time(monkeypatch: Patch) -> None:
    do_one_step_at_a_time(monkeypatch.setattr)


@pytest.mark.histories
def test_readers_see_every_promised_snapshot_whole_whatever_cleans_and_archives_beside_them() -> None:
    simulators = [play_kept_logs(seed) for seed in range(HISTORIES)]
    for seed, simulator in enumerate(simulators):
        assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    assert sum(simulator.deleted() for simulator in simulators) >= HISTORIES / 4
    assert sum(bool(simulator.archived()) for simulator in simulators) > HISTORIES / 2
    assert any(process.is_crashed for simulator in simulators for process in simulator.processes)


@pytest.mark.histories
def test_bulk_inserts_give_way_to_who_was_faster_and_hide_nothing() -> None:
    simulators = [play_loaded_logs(seed) for seed in range(HISTORIES)]
    for seed, simulator in enumerate(simulators):
        assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    ends = {(name[0], outcome) for simulator in simulators for name, outcome in simulator.outcomes.items()}
    assert ends >= {("l", Outcome.COMMITTED), ("l", Outcome.ABORTED), ("w", Outcome.COMMITTED)}


@pytest.mark.histories
@hypothesis.settings(max_examples=max(6, HISTORIES // 5), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(dealt=st.lists(st.integers(0, 2**16 - 1), max_size=300), seed=st.integers(0, 59))
def test_histories_that_are_searched_for_are_so_too(dealt: list[int], seed: int) -> None:
    simulator = play_kept_logs(seed, rng=Dealt(tuple(dealt)))
    assert simulator.wrong() == "", "\n".join(simulator.trail)


# ---- planted breaks: each drops one rule, and must be found ----


def show_no_pending(timeline: Timeline) -> Timeline:
    return Timeline(timeline.layout, timeline.completed(), timeline.paths)


def archive_with_gaps(patch: Patch) -> None:
    """Later writes go although a clean or rollback before them stays."""

    def nothing(*_: Any) -> Iterator[str]:
        yield from ()

    choose = Archiver._choose

    def leave_old(self: Archiver, view: Any) -> Any:
        return [instant for instant in choose(self, view) if instant.action not in ("clean", "rollback")]

    patch.setattr(Archiver, "_list_staying", nothing)
    patch.setattr(Archiver, "_choose", leave_old)


def archive_behind_what_is_under_way(patch: Patch) -> None:
    find = Archiver._find_limit

    def see_no_pending(self: Archiver, timeline: Timeline) -> str:
        return find(self, Timeline(timeline.layout, timeline.completed(), timeline.paths))

    patch.setattr(Archiver, "_find_limit", see_no_pending)
    patch.setattr(Archiver, "_may_go", lambda self, view, write, *, limit, kept: write.requested < limit)


def archive_straddling_logs(patch: Patch) -> None:
    patch.setattr(archival, "find_overlapping", lambda *_: frozenset())


BREAKS: list[tuple[Callable[[Patch], None], int]] = [
    (judge_by_names, 0),
    (take_pending_for_completed, 1100),
    (archive_with_gaps, 2),
    (archive_behind_what_is_under_way, 82),
    (archive_straddling_logs, 1),
]


@pytest.mark.histories
@pytest.mark.parametrize(("plant", "likely"), BREAKS)
def test_a_rule_that_is_dropped_is_found(plant: Callable[[Patch], None], likely: int, monkeypatch: Patch) -> None:
    """First by the seed that was found when this was written, then by others."""
    plant(monkeypatch)
    assert any(goes_wrong(seed) for seed in (likely, *range(1_400)))


def let_bulk_inserts_meet_nobody(patch: Patch) -> None:
    patch.setattr(NonBlocking, "is_candidate", lambda *_: False)


@pytest.mark.histories
@pytest.mark.parametrize(("plant", "likely"), [(let_bulk_inserts_meet_nobody, 0), (archive_straddling_logs, 30)])
def test_a_rule_of_bulk_inserts_that_is_dropped_is_found(
    plant: Callable[[Patch], None], likely: int, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    assert any(goes_wrong(seed, play_loaded_logs) for seed in (likely, *range(400)))


def goes_wrong(seed: int, play: Callable[[int], KeptLogsSimulator] = play_kept_logs) -> bool:
    """By what readers see, by an alarm of the product, or by a compaction whose files are gone."""
    try:
        return bool(play(seed).wrong())
    except (AssertionError, TableError):
        return True
