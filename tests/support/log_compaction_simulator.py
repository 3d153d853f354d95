"""A simulator of writers that do not block each other, whose logs are merged into logs, and compacted, meanwhile."""

from __future__ import annotations

import contextlib
import json
import random
from functools import partial
from typing import Any

from kept_logs_simulator import KeptLogsSimulator
from log_compaction_harness import read_rows
from transaction_harness import write_file
from transaction_store import SteppedStorage

from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import CommitMetadata, CompactionPlan, IOType, LogFileName, WriteStat
from hudi_locks.services import LogCompaction, TableServices, planned_slice
from hudi_locks.table import FileSlice, Table, TableConfig
from hudi_locks.transaction import Transaction


class LogCompactionSimulator(KeptLogsSimulator):
    """Rows are applied in an order, and a log compaction says its own again: whoever reads them, none changes it."""

    def __init__(self, rng: random.Random, **how: Any) -> None:
        super().__init__(rng, **how)
        self.joined: list[str] = []
        self.given_up: list[str] = []

    def joiner(self, name: str, *, rounds: int = 12, **how: Any) -> None:
        """Plans and runs log compactions, its own or those of the dead."""
        transactions = self.transactions(name, **how)
        config = TableConfig("t", ("id",), ("part",), table_type=self.table_type)
        storage = SteppedStorage(self, all_dead=how.get("all_dead", False))
        joining = LogCompaction(Table(storage, config), transactions, 2)
        for _ in range(rounds):
            if process := self.mine():
                process.asleep_until = self.ticks + self.rng.choice((0, 10, 40))
                self.step("doze")
            with contextlib.suppress(StorageError, WriteError):
                joining.schedule()
                if (taken := joining.take()) is not None:
                    self._join(*taken)

    def _join(self, tx: Transaction, plan: CompactionPlan) -> None:
        with tx:
            stats = [self._join_slice(tx, planned_slice(operation)) for operation in plan.groups]
            result = tx.publish(CommitMetadata.of(stats, "LOG_COMPACT", schema="{}", compacted=True))
            (self.joined if result.is_committed else self.given_up).append(tx.instant)

    def _join_slice(self, tx: Transaction, piece: FileSlice) -> WriteStat:
        name = str(LogFileName(piece.file_id, tx.instant))
        logs = FileSlice(piece.partition, piece.file_id, piece.barrier, None, piece.logs)
        said = {"again": self._rows(logs), "stands_for": [log.instant for log in piece.logs]}
        ticket = write_file(tx.files, "p", name, json.dumps(said).encode(), io_type=IOType.CREATE)
        return WriteStat("p", piece.file_id, f"p/{name}", log_version=1, ticket=ticket)

    def _rows(self, piece: FileSlice) -> list[str]:
        return read_rows(self.files, piece)

    def written(self) -> dict[str, str]:
        merging = {claim.instant for claim in self.claims() if claim.action == "logcompaction"}
        return {time: done for time, done in super().written().items() if time not in merging}

    def _wrong_updates(self) -> str:
        try:
            return super()._wrong_updates()
        except AssertionError as error:
            return f"readers disagree: {error}"

    def clean_up(self) -> None:
        super().clean_up()
        self.joiner("last joiner", all_dead=True, rounds=2)


_GROUPS = {"w0": "g-0", "w1": "g-0", "w2": "h-0"}


def play_log_compactions(seed: int, *, rng: random.Random | None = None) -> LogCompactionSimulator:
    """Two or three writers, one or two that merge logs, a compactor, a cleaner, an undertaker in haste; no lock."""
    rng = rng or random.Random(seed)
    simulator = LogCompactionSimulator(rng, crash=(0.0, 0.002, 0.004)[seed % 3], lost=(0.0, 0.1)[seed % 2])
    for number, (name, group) in enumerate(list(_GROUPS.items())[: 2 + seed % 2]):
        simulator.spawn(name, partial(simulator.writers, name, group, skew_ms=_skew(simulator)), may_crash=number == 0)
    for name in ("joiner", "other joiner")[: 1 + seed % 2]:
        simulator.spawn(name, partial(simulator.joiner, name, skew_ms=_skew(simulator)), may_crash=True)
    if seed % 3:
        simulator.spawn(
            "compactor", partial(simulator.compactor, "compactor", rounds=4, skew_ms=_skew(simulator)), may_crash=True
        )
        simulator.spawn(
            "cleaning", partial(simulator.serve, "cleaning", TableServices.clean, rounds=4, skew_ms=_skew(simulator))
        )
    if seed % 4 == 1:
        simulator.spawn("undertaker", simulator.cleaner)
    simulator.run()
    simulator.clean_up()
    return simulator


def _skew(simulator: LogCompactionSimulator) -> int:
    return simulator.rng.choice((0, 0, -40, 40))
