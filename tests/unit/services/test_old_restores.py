"""Going back to a savepoint of a merge-on-read table of version 6, whose logs are named by what is below them."""

from __future__ import annotations

from typing import Any

import pytest
from transaction_harness import Harness, stop_at, write_file

from hudi_locks.errors import SavepointRefused, UnsupportedTable, WriteAborted
from hudi_locks.format import (
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    Instant,
    IOType,
    LogPlace,
    RestorePlan,
    RollbackPlan,
    State,
    WriteStat,
    encode_properties,
)
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.format.log_deletes import encode_deletes_again
from hudi_locks.services import Restorer, Savepoints
from hudi_locks.storage import Storage
from hudi_locks.table import PROPERTIES_PATH, TableConfig, create_partition_metadata
from hudi_locks.table.log_rows import encode_rollback
from hudi_locks.timeline import LAYOUT_1, create_instant
from hudi_locks.transaction import StopPoint
from hudi_locks.verification import verify_table

G = "g-0"


@pytest.fixture
def old(harness: Any) -> Harness:
    harness.foreign, harness.table_type, harness.layout = True, "MERGE_ON_READ", LAYOUT_1
    create_partition_metadata(harness.storage, "p", instant="20230101000000000")
    found: Harness = harness
    return found


def encode_block_of(requested: str) -> bytes:
    header = {BlockHeader.INSTANT_TIME: requested, BlockHeader.SCHEMA: "{}"}
    return encode_block(LogBlock(BlockType.DELETE, header, encode_deletes_again([], "p")))


def log(old: Harness, below: str = "", version: int = 1) -> tuple[str, str]:
    """Commit a log of the file group; its requested time, and its path."""
    tx = old.open().begin("deltacommit", "UPSERT")
    name = LogPlace(below or tx.instant, version).name(G, tx.instant)
    ticket = write_file(tx.files, "p", str(name), encode_block_of(tx.instant), io_type=IOType.CREATE)
    stat = WriteStat("p", G, f"p/{name}", ticket=ticket, log_version=version)
    assert tx.publish(CommitMetadata.of([stat], "UPSERT", schema="{}")).is_committed
    old.clock.advance(1)
    return tx.instant, f"p/{name}"


def restore(old: Harness, instant: str) -> Any:
    old.clock.advance(1)
    return Restorer(old.open().coordinator).run(instant)


def logs(storage: Storage) -> list[str]:
    return [f"p/{name}" for name in storage.list_names("p") if ".log." in name]


def test_logs_go_by_their_blocks_whatever_they_are_named_by(old: Harness) -> None:
    first, kept = log(old)
    second, gone = log(old, first, 2)
    result = restore(old, first)
    assert (result.undone, result.deleted) == ((second,), 1)
    assert logs(old.storage) == [kept]
    assert gone not in logs(old.storage)


def test_what_a_jvm_restore_that_died_has_taken_out_goes_with_the_block_that_says_so(old: Harness) -> None:
    first, kept = log(old)
    second, _ = log(old, first, 2)
    old.storage.replace(f"p/.{G}_{first}.log.3_1-0-1", encode_rollback(second))
    plan = RestorePlan(first, ((second, "deltacommit"),))
    begun = Instant(LAYOUT_1.time(old.clock.wall_ms()), "restore", State.REQUESTED)
    create_instant(old.storage, LAYOUT_1, instant=begun, data=plan.encode())
    create_instant(old.storage, LAYOUT_1, instant=begun.as_inflight())
    rollback = Instant(LAYOUT_1.time(old.clock.wall_ms() + 1), "rollback", State.REQUESTED)
    told = RollbackPlan.of(Instant(second, "deltacommit", State.COMPLETED))
    create_instant(old.storage, LAYOUT_1, instant=rollback, data=told.encode())
    create_instant(old.storage, LAYOUT_1, instant=rollback.as_inflight())
    assert restore(old, first).instant == begun.requested
    assert old.timeline().pending() == ()
    assert logs(old.storage) == [kept]
    assert old.timeline().get(second) is None


def test_a_log_with_blocks_of_what_stays_is_refused_before_anything_is_undone(old: Harness) -> None:
    first, _ = log(old)
    second, path = log(old, first, 2)
    old.storage.replace(path, encode_block_of(first) + encode_block_of(second))
    with pytest.raises(UnsupportedTable, match=f"{path} would go with the writes .* tells of {first}"):
        restore(old, first)
    assert old.timeline().pending() == ()
    assert old.timeline().is_completed(second)


def plan_compaction(old: Harness, barrier: str) -> Instant:
    now = old.open().coordinator.layout.time(old.clock.wall_ms())
    begun = Instant(now, "compaction", State.REQUESTED)
    plan = CompactionPlan((CompactionOperation("p", G, barrier, "", (), 0),))
    create_instant(old.storage, LAYOUT_1, instant=begun, data=plan.encode())
    old.clock.advance(1)
    return begun


def test_a_plan_from_before_stays_and_so_do_the_logs_that_it_names(old: Harness) -> None:
    first, _ = log(old)
    planned = plan_compaction(old, first)
    second, kept = log(old, planned.requested)
    _, gone = log(old, planned.requested, 2)
    restore(old, second)
    assert old.timeline().get(planned.requested) == planned
    assert kept in logs(old.storage)
    assert gone not in logs(old.storage)


def complete(old: Harness, planned: Instant) -> None:
    stat = WriteStat("p", G, f"p/{G}_0-0-0_{planned.requested}.parquet")
    old.storage.replace(f"p/{G}_0-0-0_{planned.requested}.parquet", b"rows")
    data = CommitMetadata.of([stat], "COMPACT", schema="{}", compacted=True).encode("commit", layout_version=1)
    create_instant(old.storage, LAYOUT_1, instant=planned.as_inflight())
    create_instant(old.storage, LAYOUT_1, instant=planned.as_completed(""), data=data)
    old.clock.advance(1)


def test_one_that_was_planned_before_and_run_after_stays_completed(old: Harness) -> None:
    first, _ = log(old)
    planned = plan_compaction(old, first)
    second, _ = log(old, planned.requested)
    Savepoints(old.open().coordinator).create(second)
    old.clock.advance(1)
    complete(old, planned)
    third, gone = log(old, planned.requested, 2)
    assert restore(old, second).undone == (third,)
    assert old.timeline().is_completed(planned.requested)
    assert gone not in logs(old.storage)


def test_one_that_has_merged_what_is_undone_is_named(old: Harness) -> None:
    log(old)
    late = old.open().begin("deltacommit", "UPSERT")
    old.clock.advance(1)
    planned = plan_compaction(old, late.instant)
    second, _ = log(old, planned.requested)
    Savepoints(old.open().coordinator).create(second)
    old.clock.advance(1)
    stat = WriteStat("p", G, f"p/.{G}_{late.instant}.log.1_0-0-0", log_version=1)
    data = CommitMetadata.of([stat], "UPSERT", schema="{}").encode("deltacommit", layout_version=1)
    create_instant(old.storage, LAYOUT_1, instant=Instant(late.instant, "deltacommit", State.COMPLETED), data=data)
    complete(old, planned)
    with pytest.raises(SavepointRefused, match=f"{planned.requested} was planned .* has merged {late.instant}"):
        restore(old, second)
    assert old.timeline().pending() == ()


def test_what_a_restore_took_is_not_missed_by_the_savepoint(old: Harness) -> None:
    first, _ = log(old)
    _, gone = log(old, first, 2)
    Savepoints(old.open().coordinator).create(first)
    restore(old, first)
    assert gone not in logs(old.storage)
    config = TableConfig("t", ("id",), ("part",), table_type="MERGE_ON_READ", version=6)
    old.storage.replace(PROPERTIES_PATH, encode_properties(config.to_properties()))
    found = verify_table(old.storage).damages
    assert [one for one in found if one.kind == "savepoint"] == []


@pytest.mark.parametrize("layout", [LAYOUT_1, None])
def test_nobody_begins_beside_a_restore_that_came_while_failed_writes_were_rolled_back(
    harness: Any, layout: Any
) -> None:
    harness.layout = layout or harness.layout
    dead = harness.open().begin("commit", "UPSERT")
    dead._state.heartbeat.pause()
    harness.clock.advance(3_700)
    restoring = Instant("20231114235900000", "restore", State.REQUESTED)

    def come() -> None:
        create_instant(harness.storage, harness.layout, instant=restoring, data=RestorePlan("1", ()).encode())

    with pytest.raises(WriteAborted, match="restore 20231114235900000 is pending"):
        harness.open(trace=stop_at(StopPoint.ROLLBACK_COMPLETED, come)).begin("commit", "UPSERT")
    assert harness.timeline().get(dead.instant) is None
