"""Writers that go on under their own instant from a later snapshot, in seeded histories with tasks that come late."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from turns_simulator import play_turns

from hudi_locks.markers import StagedFiles
from hudi_locks.storage import StagedFile
from hudi_locks.transaction.transaction import Transaction

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "24"))
Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.histories


def test_histories_of_writers_that_go_on_end_as_a_serial_replay() -> None:
    simulators = [play_sound(seed) for seed in range(HISTORIES)]
    assert sum(simulator.turns for simulator in simulators) >= HISTORIES // 4
    assert any("late task: seal" in line for simulator in simulators for line in simulator.trail)


def play_sound(seed: int) -> Any:
    simulator = play_turns(seed)
    assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    return simulator


# ---- planted breaks: each drops one rule, and must be found ----


def build_on_what_began_later(patch: Patch) -> None:
    go_on = Transaction.go_on
    patch.setattr(Transaction, "go_on", lambda self, later, *, bases: go_on(self, later, bases=()))


def let_tasks_name(patch: Patch) -> None:
    """As soon as they are done, whatever the driver makes of it."""
    seal = StagedFiles.seal

    def name(self: StagedFiles, staged: StagedFile) -> str:
        ticket = seal(self, staged)
        self.storage.redeem(ticket, staged.target)
        return ticket

    patch.setattr(StagedFiles, "seal", name)


# To list the timeline before the log is read is none of them: what came in between is then taken for a JVM writer's,
# and compared as such.
@pytest.mark.parametrize(
    ("plant", "likely"),
    [(build_on_what_began_later, 3), (let_tasks_name, 1)],
)
def test_each_rule_that_is_dropped_is_found(plant: Callable[[Patch], None], likely: int, monkeypatch: Patch) -> None:
    plant(monkeypatch)
    assert any(goes_wrong(seed) for seed in (likely, *range(300)))


def goes_wrong(seed: int) -> bool:
    try:
        return bool(play_turns(seed).wrong())
    except AssertionError:
        return True
