"""A table in memory whose file groups are clustered without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from compaction_harness import CompactionHarness
from transaction_harness import write_file

from hudi_locks.format import BaseFileName, ClusteringPlan, CommitMetadata, IOType, WriteStat
from hudi_locks.services import Clustering, ClusteringSettings, find_planned_slices
from hudi_locks.table import Table, TableConfig, create_partition_metadata, latest_base_files
from hudi_locks.transaction import PublishResult, Transaction

SCHEMA = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "string"], "default": null}]}'


@dataclass
class ClusteringHarness:
    """Clustering beside writes of `harness`, in partition p."""

    harness: Any
    table: Table

    @classmethod
    def at(cls, harness: Any) -> ClusteringHarness:
        found = cls(harness, Table.create(harness.storage, TableConfig("t", ("id",), ("part",))))
        create_partition_metadata(harness.storage, "p", instant="0")
        return found

    def clustering(self, *, options: Mapping[str, object] | None = None, **how: Any) -> Clustering:
        """As a process of its own has it."""
        settings = ClusteringSettings.of(options or {}, table_properties={})
        return Clustering(self.table, self.harness.open(**how), settings)

    def commit(self, *groups: str) -> str:
        tx = self.harness.open().begin("commit", "UPSERT")
        assert tx.publish(self.write(tx, *groups)).is_committed
        return str(tx.instant)

    def write(self, tx: Transaction, *groups: str, rows: str = "rows") -> CommitMetadata:
        stats = []
        for group in groups:
            name = str(BaseFileName(group, tx.instant))
            ticket = write_file(tx.files, "p", name, rows.encode(), io_type=IOType.CREATE)
            stats.append(WriteStat("p", group, f"p/{name}", num_writes=1, ticket=ticket))
        return CommitMetadata.of(stats, tx.operation, schema=SCHEMA)

    def run(self, clustering: Clustering, instant: str | None = None) -> PublishResult | None:
        """Join the groups of a plan into `<instant>-0`."""
        taken = clustering.take(instant)
        return None if taken is None else self.finish(*taken)

    def finish(self, tx: Transaction, plan: ClusteringPlan) -> PublishResult:
        written = self.write(tx, f"{tx.instant}-0")
        replaced = tuple(sorted(file_id for _, file_id in plan.file_groups))
        stats, schema = written.stats, written.schema
        return tx.publish(CommitMetadata.of(stats, "CLUSTER", schema=schema, replaced_file_ids={"p": replaced}))

    def groups(self) -> list[str]:
        """The file groups that readers see."""
        return [file.file_id for file in latest_base_files(self.harness.storage, self.harness.timeline())]

    def files(self) -> list[str]:
        """Every data file."""
        return [name for name in self.harness.names("p") if name.endswith(".parquet")]


@dataclass
class LogClusteringHarness(CompactionHarness):
    """The same of a table whose file groups have logs; a row is the requested time of the write that it came with."""

    mode: ClassVar[Mapping[str, str]] = {}

    def clustering(self, **how: Any) -> Clustering:
        """As a process of its own has it."""
        settings = ClusteringSettings.of({}, table_properties={})
        return Clustering(self.table, self.harness.open(**how), settings)

    def make(self, *groups: str) -> str:
        """A delta commit that brings file groups with a base file."""
        tx = self.begin()
        stats = [self._make(tx, group, str(BaseFileName(group, tx.instant)), [tx.instant], None) for group in groups]
        assert tx.publish(CommitMetadata.of(stats, "UPSERT", schema=SCHEMA)).is_committed
        return str(tx.instant)

    def cluster(self, clustering: Clustering) -> PublishResult | None:
        """Run the plan that waits."""
        taken = clustering.take()
        return None if taken is None else self.join(*taken)

    def join(self, tx: Transaction, plan: ClusteringPlan) -> PublishResult:
        """The rows of a plan go to `<instant>-0`."""
        slices = [piece for group in plan.groups for piece in find_planned_slices(group, {})]
        rows = [row for piece in slices for row in self.rows(piece)]
        stat = self._make(tx, f"{tx.instant}-0", str(BaseFileName(f"{tx.instant}-0", tx.instant)), rows, None)
        replaced = {"p": tuple(sorted(piece.file_id for piece in slices))}
        return tx.publish(CommitMetadata.of([stat], "CLUSTER", schema=SCHEMA, replaced_file_ids=replaced))
