"""Histories of a table that becomes one of another version while writers begin, publish, sleep and die.

`HUDI_LOCKS_HISTORIES=5000` plays as many as you like.
"""

from __future__ import annotations

import contextlib
import os
import random
from typing import Any

import pytest
from transaction_simulator import Simulator

from hudi_locks.config import Options
from hudi_locks.errors import StorageError, TableError, WriteError
from hudi_locks.format import decode_properties
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services.versions import VersionChanger
from hudi_locks.table import PROPERTIES_PATH, TableConfig, describe_properties
from hudi_locks.timeline import LAYOUT_1, LAYOUT_2, TimelineLayout
from hudi_locks.transaction import Outcome, Transactions, forward

HISTORIES = max(40, int(os.environ.get("HUDI_LOCKS_HISTORIES", "0")))
pytestmark = pytest.mark.histories


class ChangingSimulator(Simulator):
    """Whoever opens the table finds it of the version that it has then."""

    max_steps = 20_000

    def __init__(self, rng: random.Random, version: int, **how: Any) -> None:
        super().__init__(rng, **how)
        config = TableConfig("t", ("id",), (), version=version, extra={"hudi_locks.foreign_writers": "false"})
        self.files.create_if_absent(PROPERTIES_PATH, describe_properties(config.to_properties()))
        self.refused = 0

    @property
    def version(self) -> int:
        data = self.files.read(PROPERTIES_PATH) or b""
        return int(decode_properties(data, PROPERTIES_PATH)["hoodie.table.version"])

    @property
    def layout(self) -> TimelineLayout:  # type: ignore[override]
        return LAYOUT_1 if self.version == 6 else LAYOUT_2

    def write_on(self, name: str, group: str) -> None:
        """A job that writes twice, and opens the table anew where it is told to."""
        opened: Transactions | None = None
        for number in range(2):
            opened = self.try_to_write(opened or self.transactions(name), f"{name}{number}", group)

    def try_to_write(self, opened: Transactions, name: str, group: str) -> Transactions | None:
        try:
            tx = opened.begin(self.action, "UPSERT")
            self.begun[name] = tx.instant
            self.outcomes[name] = tx.publish(self.write(tx, group, name)).outcome
        except TableError:
            self.refused += 1
            self.outcomes.pop(name, None)
            return None
        except (StorageError, WriteError):
            return None
        return opened

    def change(self, to: int) -> None:
        for _ in range(6):
            try:
                VersionChanger(self.transactions("upgrader", all_dead=True), Options({})).run(to)
            except (StorageError, TableError):
                continue
            return


def play(seed: int) -> ChangingSimulator:
    """Three writers of one or two file groups, and one or two who change the version; no lock at all."""
    rng = random.Random(seed)
    first = rng.choice((6, 8))
    simulator = ChangingSimulator(rng, first, crash=rng.choice((0.0, 0.01, 0.03)))
    for name, group in (("a", "g"), ("b", "g"), ("c", rng.choice(("g", "h")))):
        simulator.spawn(name, lambda name=name, group=group: simulator.write_on(name, group), may_crash=True)  # type: ignore[misc]
    to = 8 if first == 6 else 6
    simulator.spawn("upgrader", lambda: simulator.change(to), may_crash=True)
    if rng.random() < 0.5:
        simulator.spawn("second", lambda: simulator.change(to), may_crash=True)
    simulator.run()
    with contextlib.suppress(TableError):  # of whoever carries out what the last claim says
        simulator.recover()
    simulator.recover()
    return simulator


def wrong(simulator: ChangingSimulator) -> str:
    """As `wrong` of any history, and whether writes are completed in one layout alone.

    A process that slept may leave a pending file in the other, or a rollback that it completed: nobody looks there.
    """
    other = LAYOUT_2 if simulator.version == 6 else LAYOUT_1
    left = [name for name in simulator.files.list_names(other.folder) if name.endswith(".commit")]
    return simulator.wrong() or (f"completed in the layout before: {left}" if left else "")


def test_no_update_is_lost_while_a_table_changes_its_version() -> None:
    played = []
    for seed in range(HISTORIES):
        simulator = play(seed)
        assert wrong(simulator) == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
        played.append(simulator)
    kinds = [{claim.kind for claim in simulator.claims()} for simulator in played]
    assert any(ClaimKind.VERSION in found for found in kinds)
    assert any(ClaimKind.VERSION not in found for found in kinds), "some find no quiet moment"
    assert any(simulator.refused for simulator in played)
    assert {one for simulator in played for one in simulator.outcomes.values()} >= {Outcome.COMMITTED, Outcome.ABORTED}
    assert any("upgrader is dead" in line for simulator in played for line in simulator.trail)


@pytest.mark.parametrize("rule", ["who opened it before goes on", "the files before the claim is the last"])
def test_each_rule_is_needed(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """Planted breaks."""
    if rule.startswith("who"):
        monkeypatch.setattr(forward, "read_current_properties", lambda *_: {})
    else:
        monkeypatch.setattr(forward, "carry_out_change", lambda *_: None)
    assert any(_is_wrong(seed) for seed in range(HISTORIES))


def _is_wrong(seed: int) -> bool:
    try:
        return bool(wrong(play(seed)))
    except Exception:  # whatever a broken history comes to
        return True
