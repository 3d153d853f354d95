"""What a table is and how it does, as one look tells it."""

from __future__ import annotations

from types import MappingProxyType

import pyarrow as pa
from service_harness import ServiceHarness

from hudi_locks.format import avro_schema
from hudi_locks.services.overview import FileCounts, look_over
from hudi_locks.table import BaseFile, FileSlice, LogFile, Table, TableConfig
from hudi_locks.timeline.heartbeat import heartbeat_path

SCHEMA = avro_schema(pa.schema([("id", pa.string()), ("month", pa.string())]), "t")
CDC = MappingProxyType({"hoodie.table.cdc.enabled": "true", "hoodie.table.metadata.partitions": "files, column_stats"})


def test_files_are_counted_as_the_newest_snapshot_shows_them() -> None:
    def piece(partition: str, base: int, *logs: int) -> FileSlice:
        made = tuple(LogFile(partition, "g", "1", n, "0-0-0", f"{n}", size) for n, size in enumerate(logs))
        return FileSlice(partition, "g", "1", BaseFile(partition, "g", "1", "b", base) if base else None, made)

    counts = FileCounts.of([piece("p", 100, 7), piece("p", 10), piece("q", 0, 1, 2)], small_bytes=100)
    assert counts == FileCounts(2, 3, 110, small_files=1, logs=3, log_bytes=10)


def test_what_is_pending_is_told_with_its_writer_and_its_last_sign_of_life(harness: ServiceHarness) -> None:
    harness.schema = SCHEMA
    first = harness.put("p/g-0", "q/k-0")
    harness.put("p/g-0")
    running = harness.open().begin("commit", "UPSERT")
    harness.clock.advance(3)
    table = Table(harness.storage, TableConfig("t", ("id",), ("month",), extra=dict(CDC)))
    found = look_over(table)
    assert (found.settings.record_key, found.settings.partitioned_by) == (("id",), ("month",))
    assert found.settings.metadata_parts == ("column_stats", "files")
    assert found.settings.change_logs == "DATA_BEFORE_AFTER"
    assert found.columns == ("id", "month")
    assert (found.files.file_groups, found.files.partitions, found.files.small_files) == (2, 2, 2)
    assert (found.instants, found.claims > 0, found.savepoints) == (3, True, ())
    assert found.last_completed_ms is not None
    (pending,) = found.pending
    assert (pending.requested, pending.action, pending.state) == (running.instant, "commit", "INFLIGHT")
    assert pending.age_ms >= 3000
    assert pending.heartbeat_age_ms is not None
    assert pending.writer.startswith("process ")
    assert first < running.instant
    harness.storage.delete(heartbeat_path(running.instant))
    (silent,) = look_over(table).pending
    assert (silent.heartbeat_age_ms, silent.writer) == (None, "")


def test_small_is_what_the_options_say(harness: ServiceHarness) -> None:
    harness.schema = SCHEMA
    harness.put("p/g-0")
    table = Table(harness.storage, TableConfig("t", ("id",)))
    assert look_over(table, {"hoodie.parquet.small.file.limit": 1}).files.small_files == 0
    assert look_over(table).files.small_files == 1
