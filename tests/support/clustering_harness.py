"""A table in memory whose file groups are clustered without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transaction_harness import write_file

from hudi_locks.format import BaseFileName, ClusteringPlan, CommitMetadata, IOType, WriteStat
from hudi_locks.services import Clustering, ClusteringSettings
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
