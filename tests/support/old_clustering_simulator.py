"""The same with somebody who clusters: file groups end, with the logs that are named by what was below them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from old_logging_simulator import SCHEMA, OldLoggingSimulator, choose_crash, choose_lost, play_alone, play_beside_jvm
from transaction_harness import MODE, OPTIMISTIC, write_file
from transaction_store import SimulatorLock

from hudi_locks.errors import DamagedTable, WriteAborted
from hudi_locks.format import (
    BaseFileName,
    ClusteringPlan,
    CommitMetadata,
    Instant,
    IOType,
    WriteStat,
    clustered_file_groups,
)
from hudi_locks.services import Clustering, ClusteringSettings, find_planned_slices
from hudi_locks.storage import Storage
from hudi_locks.table import latest_file_slices, read_commit
from hudi_locks.timeline import Timeline

__all__ = ["OldClusteringSimulator", "play_old_clustering", "play_old_clustering_beside_jvm"]


class OldClusteringSimulator(OldLoggingSimulator):
    """A row whose file group ended goes to another one, or begins one.

    Attributes:
        clustered: Requested times of what was clustered.
    """

    mode: ClassVar[Mapping[str, object]] = {MODE: OPTIMISTIC}
    rounds = 2

    def __init__(self, rng: random.Random, **how: Any) -> None:
        super().__init__(rng, **how)
        self.clustered: list[str] = []

    def pick(self, storage: Storage, timeline: Timeline, group: str, instant: str) -> str:
        """One that is there, or its own, or a new one."""
        try:
            found = sorted(piece.file_id for piece in latest_file_slices(storage, timeline))
        except DamagedTable as error:  # see `compactor`
            raise WriteAborted(str(error)) from error
        chosen = self.rng.choice((*found, group, f"{instant}-0"))
        return f"{instant}-0" if chosen in self._list_ended(storage, timeline) else chosen

    def list_ended(self, timeline: Timeline) -> frozenset[str]:
        return self._list_ended(self.files, timeline)

    @staticmethod
    def _list_ended(storage: Storage, timeline: Timeline) -> frozenset[str]:
        ends = (read_commit(storage, timeline, requested=i.requested) for i in timeline.completed(("replacecommit",)))
        return frozenset(file_id for commit in ends for _, file_id in commit.replaced_file_groups)

    def clusterer(self, name: str, *, rounds: int = 8, **how: Any) -> None:
        """Plans and runs clusterings, its own or those of the dead."""
        settings = ClusteringSettings.of({}, table_properties={})
        clustering = Clustering(self.open_table(**how), self.transactions(name, **how), settings)
        self.run_plans(clustering, partial(self._join, clustering), rounds=rounds)

    def spawn_services(self, lock: SimulatorLock | None) -> None:
        """Two who cluster besides."""
        self.spawn_twice("clusterer", self.clusterer, lock)
        super().spawn_services(lock)

    def _join(self, clustering: Clustering, tx: Any, plan: ClusteringPlan) -> None:
        with tx:
            storage, timeline = clustering.table.storage, clustering.table.timeline()
            slices = {(one.partition, one.file_id): one for one in latest_file_slices(storage, timeline)}
            planned = [piece for group in plan.groups for piece in find_planned_slices(group, slices)]
            rows = [row for piece in planned for row in self.rows(storage, piece)]
            name = str(BaseFileName(f"{tx.instant}-0", tx.instant))
            ticket = write_file(tx.files, "p", name, json.dumps(rows).encode(), io_type=IOType.CREATE)
            stat = WriteStat("p", f"{tx.instant}-0", f"p/{name}", ticket=ticket)
            self.doze()
            ended = {"p": tuple(piece.file_id for piece in planned)}
            if tx.publish(CommitMetadata.of([stat], "CLUSTER", schema=SCHEMA, replaced_file_ids=ended)).is_committed:
                self.clustered.append(tx.instant)
        self.look()

    def _meets(self, storage: Storage, begun: Instant, known: Timeline, now: Timeline, group: str) -> bool:
        """Its strategy for updates refuses what is to be clustered, and its conflicts see what was."""
        paths = [now.layout.path(i.as_requested()) for i in now.pending(("replacecommit",))]
        busy = {found for path in paths for found in clustered_file_groups(storage.read(path) or b"", path)}
        ended = self._list_ended(storage, now)
        return ("p", group) in busy or group in ended or super()._meets(storage, begun, known, now, group)

    def clean_up(self) -> None:
        self.recover()
        self.clusterer("last clusterer", all_dead=True, rounds=8)
        super().clean_up()


def play_old_clustering(seed: int) -> OldClusteringSimulator:
    """See `play_alone`."""
    simulator = OldClusteringSimulator(random.Random(seed), crash=choose_crash(seed), lost=choose_lost(seed))
    play_alone(simulator, seed)
    return simulator


def play_old_clustering_beside_jvm(seed: int) -> OldClusteringSimulator:
    """See `play_beside_jvm`."""
    simulator = OldClusteringSimulator(random.Random(seed), heeds=True, foreign=True, crash=choose_crash(seed))
    play_beside_jvm(simulator)
    return simulator
