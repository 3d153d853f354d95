"""A simulator whose processes bring, replace and cluster rows: what is visible must be what a serial replay gives."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterable
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
    CompactionPlan,
    Instant,
    IOType,
    LogFileName,
    State,
    WriteStat,
)
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import planned_slice
from hudi_locks.storage import Storage
from hudi_locks.table import FileSlice, latest_file_slices
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.transaction import Outcome, Transaction, Transactions
from hudi_locks.transaction.operations import drop_void


class RowsSimulator(Simulator):
    """Each writer brings one row, its name, to a file group of partition p: one that is there, or a new one."""

    action = "commit"

    def visible(self, storage: Storage, timeline: Timeline) -> tuple[FileSlice, ...]:
        return latest_file_slices(storage, timeline, partitions=("p",))

    def rows_of(self, storage: Storage, paths: Iterable[str]) -> list[str]:
        return [row for path in paths for row in json.loads(storage.read(path) or b"[]")]

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
            stat = self.put(tx, f"{name}-0", [name]) if chosen is None else self.extend(tx, chosen, name)
            return CommitMetadata.of([stat], "UPSERT", schema="{}")

        self.live(name, lambda transactions: transactions.begin(self.action, "UPSERT"), work)

    def extend(self, tx: Transaction, chosen: FileSlice, name: str) -> WriteStat:
        """A row to a file group that is there."""
        return self.put(tx, chosen.file_id, [*self.rows_of(tx.files.storage, chosen.paths), name])

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
            slices = tuple(self._plan_slice(piece) for piece in files)
            plans.append(ClusteringPlan((ClusteringGroup(slices),) if slices else ()))
            return plans[0]

        instant = transactions.schedule_clustering(plan)
        return None if instant is None else transactions.resume(instant)

    @staticmethod
    def _plan_slice(piece: FileSlice) -> ClusteringSlice:
        base = "" if piece.base is None else piece.base.path
        return ClusteringSlice("p", piece.file_id, base, tuple(log.path for log in piece.logs))

    def _join(self, plans: list[ClusteringPlan], tx: Transaction) -> CommitMetadata:
        pieces = plans[0].groups[0].slices
        rows = [row for piece in pieces for row in self.rows_of(tx.files.storage, sorted(piece.relative_paths))]
        stat = self.put(tx, f"{tx.instant}-0", rows)
        replaced = {"p": tuple(piece.file_id for piece in pieces)}
        return CommitMetadata.of([stat], "CLUSTER", schema="{}", replaced_file_ids=replaced)

    def done(self) -> list[str]:
        timeline = Timeline.load(self.files, LAYOUT_2)
        return [instant.requested for instant in timeline.completed(("commit", "deltacommit", "replacecommit"))]

    def replay(self) -> list[str]:
        """The rows that are there if everything is done one after the other, in the order of the claims."""
        names = {instant: name for name, instant in self.begun.items()}
        rows: list[str] = []
        for claim in drop_void(self.claims()):
            if claim.kind is ClaimKind.PUBLISH and claim.action not in ("clustering", "compaction"):
                rows = [*(rows if claim.action == self.action else []), names[claim.instant]]
        return sorted(rows)

    def wrong(self) -> str:
        slices = self.visible(self.files, Timeline.load(self.files, LAYOUT_2))
        found = sorted(row for piece in slices for row in self.rows_of(self.files, piece.paths))
        if found != self.replay():
            return f"visible are {found}, and a serial replay gives {self.replay()}"
        return self._wrong_answers() or self._wrong_order()


class LoggedRowsSimulator(RowsSimulator):
    """A row for a file group that is there goes to a log of it; somebody compacts."""

    table_type = "MERGE_ON_READ"
    action = "deltacommit"

    def extend(self, tx: Transaction, chosen: FileSlice, name: str) -> WriteStat:
        file_name = str(LogFileName(chosen.file_id, tx.instant))
        ticket = write_file(tx.files, "p", file_name, json.dumps([name]).encode(), io_type=IOType.CREATE)
        return WriteStat("p", chosen.file_id, f"p/{file_name}", log_version=1, ticket=ticket)

    def compact(self, name: str) -> None:
        """All file groups with logs that nobody else is about to rewrite, twice."""
        for turn in range(2):
            self.live(f"{name}{turn}", self._begin_compaction, self._compact)

    def _begin_compaction(self, transactions: Transactions) -> Transaction | None:
        storage = transactions.coordinator.storage

        def plan(timeline: Timeline) -> CompactionPlan:
            pieces = [piece for piece in self.visible(storage, timeline) if piece.logs]
            return CompactionPlan(tuple(piece.plan(piece.partition) for piece in pieces))

        instant = transactions.schedule_compaction(plan)
        return None if instant is None else transactions.resume_compaction(instant)

    def _compact(self, tx: Transaction) -> CommitMetadata:
        path = LAYOUT_2.path(Instant(tx.instant, "compaction", State.REQUESTED))
        plan = CompactionPlan.decode(tx.files.storage.read(path) or b"", path)
        stats = [self._merge(tx, planned_slice(operation)) for operation in plan.groups]
        return CommitMetadata.of(stats, "COMPACT", schema="{}", compacted=True)

    def _merge(self, tx: Transaction, piece: FileSlice) -> WriteStat:
        return self.put(tx, piece.file_id, self.rows_of(tx.files.storage, piece.paths))


def play_replacing(seed: int, kind: type[RowsSimulator] = RowsSimulator) -> RowsSimulator:
    """Three writers, an overwriter, a clusterer, and a cleaner that takes the living for dead; no lock at all.

    Two rows are there before. Logs are compacted too.
    """
    simulator = kind(random.Random(seed), crash=(0.0, 0.004, 0.01)[seed % 3], lost=(0.0, 0.1, 0.2)[seed % 3])
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
    if isinstance(simulator, LoggedRowsSimulator):
        simulator.spawn("compactor", partial(simulator.compact, "compactor"), may_crash=seed % 4 == 3)
    if seed % 5 == 0:
        simulator.spawn("cleaner", simulator.cleaner)
    simulator.run()
    simulator.recover()
    return simulator
