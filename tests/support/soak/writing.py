"""One write of a deed as the pipeline does it, with Arrow in place of Spark: index and tasks in this process."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_locks.clock import Clock
from hudi_locks.format import CommitMetadata, WriteStat, avro_schema
from hudi_locks.format.claim import FileGroupId
from hudi_locks.lock import LockManager
from hudi_locks.services import TableServices
from hudi_locks.spark import Operation
from hudi_locks.spark.operation import STAT, decode_stat
from hudi_locks.spark.settings import FileSizing
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP, ListedGroups
from hudi_locks.spark.writing.task import WriteTask
from hudi_locks.storage import Storage
from hudi_locks.table import (
    COMMIT_TIME,
    PARTITION_PATH,
    RECORD_KEY,
    BaseFile,
    BaseFileFormat,
    MergeRule,
    Table,
    TableConfig,
    add_meta_schema,
    read_base_file,
)
from hudi_locks.transaction import PublishResult, ReadSet, Tracer, Transaction, Transactions
from soak.deeds import COLUMNS, KEPT_UNDER, Deed, Kind, Row

__all__ = ["USER", "DeedWriter", "describe_table", "read_rows"]

USER = pa.schema(
    [("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("value", pa.float64()), ("label", pa.string())]
)
_OPERATIONS = {Kind.RAISE: Operation.UPSERT}
_RECORD_BYTES = 1024
_LARGE_BYTES = 1 << 20
_MEMORY_BYTES = 1 << 24
Place = tuple[str, str]


def describe_table(version: int, *, beside_jvm: bool) -> TableConfig:
    """The table of a soak."""
    extra = {} if beside_jvm else {"hudi_locks.foreign_writers": "false"}
    return TableConfig("soak", ("id",), ("region",), ("ts",), version=version, hive_style=True, extra=extra)


def read_rows(storage: Storage, path: str) -> list[Row]:
    """The rows of a base file."""
    pieces = [piece.select(COLUMNS).to_pydict() for piece in read_base_file(storage, path)]
    return [row for piece in pieces for row in zip(*(piece[name] for name in COLUMNS), strict=True)]


@dataclass(frozen=True)
class MissedKeys:
    """Keys that the snapshot lacked; see `hudi_locks.transaction.AbsentKeys`."""

    storage: Storage
    places: frozenset[Place]
    known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def partitions(self) -> frozenset[str]:
        return frozenset(partition for partition, _ in self.places)

    def find_among(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        if instant not in self.known:
            both = self.places & {place for path in paths for place in self._written(path, instant)}
            self.known[instant] = tuple(key for _, key in sorted(both))
        return self.known[instant]

    def _written(self, path: str, instant: str) -> Iterable[Place]:
        for piece in read_base_file(self.storage, path):
            names = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
            rows = zip(*(piece[name].to_pylist() for name in names), strict=True)
            yield from ((partition, key) for time, partition, key in rows if time == instant)


@dataclass(frozen=True)
class Placed:
    """The rows of a deed, and where they go."""

    deed: Deed
    operation: Operation
    groups: Mapping[Place, str]
    bases: tuple[BaseFile, ...]
    reads: ReadSet | None

    def batch(self) -> pa.RecordBatch:
        """The input of a task."""
        rows = [row for row in self.deed.rows if (partition_of(row), row[0]) in self.groups]
        columns = {name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)}
        columns |= {RECORD_KEY: columns["id"], PARTITION_PATH: [partition_of(row) for row in rows]}
        columns |= {GROUP: [self.groups[partition_of(row), row[0]] for row in rows]}
        extra = [pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, GROUP)]
        return pa.RecordBatch.from_pydict(columns, schema=pa.schema([*USER, *extra]))


def partition_of(row: Row) -> str:
    """The partition path of a row."""
    return f"region={row[1]}"


class DeedWriter:
    """Writes deeds to one table. Not for several threads.

    Args:
        table: The table.
        locks: Of the table.
        options: Hudi's keys.
        clock: Of the transactions.
        trace: Called at every named point of the protocol.
    """

    def __init__(
        self, table: Table, locks: LockManager, *, options: Mapping[str, str], clock: Clock, trace: Tracer | None = None
    ) -> None:
        self._table = table
        self.transactions = Transactions(table, locks, options=options, clock=clock, trace=trace)
        self.services = TableServices(self.transactions, options)
        self.instant = ""

    def write(self, deed: Deed) -> PublishResult:
        """One attempt; `instant` names it from its begin."""
        self.instant = ""
        operation = _OPERATIONS.get(deed.kind) or Operation(deed.kind.value)
        with self.transactions.begin(operation.action, operation.value.upper()) as transaction:
            self.instant = transaction.instant
            snapshot = Snapshot(self._table, transaction.timeline)
            placed = self._place(deed, operation, snapshot)
            stats = self._run(transaction, placed)
            partitions = frozenset(partition_of(row) for row in deed.rows)
            metadata = CommitMetadata.of(
                (stat for stat in stats if stat.path is not None),
                transaction.operation,
                schema=avro_schema(USER, self._table.config.name),
                extra={KEPT_UNDER: deed.name},
                replaced_file_ids=snapshot.find_replaced(operation, partitions),
            )
            return transaction.publish(metadata, reads=placed.reads)

    def _place(self, deed: Deed, operation: Operation, snapshot: Snapshot) -> Placed:
        partitions = {partition_of(row) for row in deed.rows}
        bases = () if operation.replaces else tuple(snapshot.base_files(partitions))
        looks_up = operation in (Operation.UPSERT, Operation.DELETE)
        found = self._look_up(bases) if looks_up else {}
        deed = deed.against({(row[1], row[0]): row for _, row in found.values()})
        wanted = {(partition_of(row), row[0]) for row in deed.rows}
        groups = {place: found[place][0] for place in wanted & found.keys()}
        absent = wanted - found.keys()
        if operation is not Operation.DELETE:
            groups |= _share(deed.name, absent, bases)
        looked_at = frozenset(FileGroupId(place[0], found[place][0]) for place in wanted & found.keys())
        missed = MissedKeys(self._table.storage, frozenset(absent))
        reads = ReadSet(frozenset(partitions), looked_at, missed) if looks_up else None
        return Placed(deed, operation, groups, bases, reads)

    def _look_up(self, bases: Iterable[BaseFile]) -> dict[Place, tuple[str, Row]]:
        storage = self._table.storage
        rows = ((file, row) for file in bases for row in read_rows(storage, file.path))
        return {(file.partition, row[0]): (file.file_id, row) for file, row in rows}

    def _run(self, transaction: Transaction, placed: Placed) -> list[WriteStat]:
        """What an executor does."""
        task = WriteTask(
            files=transaction.files,
            schema=add_meta_schema(USER),
            form=BaseFileFormat(avro_schema(USER, self._table.config.name, with_meta_columns=True)),
            groups=ListedGroups({(file.partition, file.file_id): file for file in placed.bases}),
            operation=placed.operation,
            rule=MergeRule(("ts",)),
            combine=placed.operation is Operation.UPSERT,
            key_fields=("id",),
            memory_bytes=_MEMORY_BYTES,
            changes=None,
        )
        batches = list(task([placed.batch()]))
        return [decode_stat(text) for batch in batches for text in batch[STAT].to_pylist()]


def _share(name: str, absent: Iterable[Place], bases: Iterable[BaseFile]) -> dict[Place, str]:
    """File groups of new rows: small files take them, or, for every second deed, new files."""
    rng = random.Random(f"{name} files")
    sizing = FileSizing(_RECORD_BYTES, _LARGE_BYTES, rng.choice((0, _LARGE_BYTES)))
    places = sorted(absent)
    counts = {partition: sum(place[0] == partition for place in places) for partition, _ in places}
    shares = sizing.share_rows(counts, bases)
    return {place: rng.choice(shares[place[0]]) for place in places}
