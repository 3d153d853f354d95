"""Writers that go on under their own instant from a later snapshot, in seeded histories with tasks that come late."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from turns_simulator import play_turns

from hudi_locks.transaction.transaction import Transaction

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "24"))
Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.histories


def test_histories_of_writers_that_go_on_end_as_a_serial_replay() -> None:
    simulators = [play_sound(seed) for seed in range(HISTORIES)]
    assert sum(simulator.turns for simulator in simulators) >= HISTORIES // 3
    assert any("late task: move" in line for simulator in simulators for line in simulator.trail)


def play_sound(seed: int) -> Any:
    simulator = play_turns(seed)
    assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    return simulator


# ---- planted breaks: each drops one rule, and must be found ----


def build_on_what_began_later(patch: Patch) -> None:
    go_on = Transaction.go_on
    patch.setattr(
        Transaction, "go_on", lambda self, later, *, bases, without: go_on(self, later, bases=(), without=without)
    )


def let_old_turns_live(patch: Patch) -> None:
    patch.setattr("hudi_locks.transaction.transaction.end_turns", lambda *_: None)


def keep_what_is_outdated(patch: Patch) -> None:
    patch.setattr(Transaction, "_remove_files", lambda *_: None)


# To list the timeline before the log is read is none of them: what came in between is then taken for a JVM writer's,
# and compared as such.
@pytest.mark.parametrize(
    ("plant", "likely"),
    [(build_on_what_began_later, 3), (let_old_turns_live, 47), (keep_what_is_outdated, 1)],
)
def test_each_rule_that_is_dropped_is_found(plant: Callable[[Patch], None], likely: int, monkeypatch: Patch) -> None:
    plant(monkeypatch)
    assert any(goes_wrong(seed) for seed in (likely, *range(300)))


def goes_wrong(seed: int) -> bool:
    try:
        return bool(play_turns(seed).wrong())
    except AssertionError:
        return True
