"""What happened to a table lately: every instant with what it did and who made it, as far as anything tells."""

from __future__ import annotations

from service_harness import ServiceHarness

from hudi_locks.format import CommitMetadata, WriteStat
from hudi_locks.services.activity import Activity, list_activity
from hudi_locks.table import Table, TableConfig


def look(harness: ServiceHarness, last: int = 20) -> tuple[Activity, ...]:
    return list_activity(Table(harness.storage, TableConfig("t", ("id",))), last=last)


def test_writes_services_and_pending_ones_are_told_in_their_order(harness: ServiceHarness) -> None:
    times = [harness.put("p/g-0", "q/k-0") for _ in range(2)]
    harness.put("p/h-0", replaces=("p/g-0",))
    running = harness.open().begin("commit", "UPSERT")
    first, second, replacing, pending = look(harness)
    assert [first.requested, second.requested] == times
    assert (first.action, first.state, first.operation, first.file_groups) == ("commit", "COMPLETED", "UPSERT", 2)
    assert first.completed_ms is not None
    assert first.completed_ms >= first.began_ms
    assert (replacing.action, replacing.file_groups) == ("replacecommit", 2)
    assert (pending.requested, pending.state, pending.completed_ms) == (running.instant, "INFLIGHT", None)
    assert [one.writer for one in (first, second, replacing)] == [first.writer] * 3
    assert "job" in first.writer
    assert pending.writer.startswith("process ")
    assert look(harness, 2) == (replacing, pending)


def test_rows_and_bytes_are_summed_over_the_files(harness: ServiceHarness) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    stats = [
        WriteStat(
            "p", f"g-{n}", None, num_writes=9, num_inserts=n, num_update_writes=2, num_deletes=1, total_write_bytes=5
        )
        for n in range(3)
    ]
    assert tx.publish(CommitMetadata.of(stats, "UPSERT", schema="{}")).is_committed
    (one,) = look(harness)
    assert (one.rows_inserted, one.rows_updated, one.rows_deleted, one.bytes_written) == (3, 6, 3, 15)


def test_of_a_writer_without_claims_nobody_is_named(harness: ServiceHarness) -> None:
    metadata = CommitMetadata.of((), "UPSERT", schema="{}").encode("commit", layout_version=2)
    harness.foreign_instant("20200101000000000", "commit", "20200101000001000", metadata)
    for _ in range(40):
        harness.put("p/g-0")
    found = look(harness, 100)
    assert (found[0].requested, found[0].writer, found[0].fencing_token) == ("20200101000000000", "", None)
    assert (found[0].began_ms, found[0].completed_ms) == (1577836800000, 1577836801000)
    assert all(one.writer for one in found[1:])


def test_an_empty_timeline_has_none(harness: ServiceHarness) -> None:
    assert look(harness) == ()
