"""A simulator whose processes bring, replace and cluster rows: what is visible must be what a serial replay gives."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from transaction_harness import write_file
from transaction_simulator import Simulator

from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import (
    BaseFileName,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CommitMetadata,
    IOType,
    WriteStat,
)
from hudi_locks.format.claim import ClaimKind
from hudi_locks.storage import Storage
from hudi_locks.table import BaseFile, latest_base_files
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.transaction import Outcome, Transaction, Transactions
from hudi_locks.transaction.operations import drop_void


class RowsSimulator(Simulator):
    """Each writer brings one row, its name, to a file group of partition p: one that is there, or a new one."""

    def visible(self, storage: Storage, timeline: Timeline) -> tuple[BaseFile, ...]:
        return latest_base_files(storage, timeline, partitions=("p",))

    def rows_of(self, storage: Storage, path: str) -> list[str]:
        rows: list[str] = json.loads(storage.read(path) or b"[]")
        return rows

    def put(self, tx: Transaction, group: str, rows: list[str]) -> WriteStat:
        name = str(BaseFileName(group, tx.instant))
        ticket = write_file(tx.files, "p", name, json.dumps(rows).encode(), io_type=IOType.CREATE)
        return WriteStat("p", group, f"p/{name}", ticket=ticket)

    def live(self, name: str, begin: Callable[[Transactions], Transaction | None], work: Callable[..., Any]) -> None:
        """One transaction of one process, whatever becomes of it."""
        transactions = self.transactions(name, skew_ms=self.rng.choice((0, 0, -40, 40)))
        with contextlib.suppress(StorageError):
            try:
                tx = begin(transactions)
                if tx is None:
                    return
                self.begun[name] = tx.instant
                done = work(tx)
                metadata, reads = done if isinstance(done, tuple) else (done, None)
                outcome = tx.publish(metadata, reads=reads).outcome
            except WriteError:
                return
            if outcome is Outcome.UNKNOWN:
                outcome = self._resolve(transactions, tx.instant)
            self.outcomes[name] = outcome

    def append(self, name: str, share: float = 0.6) -> None:
        """Into the first file group that is visible, in this share of all histories, or into a new one."""

        def work(tx: Transaction) -> CommitMetadata:
            storage = tx.files.storage
            files = self.visible(storage, tx.timeline)
            chosen = files[0] if files and self.rng.random() < share else None
            rows = [*self.rows_of(storage, chosen.path), name] if chosen else [name]
            stat = self.put(tx, chosen.file_id if chosen else f"{name}-0", rows)
            return CommitMetadata.of([stat], "UPSERT", schema="{}")

        self.live(name, lambda transactions: transactions.begin("commit", "UPSERT"), work)

    def overwrite(self, name: str) -> None:
        """The partition by one row."""

        def work(tx: Transaction) -> CommitMetadata:
            replaced = {"p": tuple(file.file_id for file in self.visible(tx.files.storage, tx.timeline))}
            stat = self.put(tx, f"{name}-0", [name])
            return CommitMetadata.of([stat], "INSERT_OVERWRITE", schema="{}", replaced_file_ids=replaced)

        self.live(name, lambda transactions: transactions.begin("replacecommit", "INSERT_OVERWRITE"), work)

    def cluster(self, name: str) -> None:
        """All visible file groups into one, twice."""
        for turn in range(2):
            plans: list[ClusteringPlan] = []
            self.live(f"{name}{turn}", partial(self._begin_clustering, plans), partial(self._join, plans))

    def _begin_clustering(self, plans: list[ClusteringPlan], transactions: Transactions) -> Transaction | None:
        storage = transactions.coordinator.storage

        def plan(timeline: Timeline) -> ClusteringPlan:
            files = self.visible(storage, timeline)
            slices = tuple(ClusteringSlice("p", file.file_id, file.path) for file in files)
            plans.append(ClusteringPlan((ClusteringGroup(slices),) if slices else ()))
            return plans[0]

        instant = transactions.schedule_clustering(plan)
        return None if instant is None else transactions.resume(instant)

    def _join(self, plans: list[ClusteringPlan], tx: Transaction) -> CommitMetadata:
        pieces = plans[0].groups[0].slices
        rows = [row for piece in pieces for row in self.rows_of(tx.files.storage, piece.relative_path)]
        stat = self.put(tx, f"{tx.instant}-0", rows)
        replaced = {"p": tuple(piece.file_id for piece in pieces)}
        return CommitMetadata.of([stat], "CLUSTER", schema="{}", replaced_file_ids=replaced)

    def done(self) -> list[str]:
        timeline = Timeline.load(self.files, LAYOUT_2)
        return [instant.requested for instant in timeline.completed(("commit", "replacecommit"))]

    def replay(self) -> list[str]:
        """The rows that are there if everything is done one after the other, in the order of the claims."""
        names = {instant: name for name, instant in self.begun.items()}
        rows: list[str] = []
        for claim in drop_void(self.claims()):
            if claim.kind is ClaimKind.PUBLISH and claim.action != "clustering":
                rows = [*(rows if claim.action == "commit" else []), names[claim.instant]]
        return sorted(rows)

    def wrong(self) -> str:
        files = self.visible(self.files, Timeline.load(self.files, LAYOUT_2))
        found = sorted(row for file in files for row in self.rows_of(self.files, file.path))
        if found != self.replay():
            return f"visible are {found}, and a serial replay gives {self.replay()}"
        return self._wrong_answers() or self._wrong_order()


def play_replacing(seed: int) -> RowsSimulator:
    """Three writers, an overwriter, a clusterer, and a cleaner that takes the living for dead; no lock at all.

    Two rows are there before.
    """
    simulator = RowsSimulator(random.Random(seed), crash=(0.0, 0.004, 0.01)[seed % 3], lost=(0.0, 0.1, 0.2)[seed % 3])
    lost, simulator.lost = simulator.lost, 0.0
    for name in ("one", "two"):
        simulator.append(name, share=0.0)
    simulator.lost = lost
    simulator.spawn("first", partial(simulator.append, "first"))
    simulator.spawn("second", partial(simulator.append, "second"), may_crash=True)
    simulator.spawn("third", partial(simulator.append, "third"))
    if seed % 2:
        simulator.spawn("overwriter", partial(simulator.overwrite, "overwriter"), may_crash=seed % 4 == 1)
    simulator.spawn("clusterer", partial(simulator.cluster, "clusterer"), may_crash=seed % 4 == 2)
    if seed % 5 == 0:
        simulator.spawn("cleaner", simulator.cleaner)
    simulator.run()
    simulator.recover()
    return simulator
