"""The product's own services beside its writers in seeded histories; `HUDI_LOCKS_HISTORIES=1500` plays more of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import hypothesis
import pytest
from history_digest import do_one_step_at_a_time
from hypothesis import strategies as st
from serviced_simulator import (
    ServicedSimulator,
    play_long_lived,
    play_long_lived_beside_jvm,
    play_readers,
    play_serviced,
    play_serviced_beside_jvm,
)
from transaction_plays import Dealt

from hudi_locks.errors import TableError
from hudi_locks.format import comparable_action
from hudi_locks.services import Archiver, archival, retention
from hudi_locks.timeline import Timeline, index_files
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER
from hudi_locks.timeline.history import ArchivedHistory
from hudi_locks.transaction import SimpleConcurrentFileWrites
from hudi_locks.transaction.concurrent_writes import ConcurrentWrites

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "6"))
PLAYS = (play_serviced, play_serviced_beside_jvm, play_long_lived, play_long_lived_beside_jvm)
Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.histories


@pytest.fixture(autouse=True)
def one_step_at_a_time(monkeypatch: Patch) -> None:
    do_one_step_at_a_time(monkeypatch.setattr)


@pytest.mark.parametrize("play", PLAYS)
def test_histories_with_services_are_serialisable_by_completion_time(play: Callable[[int], ServicedSimulator]) -> None:
    for seed in range(HISTORIES):
        simulator = play(seed)
        assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)


@pytest.mark.parametrize("play", PLAYS)
@hypothesis.settings(max_examples=max(3, HISTORIES // 5), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(dealt=st.lists(st.integers(0, 2**16 - 1), max_size=300), seed=st.integers(0, 59))
def test_histories_with_services_that_are_searched_for_are_so_too(
    play: Callable[..., ServicedSimulator], dealt: list[int], seed: int
) -> None:
    simulator = play(seed, rng=Dealt(tuple(dealt)))
    assert simulator.wrong() == "", "\n".join(simulator.trail)


def test_the_histories_meet_what_they_are_for() -> None:
    simulators = [play(seed) for seed in range(6) for play in PLAYS[:2]]
    steps = [step for simulator in simulators for step in simulator.trail]
    assert any(simulator.archived() for simulator in simulators)
    assert any(step.startswith("archiver: create .hoodie/timeline/history/2") for step in steps)
    assert any(step.startswith("cleaner: delete p/") for step in steps)
    assert {name for simulator in simulators for name in simulator.outcomes} >= {"first", "deleter", "keeper", "jvm"}
    assert any(process.is_crashed for simulator in simulators for process in simulator.processes)


# ---- planted breaks: each drops one rule, and must be found ----


def forget_what_was_looked_at(patch: Patch) -> None:
    patch.setattr(SimpleConcurrentFileWrites, "outdated_groups", lambda *_: frozenset())


def forget_what_was_not_there(patch: Patch) -> None:
    patch.setattr(ConcurrentWrites, "_brought_keys", lambda *_: ())


def clean_below_what_is_not_completed(patch: Patch) -> None:
    def choose(files: Any, *_: Any) -> list[Any]:
        listed = sorted(files.bases)
        newest = {(file.partition, file.file_id): file for file in listed}
        return sorted(set(listed) - set(newest.values()))

    patch.setattr(retention, "choose_files", choose)


@pytest.mark.parametrize("plant", [forget_what_was_looked_at, forget_what_was_not_there])
def test_a_read_set_that_is_dropped_is_found(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    assert [simulator.wrong() for simulator in map(play_readers, range(20))] == [""] * 20
    plant(monkeypatch)
    assert any(play_readers(seed).wrong() for seed in range(200))


def test_a_clean_below_what_is_not_completed_is_found(monkeypatch: Patch) -> None:
    clean_below_what_is_not_completed(monkeypatch)
    assert any(play_serviced_beside_jvm(seed).wrong() for seed in range(12, 200))


def remove_before_it_is_history(patch: Patch) -> None:
    def archive(self: Any, timeline: Any, chosen: list[Any]) -> None:
        index = index_files(self._storage, self._table.layout)
        files = {i: index.get((i.requested, comparable_action(i.action)), ()) for i in chosen}
        rows = [archival._make_row(self._storage, timeline, instant, files[instant]) for instant in chosen]
        archival._remove(self._storage, files, lambda: None)
        ArchivedHistory(self._storage, timeline.layout).add(rows)

    patch.setattr(Archiver, "_archive", archive)


def keep_nothing_for_the_last_claim(patch: Patch) -> None:
    def find_beats(self: Any, _: Any) -> frozenset[str]:
        return frozenset(entry.name for entry in self._storage.list(HEARTBEAT_FOLDER))

    patch.setattr(Archiver, "_find_kept", find_beats)


def remove_the_newest_first(patch: Patch) -> None:
    remove = archival._remove

    def reverse(storage: Any, files: Any, on_ended: Any) -> None:
        remove(storage, dict(sorted(files.items(), reverse=True)), on_ended)

    patch.setattr(archival, "_remove", reverse)


def remove_what_is_completed_before_what_is_pending(patch: Patch) -> None:
    def remove(storage: Any, files: Any, _: Any) -> None:
        paths = [path for found in files.values() for path in found]
        for path in sorted(paths, key=lambda path: path.endswith((".requested", ".inflight"))):
            storage.delete(path)

    patch.setattr(archival, "_remove", remove)


def archive_behind_what_is_pending(patch: Patch) -> None:
    """A pending write that nobody looks at: neither for the last write before it, nor for what overlaps it."""
    find_limit, may_go = Archiver._find_limit, Archiver._may_go

    def see_no_pending(timeline: Any) -> Any:
        return Timeline(timeline.layout, timeline.completed(), timeline.paths)

    patch.setattr(Archiver, "_find_limit", lambda self, timeline: find_limit(self, see_no_pending(timeline)))

    def see_less(self: Any, view: Any, write: Any, **how: Any) -> bool:
        return may_go(self, replace(view, timeline=see_no_pending(view.timeline)), write, **how)

    patch.setattr(Archiver, "_may_go", see_less)


# Our readers forgive the newest first, and what is archived behind a pending write, since they ask the archive before
# they call a write pending. A JVM does not: what it would think is looked at whenever an archiver removes something.
ARCHIVAL_BREAKS: list[tuple[Callable[[Patch], None], Callable[[int], ServicedSimulator], int]] = [
    (remove_before_it_is_history, play_serviced, 0),
    (keep_nothing_for_the_last_claim, play_long_lived_beside_jvm, 7),
    (remove_the_newest_first, play_long_lived, 0),
    (remove_what_is_completed_before_what_is_pending, play_long_lived, 0),
    (archive_behind_what_is_pending, play_long_lived, 15),
]


@pytest.mark.parametrize(("plant", "play", "likely"), ARCHIVAL_BREAKS)
def test_each_rule_of_archival_that_is_dropped_is_found(
    plant: Callable[[Patch], None], play: Callable[[int], ServicedSimulator], likely: int, monkeypatch: Patch
) -> None:
    """First by the seed that was found when this was written, then by others."""
    plant(monkeypatch)
    assert any(goes_wrong(play, seed) for seed in (likely, *range(300)))


def goes_wrong(play: Callable[[int], ServicedSimulator], seed: int) -> bool:
    """By what the table holds in the end, by an alarm of the product, or by never ending."""
    try:
        return bool(play(seed).wrong())
    except (AssertionError, TableError):
        return True
