"""A table in memory whose logs are compacted without Spark; a row is the requested time of the write it came with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from transaction_harness import write_file

from hudi_locks.format import BaseFileName, CommitMetadata, CompactionPlan, IOType, LogFileName, WriteStat
from hudi_locks.services import Compaction, planned_slice
from hudi_locks.table import FileSlice, Table, TableConfig, create_partition_metadata, latest_file_slices
from hudi_locks.transaction import PublishResult, Transaction

SCHEMA = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "string"], "default": null}]}'
D = TypeVar("D", bound="CompactionHarness")
NON_BLOCKING = {
    "hoodie__write__concurrency__mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie__index__type": "BUCKET",
}


@dataclass
class CompactionHarness:
    """Compaction beside delta commits of `harness`, in partition p."""

    harness: Any
    table: Table

    mode: ClassVar[Mapping[str, str]] = NON_BLOCKING

    @classmethod
    def at(cls: type[D], harness: Any) -> D:
        harness.table_type = "MERGE_ON_READ"
        config = TableConfig("t", ("id",), ("part",), table_type="MERGE_ON_READ")
        found = cls(harness, Table.create(harness.storage, config))
        create_partition_metadata(harness.storage, "p", instant="0")
        return found

    def compaction(self, **how: Any) -> Compaction:
        """As a process of its own has it."""
        return Compaction(self.table, self.harness.open(**{**self.mode, **how}))

    def begin(self, **how: Any) -> Transaction:
        tx: Transaction = self.harness.open(**{**self.mode, **how}).begin("deltacommit", "UPSERT")
        return tx

    def log(self, tx: Transaction, *groups: str) -> CommitMetadata:
        stats = [self._make(tx, group, str(LogFileName(group, tx.instant)), [tx.instant], 1) for group in groups]
        return CommitMetadata.of(stats, "UPSERT", schema=SCHEMA)

    def append(self, *groups: str, **how: Any) -> str:
        tx = self.begin(**how)
        assert tx.publish(self.log(tx, *groups)).is_committed
        return str(tx.instant)

    def run(self, compaction: Compaction, instant: str | None = None) -> PublishResult | None:
        taken = compaction.take(instant)
        return None if taken is None else self.finish(*taken)

    def finish(self, tx: Transaction, plan: CompactionPlan) -> PublishResult:
        return tx.publish(self.merge(tx, plan))

    def merge(self, tx: Transaction, plan: CompactionPlan) -> CommitMetadata:
        """Make the base files."""
        slices = [planned_slice(operation) for operation in plan.groups]
        stats = [
            self._make(tx, piece.file_id, str(BaseFileName(piece.file_id, tx.instant)), self.rows(piece), None)
            for piece in slices
        ]
        return CommitMetadata.of(stats, "COMPACT", schema=SCHEMA, compacted=True)

    def rows(self, piece: FileSlice) -> list[str]:
        """What a reader of a slice sees."""
        paths = [piece.base.path] if piece.base else []
        paths += [log.path for log in piece.logs]
        return [row for path in paths for row in json.loads(self.harness.storage.read(path))]

    def seen(self, **at: Any) -> dict[str, list[str]]:
        """The rows of each file group."""
        slices = latest_file_slices(self.harness.storage, self.harness.timeline(), **at)
        return {piece.file_id: self.rows(piece) for piece in slices}

    def _make(self, tx: Transaction, group: str, name: str, rows: list[str], version: int | None) -> WriteStat:
        ticket = write_file(tx.files, "p", name, json.dumps(rows).encode(), io_type=IOType.CREATE)
        return WriteStat("p", group, f"p/{name}", num_writes=1, log_version=version, ticket=ticket)
