"""Tables of version 6: names tell no completion time, logs are named by base files, clustering is a replacecommit."""

from __future__ import annotations

from typing import Any

import pytest
from transaction_harness import MODE, Harness

from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.format import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    Instant,
    IOType,
    LogPlace,
    State,
    WriteStat,
)
from hudi_locks.markers import DirectMarkers
from hudi_locks.timeline import LAYOUT_1, create_instant, delete_instant
from hudi_locks.transaction import Outcome, PublishResult, Transaction

BASE, JVM = "20231114220000000", "20231114220100000"
G = "g-0"


@pytest.fixture
def old(harness: Any) -> Harness:
    harness.foreign, harness.table_type, harness.layout = True, "MERGE_ON_READ", LAYOUT_1
    found: Harness = harness
    return found


def log(old: Harness, tx: Transaction, *, barrier: str = BASE) -> PublishResult:
    """Publish one log of the file group."""
    name = LogPlace(barrier, 1).name(G, tx.instant)
    staged = tx.files.start("p", str(name), io_type=IOType.APPEND, is_announced=True)
    with staged.open() as file:
        file.write(b"rows")
    stat = WriteStat("p", G, f"p/{name}", ticket=staged.seal(), log_version=1)
    return tx.publish(CommitMetadata.of([stat], "UPSERT", schema="{}"))


def plan_compaction(old: Harness, requested: str = JVM, group: str = G) -> Instant:
    begun = Instant(requested, "compaction", State.REQUESTED)
    plan = CompactionPlan((CompactionOperation("p", group, BASE, "", (), 0),))
    create_instant(old.storage, LAYOUT_1, instant=begun, data=plan.encode())
    return begun


def test_a_write_is_completed_under_a_name_without_a_time(old: Harness) -> None:
    tx = old.open().begin("deltacommit", "UPSERT")
    result = log(old, tx)
    assert result.outcome is Outcome.COMMITTED
    (done,) = old.timeline().completed()
    assert old.timeline().paths[done] == f".hoodie/{tx.instant}.deltacommit"
    assert done.completion == result.completion_time
    data = old.storage.read(old.timeline().paths[done]) or b""
    assert data.startswith(b"{"), "releases of that version read JSON"
    assert CommitMetadata.decode(data, "it").written_file_groups == {("p", G)}


@pytest.mark.parametrize(("group", "is_met"), [(G, True), ("h-0", False)])
def test_a_compaction_that_was_planned_since_the_write_began_is_a_conflict(
    old: Harness, group: str, is_met: bool
) -> None:
    tx = old.open().begin("deltacommit", "UPSERT")
    plan_compaction(old, group=group)
    result = log(old, tx)
    assert (result.outcome is Outcome.ABORTED) is is_met
    assert (result.conflict is not None and result.conflict.other == JVM) is is_met


def test_a_compaction_that_was_known_is_none_unless_its_plan_is_gone(old: Harness) -> None:
    begun = plan_compaction(old)
    assert log(old, old.open().begin("deltacommit", "UPSERT"), barrier=JVM).outcome is Outcome.COMMITTED
    tx = old.open().begin("deltacommit", "UPSERT")
    delete_instant(old.storage, LAYOUT_1, instant=begun)
    result = log(old, tx, barrier=JVM)
    assert result.conflict is not None
    assert result.conflict.other == JVM


def test_a_clustering_of_the_jvm_is_met_and_left_alone(old: Harness) -> None:
    plan = ClusteringPlan((ClusteringGroup((ClusteringSlice("p", G, "file:/t/p/g-0_0-0-0_1.parquet"),)),))
    begun = Instant(JVM, "replacecommit", State.REQUESTED)
    create_instant(old.storage, LAYOUT_1, instant=begun, data=plan.encode())
    create_instant(old.storage, LAYOUT_1, instant=begun.as_inflight())
    assert old.open().roll_back_failed() == []
    result = log(old, old.open().begin("deltacommit", "UPSERT"))
    assert result.conflict is not None
    assert (result.conflict.other, result.conflict.other_action) == (JVM, "clustering")
    assert old.timeline().get(JVM) is not None


def test_an_overwrite_that_died_is_rolled_back(old: Harness) -> None:
    begun = Instant(JVM, "replacecommit", State.REQUESTED)
    create_instant(old.storage, LAYOUT_1, instant=begun)
    create_instant(old.storage, LAYOUT_1, instant=begun.as_inflight())
    assert old.open().roll_back_failed() == [JVM]
    assert old.timeline().get(JVM) is None


def test_logs_of_a_write_that_died_are_found_by_their_blocks(old: Harness, encode_log: Any) -> None:
    path = f"p/{LogPlace(BASE, 1).name(G, '20231114220000001')}"
    other = f"p/{LogPlace(BASE, 2).name(G, '20231114220000001')}"
    old.storage.replace(path, encode_log(JVM))
    old.storage.replace(other, encode_log("20231114220000001"))
    begun = Instant(JVM, "deltacommit", State.REQUESTED)
    create_instant(old.storage, LAYOUT_1, instant=begun)
    create_instant(old.storage, LAYOUT_1, instant=begun.as_inflight())
    DirectMarkers(old.storage, JVM).create("p", f"{G}_1-2-3_{BASE}.parquet", io_type=IOType.APPEND)
    assert old.open().roll_back_failed() == [JVM]
    assert not old.storage.exists(path)
    assert old.storage.exists(other)


def test_what_a_jvm_must_roll_back_is_refused_by_name(old: Harness, encode_log: Any) -> None:
    path = f"p/{LogPlace(BASE, 1).name(G, '20231114220000001')}"
    old.storage.replace(path, encode_log("20231114220000001") + encode_log(JVM))
    begun = Instant(JVM, "deltacommit", State.REQUESTED)
    create_instant(old.storage, LAYOUT_1, instant=begun)
    create_instant(old.storage, LAYOUT_1, instant=begun.as_inflight())
    DirectMarkers(old.storage, JVM).create("p", f"{G}_1-2-3_{BASE}.parquet", io_type=IOType.APPEND)
    with pytest.raises(UnsupportedTable, match="let a JVM writer of the table roll it back"):
        old.open().roll_back_failed()
    assert old.storage.exists(path)


def test_writers_that_do_not_block_each_other_need_a_later_version(old: Harness) -> None:
    with pytest.raises(ConfigError, match="needs table version 8 or later") as refused:
        old.open(**{MODE: "NON_BLOCKING_CONCURRENCY_CONTROL", "hoodie.index.type": "BUCKET"})
    assert refused.value.key == MODE


def test_a_plan_of_a_service_is_refused_by_name(old: Harness) -> None:
    with pytest.raises(UnsupportedTable, match="logcompaction of a table of version 6 is left to JVM Hudi"):
        old.open().schedule_log_compaction(lambda _: None)
    assert old.timeline().instants == ()


@pytest.fixture
def encode_log() -> Any:
    from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
    from hudi_locks.format.log_deletes import encode_deletes_again

    def encode(requested: str) -> bytes:
        header = {BlockHeader.INSTANT_TIME: requested, BlockHeader.SCHEMA: "{}"}
        return encode_block(LogBlock(BlockType.DELETE, header, encode_deletes_again([], "p")))

    return encode
