"""Clustering: small or unsorted file groups of a partition become fewer, sorted ones. Planning and bookkeeping."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_locks.errors import BadInput, UnsupportedTable
from hudi_locks.format import ClusteringGroup, ClusteringPlan, ClusteringSlice, Instant, is_bucket_file_id
from hudi_locks.services.clustering_settings import ClusteringSettings
from hudi_locks.services.planned import PendingPlan, PlannedService
from hudi_locks.table import BaseFile, latest_base_files, list_partitions, read_commit
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Transaction, name_clustering

__all__ = ["Clustering"]

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
            UnsupportedTable: Its file groups are buckets, which must not be joined; or they have logs.
        """
        self._refuse_logs()
        return self.transactions.schedule_clustering(self.make_plan)

    def make_plan(self, timeline: Timeline) -> ClusteringPlan | None:
        """What is to be clustered of the table that `timeline` shows: JVM Hudi's size-based plan."""
        self._check_columns(timeline)
        busy = {group for pending in self.list_pending(timeline) for group in pending.plan.file_groups}
        by_partition: dict[str, list[BaseFile]] = {}
        partitions = self.settings.select(list_partitions(self.table.storage))
        for file in latest_base_files(self.table.storage, timeline, partitions=partitions):
            if file.size < self.settings.small_file_bytes and (file.partition, file.file_id) not in busy:
                by_partition.setdefault(file.partition, []).append(file)
        groups = [group for files in by_partition.values() for group in self._make_groups(files)]
        plan = ClusteringPlan(tuple(groups[: self.settings.most_groups]), self.settings.sort_columns)
        return plan if plan.groups else None

    def count_commits(self, timeline: Timeline) -> int:
        """Completed writes since the last clustering, whether that is completed or not."""
        since = max((i.requested for i in timeline.instants if self._is_clustering(timeline, i)), default="")
        return sum(i.requested > since for i in timeline.completed(_WRITES))

    def _schedule_anew(self, pending: PendingPlan[ClusteringPlan]) -> str | None:
        return self.transactions.schedule_clustering(lambda timeline: self._keep_current(pending.plan, timeline))

    def _begin(self, requested: str) -> Transaction:
        return self.transactions.resume(requested)

    def _decode(self, data: bytes, path: str) -> ClusteringPlan | None:
        return ClusteringPlan.decode(data, path)

    def _check_files(self, plan: ClusteringPlan) -> None:
        self._refuse_logs()
        super()._check_files(plan)

    def _refuse_logs(self) -> None:
        """A plan of ours names base files alone: what logs say of their rows would be lost."""
        if self.table.is_merge_on_read:
            message = (
                f"{self.table.storage.base} is a merge-on-read table, and rows of its logs are not clustered here; let"
                " JVM Hudi cluster it, or compact its logs"
            )
            raise UnsupportedTable(message, path=self.table.storage.base)

    def _keep_current(self, plan: ClusteringPlan, timeline: Timeline) -> ClusteringPlan:
        """The plan without the groups of which an input was written, or replaced, since it was made."""
        partitions = {partition for partition, _ in plan.file_groups}
        current = {file.path for file in latest_base_files(self.table.storage, timeline, partitions=partitions)}
        pieces = [piece for group in plan.groups for piece in group.slices]
        return plan.without({(p.partition, p.file_id) for p in pieces if p.relative_path not in current})

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

    def _make_groups(self, files: list[BaseFile]) -> list[ClusteringGroup]:
        """Cut the files of a partition, the largest first, into groups of bounded size."""
        self._refuse_buckets(files)
        groups: list[list[BaseFile]] = [[]]
        for file in sorted(files, key=lambda file: (-file.size, file.file_id)):
            if groups[-1] and sum(f.size for f in groups[-1]) + file.size > self.settings.group_bytes:
                groups.append([])
            groups[-1].append(file)
        return [self._make_group(group) for group in groups if len(group) > 1 or self.settings.sorts_single_files]

    def _make_group(self, files: list[BaseFile]) -> ClusteringGroup:
        storage, size = self.table.storage, sum(file.size for file in files)
        slices = [ClusteringSlice(file.partition, file.file_id, storage.address(file.path)) for file in files]
        return ClusteringGroup(tuple(slices), max(1, -(-size // self.settings.target_bytes)), size)

    def _refuse_buckets(self, files: list[BaseFile]) -> None:
        bucket = next((file for file in files if is_bucket_file_id(file.file_id)), None)
        if self.settings.is_bucketed or (bucket is not None and all(is_bucket_file_id(f.file_id) for f in files)):
            message = (
                "the file groups of this table are the buckets of a bucket index, and joining them would put keys"
                " where no writer looks for them: such a table is not clustered"
            )
            raise UnsupportedTable(message, path=files[0].path)

    def _check_columns(self, timeline: Timeline) -> None:
        schema = self.table.schema(timeline)
        names = [] if schema is None else list(schema.names)
        missing = [column for column in self.settings.sort_columns if column not in names]
        if missing and schema is not None:
            message = f"there is no column {', '.join(map(repr, missing))} to sort by; the table has {', '.join(names)}"
            raise BadInput(message, columns=missing, found=names)
