"""A merge-on-read table with a file of every kind, made without Spark: nothing of it is imitated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from slice_files import AVRO, SCHEMA, make_rows
from transaction_harness import write_file

from hudi_locks.format import BaseFileName, CommitMetadata, IOType, LogFileName, WriteStat, avro_schema
from hudi_locks.format.log_block import encode_block
from hudi_locks.services import Compaction, TableServices
from hudi_locks.storage import LocalStorage, Storage
from hudi_locks.table import BaseFileFormat, BaseFileWriter, Table, TableConfig, create_partition_metadata
from hudi_locks.table.log_rows import encode_rows
from hudi_locks.transaction import Transaction, Transactions

__all__ = ["WholeTable"]

_SCHEMA = avro_schema(pa.schema([*SCHEMA][5:]), "t")
_PARTITION = "region=eu"
_KEEP = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
}


class WholeTable:
    """The table and its one process."""

    def __init__(self, root: str | Storage, *, foreign: bool = False) -> None:
        extra = {"hudi_locks.foreign_writers": str(foreign).lower()}
        config = TableConfig("t", ("v",), ("ts",), ("ts",), table_type="MERGE_ON_READ", hive_style=True, extra=extra)
        self.table = Table.create(LocalStorage(root) if isinstance(root, str) else root, config)
        self.storage = self.table.storage
        create_partition_metadata(self.storage, _PARTITION, instant="20260101000000000")
        self.transactions = Transactions(self.table, None)
        self.services = TableServices(self.transactions, _KEEP)
        archiver = self.services._archiver
        archiver._settings = replace(archiver._settings, min_age_ms=0)
        self.living: Transaction | None = None

    def put_base(self, group: str, *, rows: int = 3, tx: Transaction | None = None, compacted: bool = False) -> str:
        """Commit a base file; its path."""
        tx = tx or self.transactions.begin("deltacommit", "UPSERT")
        name = str(BaseFileName(group, tx.instant))
        staged = tx.files.start(_PARTITION, name, io_type=IOType.CREATE)
        writer = BaseFileWriter(staged, SCHEMA, BaseFileFormat(AVRO))
        writer.write(make_rows([(f"k{n}", n, n) for n in range(rows)]))
        size = writer.close()
        return self._publish(tx, group, name, rows, size=size, compacted=compacted, ticket=tx.files.seal(staged))

    def put_log(self, group: str, *, rows: int = 2) -> str:
        """Commit a log; its path."""
        tx = self.transactions.begin("deltacommit", "UPSERT")
        name = str(LogFileName(group, tx.instant))
        block = encode_rows(make_rows([(f"k{n}", n, n) for n in range(rows)]), AVRO, instant=tx.instant)
        data = encode_block(block)
        ticket = write_file(tx.files, _PARTITION, name, data)
        return self._publish(tx, group, name, rows, size=len(data), log_version=1, ticket=ticket)

    def compact(self) -> str:
        """Make a base file of the logs of the one group that has some."""
        compaction = Compaction(self.table, self.transactions)
        assert compaction.schedule()
        taken = compaction.take()
        assert taken is not None
        [(_, group)] = taken[1].file_groups
        return self.put_base(group, tx=taken[0], compacted=True)

    def begin(self) -> Transaction:
        """A write under way, with a marker."""
        tx = self.transactions.begin("deltacommit", "UPSERT")
        tx.markers.create(_PARTITION, str(BaseFileName("living-0", tx.instant)), io_type=IOType.CREATE)
        self.living = tx
        return tx

    def fill(self) -> WholeTable:
        """Let there be a file of every kind."""
        for _ in range(3):
            self.put_base("g-0")
            self.put_log("g-0")
            self.compact()
        self.put_base("h-0")
        self.put_log("h-0")
        assert self.services.clean().deleted
        self.services.savepoints.create(user="me", comments="why")
        assert self.services.archive().archived
        self.begin()
        return self

    def close(self) -> None:
        """Let nobody beat any more."""
        if self.living is not None:
            self.living._state.heartbeat.pause()

    def paths(self) -> list[str]:
        """Every file, but for empty ones and those that are staged."""
        return sorted(path for path, entry in self.storage.walk("") if entry.size and "/staging/" not in path)

    def _publish(self, tx: Transaction, group: str, name: str, rows: int, **how: Any) -> str:
        path = f"{_PARTITION}/{name}"
        compacted, size = how.pop("compacted", False), how.pop("size")
        is_log = "log_version" in how
        stat = WriteStat(
            _PARTITION, group, path, num_writes=rows, file_size_bytes=size, log_offset=0 if is_log else None, **how
        )
        operation = "COMPACT" if compacted else "UPSERT"
        done = tx.publish(CommitMetadata.of([stat], operation, schema=_SCHEMA, compacted=compacted))
        assert done.is_committed, done
        return path
