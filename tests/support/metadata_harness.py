"""The harness of a table that keeps a metadata table which JVM Hudi made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from golden_metadata import read_golden, read_old_golden
from service_harness import ServiceHarness
from transaction_harness import Harness

from hudi_locks.config import table_keys
from hudi_locks.format import (
    METADATA_FOLDER,
    CommitMetadata,
    Instant,
    MetadataPartition,
    State,
    avro_schema,
    encode_properties,
)
from hudi_locks.format.column_range import LONG, ColumnRange, encode_ranges
from hudi_locks.metadata_table import METADATA_LAYOUT, OLD_METADATA_LAYOUT, MetadataTable
from hudi_locks.table import PROPERTIES_PATH, TableConfig
from hudi_locks.timeline import LAYOUT_1, LAYOUT_2, Timeline, TimelineLayout
from hudi_locks.transaction import Transaction, Transactions

__all__ = ["PARTS", "MetadataHarness", "rollback_of_the_jvm"]

SCHEMA = avro_schema(pa.schema([(name, pa.int64()) for name in ("id", "region", "ts", "name", "price", "qty")]), "t")
PARTS = (MetadataPartition.FILES, MetadataPartition.COLUMN_STATS, MetadataPartition.PARTITION_STATS)
"""Those that JVM Hudi makes by default; the last not in version 6."""
_LATER_S = 100_000_000.0
"""The golden files are of 2026, and the clock of the harness begins earlier."""


@dataclass
class MetadataHarness(ServiceHarness):
    """Its files are in partition p, which the metadata table does not know yet."""

    version: int = 9

    @classmethod
    def of(cls, harness: Harness, version: int) -> MetadataHarness:
        harness.clock.advance(_LATER_S)
        layout = LAYOUT_1 if version == 6 else LAYOUT_2
        found = cls(harness.clock, harness.storage, layout=layout, version=version)
        golden = read_old_golden() if version == 6 else read_golden("1.0.2" if version == 8 else "1.2.0")
        for path, data in golden.items():
            if path.startswith("cow/"):
                found.storage.replace(f"{METADATA_FOLDER}/{path.removeprefix('cow/')}", data)
        found.storage.replace(".hoodie/.index_defs/index.json", golden["cow.index_defs/index.json"])
        found.say(found.named_parts)
        return found

    @property
    def parts(self) -> tuple[MetadataPartition, ...]:
        return PARTS[:2] if self.version == 6 else PARTS

    @property
    def named_parts(self) -> str:
        return ",".join(part.value for part in self.parts)

    @property
    def own_layout(self) -> TimelineLayout:
        """Of the timeline of the metadata table."""
        return OLD_METADATA_LAYOUT if self.version == 6 else METADATA_LAYOUT

    def say(self, names: str) -> None:
        """Which parts of a metadata table there are."""
        config = TableConfig("t", ("id",), ("part",), version=self.version)
        properties = {**config.to_properties(), table_keys.METADATA_PARTITIONS.name: names}
        self.storage.replace(PROPERTIES_PATH, encode_properties(properties))

    def open(self, **how: Any) -> Transactions:
        """Processes that know of the metadata table since they loaded the table."""
        transactions = super().open(**how)
        transactions.coordinator.__dict__["keeps_metadata"] = True
        return transactions

    def write(self, tx: Transaction, *groups: str, partition: str = "p", data: bytes = b"rows") -> CommitMetadata:
        return _with_ranges(tx, super().write(tx, *groups, partition=partition, data=data))

    def rewrite(self, tx: Transaction, *groups: str, replaces: tuple[str, ...] = ()) -> CommitMetadata:
        return _with_ranges(tx, super().rewrite(tx, *groups, replaces=replaces))

    @property
    def metadata_table(self) -> MetadataTable:
        return MetadataTable(self.storage, frozenset(self.named_parts.split(",")), self.version, self.version)

    def own_timeline(self) -> Timeline:
        """That of the metadata table."""
        return Timeline.load(self.storage, self.own_layout)

    def check_names(self) -> None:
        """It names the files that are there, and no other."""
        named = self.metadata_table.view(self.timeline()).files.get("p", {})
        assert named == {e.name: e.size for e in self.storage.list("p") if e.name.endswith(".parquet")}

    def check(self) -> None:
        """It names the files of completed writes, all of them and no other, and no log is of anything else."""
        timeline = self.timeline()
        named = self.metadata_table.view(timeline).files.get("p", {})
        completed = {one.requested for one in timeline.completed(("commit",))}
        there = {entry.name: entry.size for entry in self.storage.list("p") if entry.name.endswith(".parquet")}
        assert named == there
        assert {name.rpartition("_")[2].removesuffix(".parquet") for name in there} <= completed
        assert self.own_timeline().pending() == ()
        known = {one.requested for one in self.own_timeline().completed()}
        assert completed <= known
        if self.version == 6:
            return  # logs are named by base files
        logs = [name for part in PARTS for name in self.names(f"{METADATA_FOLDER}/{part.value}")]
        assert {name.split("_")[1].split(".")[0] for name in logs if ".log." in name} <= known

    def compact_by_jvm(self, requested: str) -> None:
        """A compaction of the metadata table appears; what it wrote does not matter."""
        instant = Instant(requested, "compaction", State.REQUESTED)
        self.storage.replace(METADATA_LAYOUT.path(instant), b"")


def _with_ranges(tx: Transaction, written: CommitMetadata) -> CommitMetadata:
    """Of two rows in each file, for all indexed columns."""
    told = encode_ranges(dict.fromkeys(tx.files.indexed, ColumnRange(LONG, 1, 2, 2, 0)))
    stats = {
        partition: tuple(replace(stat, num_writes=2, file_size_bytes=len(b"rows"), ranges=told) for stat in found)
        for partition, found in written.partition_to_write_stats.items()
    }
    return replace(written, partition_to_write_stats=stats, extra={"schema": SCHEMA})


def rollback_of_the_jvm(harness: MetadataHarness, requested: str) -> None:
    """What a JVM writer does to a delta commit that it finds pending: the logs go, then its instant."""
    for part in PARTS:
        folder = f"{METADATA_FOLDER}/{part.value}"
        for name in harness.names(folder):
            if requested in name:
                harness.storage.delete(f"{folder}/{name}")
    for state in (State.INFLIGHT, State.REQUESTED):
        harness.storage.delete(METADATA_LAYOUT.path(Instant(requested, "deltacommit", state)))
