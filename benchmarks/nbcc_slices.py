"""File slices of a merge-on-read table without Spark: reading logs over a base file, and compacting them."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.figures import Figure
from hudi_locks.cli.demo.flights import read_flights
from hudi_locks.format import CommitMetadata, Instant, State, WriteStat, add_ms, avro_schema
from hudi_locks.markers import StagedFiles
from hudi_locks.spark import Operation
from hudi_locks.spark.operation import STAT, decode_stat
from hudi_locks.spark.services.tasks import CompactTask, LogCompactTask
from hudi_locks.spark.writing.log_task import LogTask
from hudi_locks.spark.writing.placement import GROUP, FixedBuckets
from hudi_locks.storage import LocalStorage
from hudi_locks.table import (
    COMMIT_TIME,
    PARTITION_PATH,
    RECORD_KEY,
    BaseFileFormat,
    FileSlice,
    LogFormat,
    Table,
    TableConfig,
    add_meta_schema,
    latest_file_slices,
    read_slice,
)

__all__ = ["run"]

_LOGS = 10
_CHANGED = 0.05
_ROUNDS, _QUICK_ROUNDS = 5, 1
_QUICK_ROWS = 20_000
_FIRST = "20260101000000000"
_NARROW = ("id", "dep_delay")
_DECIDING = (COMMIT_TIME, RECORD_KEY, "ts")


def run(*, quick: bool) -> list[Figure]:
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    flights = _prepare(read_flights().slice(0, _QUICK_ROWS if quick else None))
    with tempfile.TemporaryDirectory() as path:
        bench = _Bench(path, flights)
        bench.log(range(flights.num_rows))
        bench.compact(bench.newest())
        rng = np.random.default_rng(7)
        for _ in range(_LOGS):
            bench.log(np.sort(rng.choice(flights.num_rows, round(flights.num_rows * _CHANGED), replace=False)))
        return _measure(bench, rounds=rounds, rows=flights.num_rows)


def _prepare(flights: pa.Table) -> pa.Table:
    ids = pa.array([f"{number:08d}" for number in range(flights.num_rows)])
    return flights.append_column("id", ids).append_column("ts", pa.array(np.zeros(flights.num_rows, np.int64)))


def _measure(bench: _Bench, *, rounds: int, rows: int) -> list[Figure]:
    logged = bench.newest()
    bench.join(logged)
    joined = bench.newest()
    bench.compact(logged)
    compacted = bench.newest()
    ways: dict[str, Callable[[], object]] = {
        "logs": lambda: bench.read(logged),
        "base": lambda: bench.read(compacted),
        "joined": lambda: bench.read(joined),
        "user logs": lambda: bench.read(logged, tuple(bench.flights.column_names)),
        "user base": lambda: bench.read(compacted, tuple(bench.flights.column_names)),
        "user joined": lambda: bench.read(joined, tuple(bench.flights.column_names)),
        "narrow logs": lambda: bench.read(logged, _NARROW),
        "narrow base": lambda: bench.read(compacted, _NARROW),
        "narrow joined": lambda: bench.read(joined, _NARROW),
        "log compaction": lambda: bench.join(logged),
        "compaction": lambda: bench.compact(logged),
        "rewrite": lambda: bench.rewrite(compacted),
    }
    seen: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, way in ways.items():
            seen.setdefault(name, []).append(_time(way))
    took_ms = {name: round(1000 * statistics.median(found), 1) for name, found in seen.items()}
    what = f"{rows:,} rows with {_LOGS} logs of {_CHANGED:.0%} each"
    pairs = [("reading, meta columns too,", ""), ("reading", "user "), ("reading two columns of", "narrow ")]

    def compare(doing: str, ours: str, peer: str, of_peer: str) -> Figure:
        return Figure(f"{doing} {what}", took_ms[ours], peer, took_ms[of_peer], "ms", "lower")

    return [
        *(compare(doing, f"{kind}logs", "compacted", f"{kind}base") for doing, kind in pairs),
        *(compare(f"log-compacted, {doing}", f"{kind}joined", "the logs", f"{kind}logs") for doing, kind in pairs),
        compare("compacting", "compaction", "pyarrow rewrite", "rewrite"),
        compare("merging the logs of", "log compaction", "compacting", "compaction"),
    ]


def _time(way: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    way()
    return time.perf_counter() - began_s


@dataclass
class _Bench:
    """One file group, and what is done to it; each write gets the next second of a day."""

    path: str
    flights: pa.Table
    writes: int = 0

    def __post_init__(self) -> None:
        config = TableConfig("flights", ("id",), ordering_fields=("ts",), table_type="MERGE_ON_READ")
        self.table = Table.create(LocalStorage(f"{self.path}/table"), config)
        self.schema = add_meta_schema(self.flights.schema)
        self.avro = avro_schema(self.flights.schema, "flights", with_meta_columns=True)

    def log(self, places: Any) -> None:
        """A delta commit of these flights, a step newer than before."""
        chosen = self.flights.take(pa.array(places))
        times = pa.array(np.full(chosen.num_rows, self.writes, np.int64))
        chosen = chosen.set_column(chosen.schema.get_field_index("ts"), "ts", times)
        extra = {RECORD_KEY: chosen["id"], PARTITION_PATH: pa.array(["p"] * chosen.num_rows)}
        for name, column in {**extra, GROUP: pa.array(np.zeros(chosen.num_rows, np.int32))}.items():
            chosen = chosen.append_column(name, column)
        with self._committing("deltacommit", "UPSERT") as (files, stats):
            task = LogTask(
                files=files,
                schema=self.schema,
                form=LogFormat(self.avro),
                groups=FixedBuckets(),
                operation=Operation.UPSERT,
                rule=self.table.config.merge_rule,
                key_fields=("id",),
                memory_bytes=1 << 30,
            )
            stats.extend(_collect(task(chosen.combine_chunks().to_batches())))

    def compact(self, piece: FileSlice) -> None:
        """Merge a slice into a base file."""
        with self._committing("compaction", "COMPACT") as (files, stats):
            rule, form = self.table.config.merge_rule, BaseFileFormat(self.avro)
            task = CompactTask(files, self.schema, form, rule, (piece,))
            stats.extend(_collect(task([pa.RecordBatch.from_pydict({"id": [0]})])))

    def join(self, piece: FileSlice) -> None:
        """Merge the logs of a slice into one log."""
        with self._committing("logcompaction", "LOG_COMPACT") as (files, stats):
            task = LogCompactTask(files, self.schema, LogFormat(self.avro), self.table.config.merge_rule, (piece,))
            stats.extend(_collect(task([pa.RecordBatch.from_pydict({"id": [0]})])))

    def newest(self) -> FileSlice:
        [piece] = latest_file_slices(self.table.storage, self.table.timeline())
        return piece

    def read(self, piece: FileSlice, columns: tuple[str, ...] | None = None) -> int:
        names = {*(columns or self.schema.names), *_DECIDING}
        schema = pa.schema([field for field in self.schema if field.name in names])
        found = read_slice(self.table.storage, piece, schema, rule=self.table.config.merge_rule)
        return sum(rows.num_rows for rows in found)

    def rewrite(self, piece: FileSlice) -> None:
        """The same Parquet read and written by pyarrow, with the same compression."""
        assert piece.base is not None
        rows = pq.read_table(self.table.storage.address(piece.base.path))
        target = Path(self.path, "rewritten.parquet")
        pq.write_table(rows, target, compression="zstd")
        with target.open("rb") as file:
            os.fsync(file.fileno())

    @contextmanager
    def _committing(self, action: str, operation: str) -> Iterator[tuple[StagedFiles, list[WriteStat]]]:
        self.writes += 1
        requested = add_ms(_FIRST, 1000 * self.writes)
        storage, layout = self.table.storage, self.table.layout
        pending = Instant(requested, action, State.REQUESTED)
        storage.create_if_absent(layout.path(pending), b"")
        storage.create_if_absent(layout.path(Instant(requested, action, State.INFLIGHT)), b"")
        files = StagedFiles(storage, layout, requested, action)
        stats: list[WriteStat] = []
        yield files, stats
        done = pending.as_completed(add_ms(requested, 500))
        recorded = avro_schema(self.flights.schema, "flights")
        for stat in stats:
            assert stat.path is None or storage.redeem(str(stat.ticket), stat.path)
        metadata = CommitMetadata.of(stats, operation, schema=recorded, compacted=action != "deltacommit")
        storage.create_if_absent(layout.path(done), metadata.encode(done.action, layout_version=layout.version))


def _collect(batches: Any) -> list[WriteStat]:
    return [decode_stat(text) for batch in batches for text in batch[STAT].to_pylist()]
