"""A simulator of writers that go on from a later snapshot, and of tasks that outlive the turn that they belong to."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterable
from functools import partial

from rows_simulator import RowsSimulator
from transaction_harness import write_file

from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import BaseFileName, CommitMetadata, IOType, WriteStat
from hudi_locks.format.claim import Claim, ClaimKind, FileGroupId
from hudi_locks.markers import StagedFiles
from hudi_locks.storage import Storage
from hudi_locks.table import BaseFile, find_changed
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Transaction
from hudi_locks.transaction.operations import drop_void

GROUPS = ("g-0", "h-0", "k-0")


class TurnsSimulator(RowsSimulator):
    """Each writer adds a row to each of some file groups, and writes those again that others changed."""

    def __init__(self, rng: random.Random, *, crash: float = 0.0, lost: float = 0.0) -> None:
        super().__init__(rng, crash=crash, lost=lost)
        self.brought: dict[str, list[str]] = {}
        self.turns = 0

    def revise(self, name: str, groups: Iterable[str], *, most: int = 3) -> None:
        chosen = tuple(groups)
        self.brought[name] = [f"{name} in {group}" for group in chosen]

        def work(tx: Transaction) -> CommitMetadata:
            files = self._newest(tx.files.storage, tx.timeline)
            stats = {group: self._add(tx, name, group, files.get(group)) for group in chosen}
            for _ in range(most):
                if tx.check_conflict(_sum_up(stats)) is None or (again := self._go_on(tx, files, stats)) is None:
                    break
                files, touched = again
                stats |= {group: self._add(tx, name, group, files.get(group)) for group in touched}
            return _sum_up(stats)

        self.live(name, lambda transactions: transactions.begin("commit", "UPSERT"), work)

    def _go_on(
        self, tx: Transaction, files: dict[str, BaseFile], stats: dict[str, WriteStat]
    ) -> tuple[dict[str, BaseFile], list[str]] | None:
        later = tx.look_again()
        if later is None:
            return None
        now = self._newest(tx.files.storage, later.timeline)
        changed = find_changed(files.values(), now.values())
        touched = [group for group in stats if FileGroupId("p", group) in changed]
        bases = [now[group] for group in touched if group in now]
        if not tx.go_on(later, bases=bases):
            return None
        self.turns += 1
        return now, touched

    def _newest(self, storage: Storage, timeline: Timeline) -> dict[str, BaseFile]:
        return {piece.file_id: piece.base for piece in self.visible(storage, timeline) if piece.base is not None}

    def _add(self, tx: Transaction, name: str, group: str, base: BaseFile | None) -> WriteStat:
        rows = [*(self.rows_of(tx.files.storage, (base.path,)) if base else []), f"{name} in {group}"]
        file_name, files = str(BaseFileName(group, tx.instant)), tx.files
        if self.rng.random() < 0.5 and self.mine() is not None:
            self.spawn("late task", partial(self._write_late, files, file_name, rows))
        ticket = write_file(files, "p", file_name, json.dumps(rows).encode(), io_type=IOType.MERGE)
        return WriteStat("p", group, f"p/{file_name}", ticket=ticket)

    def _write_late(self, files: StagedFiles, file_name: str, rows: list[str]) -> None:
        for _ in range(self.rng.choice((1, 30, 100, 200))):
            self.step("a task hangs")
        with contextlib.suppress(StorageError, WriteError):
            write_file(files, "p", file_name, json.dumps([*rows, "of a late task"]).encode(), io_type=IOType.MERGE)

    def published(self) -> list[Claim]:
        return [claim for claim in drop_void(self.claims()) if claim.kind is ClaimKind.PUBLISH]

    def replay(self) -> list[str]:
        names = {instant: name for name, instant in self.begun.items()}
        return sorted(row for claim in self.published() for row in self.brought[names[claim.instant]])


def _sum_up(stats: dict[str, WriteStat]) -> CommitMetadata:
    return CommitMetadata.of(stats.values(), "UPSERT", schema="{}")


def play_turns(seed: int, *, rng: random.Random | None = None) -> TurnsSimulator:
    """Three or four writers of several file groups, one that takes the living for dead, late tasks; no lock at all."""
    simulator = TurnsSimulator(rng or random.Random(seed), crash=(0.0, 0.004)[seed % 2], lost=(0.0, 0.1)[seed % 3 == 2])
    lost, simulator.lost = simulator.lost, 0.0
    for group in GROUPS:
        simulator.revise(f"first {group}", (group,))
    simulator.lost = lost
    for number in range(simulator.rng.choice((3, 3, 4))):
        groups = simulator.rng.sample(GROUPS, simulator.rng.choice((1, 2, 3)))
        simulator.spawn(f"w{number}", partial(simulator.revise, f"w{number}", groups), may_crash=number == 0)
    if seed % 5 == 0:
        simulator.spawn("cleaner", simulator.cleaner)
    simulator.run()
    simulator.recover()
    return simulator
