"""Clustering: small or unsorted file groups of a partition become fewer, sorted ones. Planning and bookkeeping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hudi_locks.config import index_keys
from hudi_locks.errors import BadInput, UnsupportedTable
from hudi_locks.format import ClusteringGroup, ClusteringPlan, ClusteringSlice, Instant, is_bucket_file_id
from hudi_locks.services.clustering_settings import ClusteringSettings
from hudi_locks.services.planned import PendingPlan, PlannedService
from hudi_locks.services.resizing import Resize, plan_resizes
from hudi_locks.table import (
    BaseFile,
    FileSlice,
    LogFile,
    latest_file_slices,
    list_partitions,
    read_commit,
    read_schema_history,
)
from hudi_locks.table.bootstrap import find_source
from hudi_locks.table.hash_rings import has_hash_rings, load_hash_rings, refuse_strangers
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Transaction, name_clustering

__all__ = ["Clustering", "find_planned_slices"]

_WRITES = ("commit", "deltacommit", "replacecommit")


@dataclass(frozen=True)
class Clustering(PlannedService[ClusteringPlan]):
    """Clustering of one table, but for the rows themselves. Runs on the driver.

    Attributes:
        settings: What is clustered, and how.
    """

    settings: ClusteringSettings

    action = "clustering"

    def schedule(self) -> str | None:
        """Put a plan on the timeline; None if there is nothing to cluster.

        Raises:
            BadInput: The table lacks a column to sort by.
            UnsupportedTable: Its file groups are buckets, which must not be joined.
        """
        return self.transactions.schedule_clustering(self.make_plan)

    def make_plan(self, timeline: Timeline) -> ClusteringPlan | None:
        """What is to be clustered of the table that `timeline` shows: JVM Hudi's size-based plan."""
        self._check_columns(timeline)
        busy = self._find_busy(timeline)
        by_partition: dict[str, list[FileSlice]] = {}
        partitions = self.settings.select(list_partitions(self.table.storage))
        for piece in map(self._add_source, latest_file_slices(self.table.storage, timeline, partitions=partitions)):
            if (piece.partition, piece.file_id) not in busy:
                by_partition.setdefault(piece.partition, []).append(piece)
        groups = self._resize(timeline, by_partition) if self.settings.resizing else self._join_small(by_partition)
        plan = ClusteringPlan(tuple(groups[: self.settings.most_groups]), self.settings.sort_columns)
        return plan if plan.groups else None

    def count_commits(self, timeline: Timeline) -> int:
        """Completed writes since the last clustering, whether that is completed or not."""
        since = max((i.requested for i in timeline.instants if self._is_clustering(timeline, i)), default="")
        return sum(i.requested > since for i in timeline.completed(_WRITES))

    def take(self, instant: str | None = None) -> tuple[Transaction, ClusteringPlan] | None:
        """See `PlannedService.take`: a JVM writer's plan that splits or merges buckets too, if `instant` names it."""
        if instant is not None:
            self._adopt(instant)
        return super().take(instant)

    def _adopt(self, instant: str) -> None:
        plan = self._find_plan(instant)
        if plan is not None and plan.ring_changes and not self.transactions.is_own_plan(instant):
            self.transactions.adopt_clustering(instant, lambda timeline: self._find_changed(plan, timeline))

    def _schedule_anew(self, pending: PendingPlan[ClusteringPlan]) -> str | None:
        return self.transactions.schedule_clustering(lambda timeline: self._keep_current(pending.plan, timeline))

    def _begin(self, requested: str) -> Transaction:
        return self.transactions.resume(requested)

    def _decode(self, data: bytes, path: str) -> ClusteringPlan | None:
        return ClusteringPlan.decode(data, path)

    def _keep_current(self, plan: ClusteringPlan, timeline: Timeline) -> ClusteringPlan:
        """The plan without the groups of which an input was written, or replaced, since it was made."""
        return plan.without(self._find_changed(plan, timeline))

    def _find_changed(self, plan: ClusteringPlan, timeline: Timeline) -> set[tuple[str, str]]:
        partitions = {partition for partition, _ in plan.file_groups}
        slices = latest_file_slices(self.table.storage, timeline, partitions=partitions)
        current = {(piece.partition, piece.file_id): frozenset(piece.paths) for piece in slices}
        planned = [piece for group in plan.groups for piece in group.slices]
        changed = (p for p in planned if p.relative_paths != current.get((p.partition, p.file_id)))
        return {(piece.partition, piece.file_id) for piece in changed}

    @property
    def _pending_action(self) -> str:
        return name_clustering(self.table.layout)

    def _is_clustering(self, timeline: Timeline, instant: Instant) -> bool:
        if instant.action == "clustering":
            return True
        if instant.action != "replacecommit":
            return False
        if not instant.is_completed:  # of version 6 if it has a plan
            return self._find_plan(instant.requested) is not None
        return read_commit(self.table.storage, timeline, requested=instant.requested).operation == "CLUSTER"

    def _add_source(self, piece: FileSlice) -> FileSlice:
        """A skeleton counts for as many bytes as its rows have, those of its source too."""
        base, source = piece.base, find_source(self.table.storage, piece.base)
        if base is None or source is None:
            return piece
        return replace(piece, base=replace(base, size=base.size + source.size))

    def _join_small(self, by_partition: Mapping[str, list[FileSlice]]) -> list[ClusteringGroup]:
        small = ([piece for piece in slices if self._is_small(piece)] for slices in by_partition.values())
        return [group for slices in small if slices for group in self._make_groups(slices)]

    def _resize(self, timeline: Timeline, by_partition: Mapping[str, list[FileSlice]]) -> list[ClusteringGroup]:
        """A ring changes by one clustering at a time: partitions of which another has file groups are left out."""
        settings = self.settings.resizing
        if settings is None:
            return []
        busy = {partition for partition, _ in self._find_clustered(timeline)}
        free = {partition: slices for partition, slices in by_partition.items() if partition not in busy}
        rings = load_hash_rings(self.table.storage, timeline, free, buckets=settings.first_buckets)
        refuse_strangers(rings, (piece for slices in free.values() for piece in slices))
        sorts, resizes = bool(self.settings.sort_columns), list[Resize]()
        for partition, slices in sorted(free.items()):
            resizes += plan_resizes(rings[partition], slices, settings, partition=partition, sorts=sorts)
        return [self._make_resize(resize) for resize in resizes]

    def _make_resize(self, resize: Resize) -> ClusteringGroup:
        made = self._make_group(list(resize.slices))
        return replace(made, output_groups=len(resize.change.file_ids), ring_change=resize.change)

    def _is_small(self, piece: FileSlice) -> bool:
        """As in JVM Hudi by the base file alone; what was logged is no reason to leave a file group as it is."""
        return piece.base is None or piece.base.size < self.settings.small_file_bytes

    def _make_groups(self, slices: list[FileSlice]) -> list[ClusteringGroup]:
        """Cut the slices of a partition, the largest first, into groups of bounded size."""
        self._refuse_buckets(slices)
        groups: list[list[FileSlice]] = [[]]
        for piece in sorted(slices, key=lambda piece: (-_measure(piece), piece.file_id)):
            if groups[-1] and sum(map(_measure, groups[-1])) + _measure(piece) > self.settings.group_bytes:
                groups.append([])
            groups[-1].append(piece)
        return [self._make_group(group) for group in groups if len(group) > 1 or self.settings.sorts_single_files]

    def _make_group(self, slices: list[FileSlice]) -> ClusteringGroup:
        size, logged = sum(map(_measure, slices)), sum(log.size for piece in slices for log in piece.logs)
        planned = tuple(map(self._plan_slice, slices))
        return ClusteringGroup(planned, max(1, -(-size // self.settings.target_bytes)), size, logged)

    def _plan_slice(self, piece: FileSlice) -> ClusteringSlice:
        address = self.table.storage.address
        base = "" if piece.base is None else address(piece.base.path)
        logs = tuple(address(log.path) for log in reversed(piece.logs))
        source = find_source(self.table.storage, piece.base)
        return ClusteringSlice(piece.partition, piece.file_id, base, logs, source.address if source else "")

    def _refuse_buckets(self, slices: list[FileSlice]) -> None:
        is_bucketed = self.settings.is_bucketed or all(is_bucket_file_id(piece.file_id) for piece in slices)
        if is_bucketed or (self.table.is_merge_on_read and has_hash_rings(self.table.storage)):
            message = (
                "the file groups of this table are the buckets of a bucket index, and joining them would put keys"
                " where no writer looks for them: such a table is not clustered. If consistent hashing made it, give"
                f" {index_keys.INDEX_TYPE.name}=BUCKET and {index_keys.BUCKET_INDEX_ENGINE.name}=CONSISTENT_HASHING:"
                " then buckets are split and merged"
            )
            raise UnsupportedTable(message, path=slices[0].paths[0])

    def _check_columns(self, timeline: Timeline) -> None:
        schema = self.table.writable_schema(timeline, read_schema_history(self.table.storage, timeline))
        names = [] if schema is None else list(schema.names)
        missing = [column for column in self.settings.sort_columns if column not in names]
        if missing and schema is not None:
            message = f"there is no column {', '.join(map(repr, missing))} to sort by; the table has {', '.join(names)}"
            raise BadInput(message, columns=missing, found=names)


def find_planned_slices(plan: ClusteringGroup, current: Mapping[tuple[str, str], FileSlice]) -> tuple[FileSlice, ...]:
    """What a group of a plan reads, with sizes where its files are still current; never what was logged since.

    Args:
        plan: Names the files.
        current: The newest slices, by (partition path, file id).
    """
    return tuple(_find_planned(piece, current.get((piece.partition, piece.file_id))) for piece in plan.slices)


def _find_planned(piece: ClusteringSlice, current: FileSlice | None) -> FileSlice:
    partition, name = piece.partition, piece.path.rpartition("/")[2]
    known = () if current is None else (*current.logs, current.base)
    sizes = {file.path: file.size for file in known if file is not None}
    base = BaseFile.parse(partition, name, sizes.get(piece.relative_path, 0))
    named = sorted(filter(None, (LogFile.parse(partition, path.rpartition("/")[2], 0) for path in piece.log_paths)))
    logs = tuple(replace(log, size=sizes.get(log.path, 0)) for log in named)
    barrier = base.instant if base is not None else logs[0].instant
    return FileSlice(partition, piece.file_id, barrier, base, logs, None if current is None else current.blocks)


def _measure(piece: FileSlice) -> int:
    """What a slice counts for: its base file, or its logs while there is none."""
    return sum(log.size for log in piece.logs) if piece.base is None else piece.base.size
