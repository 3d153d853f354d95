"""A table of one version that becomes one of another, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from transaction_harness import OPEN_LOCK, write_file

from hudi_locks.clock import ManualClock
from hudi_locks.config import Options
from hudi_locks.format import (
    BaseFileName,
    CommitMetadata,
    IOType,
    WriteStat,
    avro_schema,
    decode_properties,
)
from hudi_locks.services.versions import VersionChange, VersionChanger
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import PROPERTIES_PATH, Table, TableConfig
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Transactions
from hudi_locks.verification import verify_table

MODE = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
SKEW = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
SCHEMA = avro_schema(pa.schema([pa.field("id", pa.string())]), "t")


@dataclass
class Evolving:
    """A table, and one object for each process that opens it."""

    clock: ManualClock
    storage: MemoryStorage
    takes_s: float = 0.5

    @classmethod
    def create(cls, harness: Any, version: int, *, foreign: bool = False, **changes: Any) -> Evolving:
        extra = {"hudi_locks.foreign_writers": str(foreign).lower(), **changes.pop("extra", {})}
        Table.create(harness.storage, TableConfig("t", ("id",), (), version=version, extra=extra, **changes))
        harness.storage.create_if_absent(".hoodie_partition_metadata", b"")
        return cls(harness.clock, harness.storage)

    def open(self, *, trace: Any = None, **options: str) -> Transactions:
        given = {**MODE, **SKEW, **{name.replace("__", "."): value for name, value in options.items()}}
        return Transactions(Table.load(self.storage), OPEN_LOCK, options=given, clock=self.clock, trace=trace)

    def write(self, by: Transactions | None = None, *groups: str) -> str:
        tx = (by or self.open()).begin("commit", "UPSERT")
        stats = []
        for group in groups or ("g-0",):
            name = str(BaseFileName(group, tx.instant))
            ticket = write_file(tx.files, "", name, b"rows", io_type=IOType.CREATE)
            stats.append(WriteStat("", group, name, num_writes=3, file_size_bytes=4, ticket=ticket))
        self.clock.advance(self.takes_s)
        assert tx.publish(CommitMetadata.of(stats, "UPSERT", schema=SCHEMA)).is_committed
        self.clock.advance(1)
        return tx.instant

    def change(self, to: int, *, trace: Any = None, **options: str) -> VersionChange:
        given = {name.replace("__", "."): value for name, value in options.items()}
        return VersionChanger(self.open(trace=trace), Options(given)).run(to)

    def timeline(self) -> Timeline:
        return Table.load(self.storage).timeline()

    @property
    def properties(self) -> Mapping[str, str]:
        return decode_properties(self.storage.read(PROPERTIES_PATH) or b"", PROPERTIES_PATH)

    @property
    def version(self) -> int:
        return Table.load(self.storage).config.version

    def committed(self) -> list[str]:
        return [instant.requested for instant in self.timeline().completed(("commit",))]

    def check(self) -> None:
        """By the claims, the timeline and its archive; the data files have no rows here."""
        wrong = [one for one in verify_table(self.storage).damages if one.kind != "base-file"]
        assert wrong == []

    def files(self, folder: str) -> list[str]:
        return sorted(name for name in self.storage.list_names(folder) if name[:1].isdigit())
