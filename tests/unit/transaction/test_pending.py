"""What is planned or under way beside a write, whoever's it is: who gives way, and what the conflict says."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from hudi_locks.errors import DamagedTable, WriteConflict
from hudi_locks.format import CommitMetadata, Instant, IOType, State, WriteStat
from hudi_locks.format.claim import Claim, ClaimKind, Content, FileGroupId
from hudi_locks.format.compaction_plan import compacted_file_groups
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.claims import ClaimLog
from hudi_locks.transaction.operations import planned_operations

PLANNED = "20231114221315000"
PREFER_WRITER = {"hoodie.write.lock.conflict.resolution.strategy": "prefer_writer"}


def plan(harness: Any, data: bytes, state: State = State.REQUESTED, action: str = "clustering") -> Instant:
    """What a JVM planner leaves, 5 s before the harness opens."""
    instant = Instant(PLANNED, action, state)
    harness.storage.replace(LAYOUT_2.path(instant.as_requested()), data)
    if state is State.INFLIGHT:
        harness.storage.replace(LAYOUT_2.path(instant), b"")
    return instant


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("foreign", [True, False])
def test_a_pending_clustering_keeps_its_inputs_to_itself(
    harness: Any, clustering_plan: Any, state: State, foreign: bool
) -> None:
    """Also once it runs: then its inflight file is empty, and the plan stands in the requested one.

    Where no JVM planner is expected, a listing of the last second is believed.
    """
    harness.foreign = foreign
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    plan(harness, clustering_plan(("p", "g-0")), state)
    wait_s = 0 if foreign else 2
    harness.clock.advance(wait_s)
    with pytest.raises(
        WriteConflict, match=rf"the other was begun {5 + wait_s}\.0 s ago and is not finished"
    ) as caught:
        tx.publish(metadata).raise_unless_committed()
    error = caught.value
    assert (error.partition, error.file_id, error.other, error.other_action) == ("p", "g-0", PLANNED, "clustering")
    assert (error.other_writer, error.other_is_pending) == ("a JVM writer", True)
    assert error.other_age_ms - wait_s * 1000 in range(5_000, 5_100)
    assert "prefer_writer" in error.advice


def test_a_pending_clustering_elsewhere_is_none(harness: Any, clustering_plan: Any) -> None:
    plan(harness, clustering_plan(("p", "h-0"), ("q", "g-0")), State.INFLIGHT)
    tx = harness.open().begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0")).is_committed


def test_writes_pass_a_plan_where_writers_are_preferred(harness: Any, clustering_plan: Any) -> None:
    plan(harness, clustering_plan(("p", "g-0")), State.INFLIGHT)
    tx = harness.open(**PREFER_WRITER).begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0")).is_committed


def schedule(harness: Any, data: bytes) -> None:
    """A plan of our own, as its claim puts it on the timeline."""
    log = ClaimLog(harness.storage, harness.clock)
    content = Content.of(f"{PLANNED}.clustering.requested", data)
    groups = frozenset({FileGroupId("p", "g-0")})
    claim = Claim(
        ClaimKind.SCHEDULE, PLANNED, "clustering", PLANNED, writes=groups, content=content, owner="the planner"
    )
    assert log.append(log.draft(log.read_head(), claim)) is not None


def test_a_plan_of_our_own_is_no_foreign_writer_and_names_who_made_it(harness: Any, clustering_plan: Any) -> None:
    schedule(harness, clustering_plan(("p", "g-0")))
    tx = harness.open().begin("commit", "UPSERT")
    conflict = tx.publish(harness.write(tx, "g-0")).conflict
    assert (conflict.other, conflict.other_writer, conflict.other_is_pending) == (PLANNED, "the planner", True)
    assert "foreign-writer.json" not in harness.names(".hoodie/.hudi_locks/notices")


def test_a_plan_that_was_rolled_back_is_in_nobodys_way(harness: Any, clustering_plan: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    schedule(harness, clustering_plan(("p", "g-0")))
    assert harness.open().resolve(PLANNED).value == "ABORTED"
    assert tx.publish(metadata).is_committed


def test_a_table_service_gives_way_to_a_living_writer_that_announced_its_file_group(harness: Any) -> None:
    writer, service = (harness.open(**PREFER_WRITER).begin(action, "") for action in ("commit", "replacecommit"))
    service_files = harness.write(service, "g-0")
    clustered = CommitMetadata(service_files.partition_to_write_stats, "CLUSTER", replaced_file_ids={"p": ("g-0",)})
    writer.files.start("p", "g-0_0-0-0_1.parquet", io_type=IOType.MERGE)
    conflict = service.publish(clustered).conflict
    assert (conflict.other, conflict.other_writer, conflict.file_id) == (writer.instant, "a writer at work", "g-0")
    assert "once the other has ended" in conflict.advice


@pytest.mark.parametrize("why", ["dead", "elsewhere", "simple"])
def test_a_table_service_passes_whoever_is_not_in_its_way(harness: Any, why: str) -> None:
    writer = harness.open().begin("commit", "UPSERT")
    writer.files.start("p", f"{'h' if why == 'elsewhere' else 'g'}-0_0-0-0_1.parquet", io_type=IOType.MERGE)
    if why == "dead":
        writer._state.heartbeat.pause()
        harness.clock.advance(121)
    service = harness.open(**({} if why == "simple" else PREFER_WRITER)).begin("replacecommit", "CLUSTER")
    stats = harness.write(service, "g-0").partition_to_write_stats
    assert service.publish(CommitMetadata(stats, "CLUSTER")).is_committed


def compaction_plan(*groups: tuple[str, str]) -> bytes:
    fields = [{"name": name, "type": ["null", "string"]} for name in ("partitionPath", "fileId")]
    operation: dict[str, Any] = {"type": "record", "name": "HoodieCompactionOperation", "fields": fields}
    listed = [{"name": "operations", "type": ["null", {"type": "array", "items": operation}]}]
    schema: dict[str, Any] = {"type": "record", "name": "HoodieCompactionPlan", "fields": listed}
    sink = io.BytesIO()
    operations = [{"partitionPath": partition, "fileId": file_id} for partition, file_id in groups]
    fastavro.writer(sink, schema, [{"operations": operations}])
    return sink.getvalue()


def test_plans_of_compactions_are_read_and_damaged_ones_named(harness: Any) -> None:
    data = compaction_plan(("p", "g-0"), ("", "h-0"))
    assert compacted_file_groups(data, "x") == {("p", "g-0"), ("", "h-0")}
    assert compacted_file_groups(b"", "x") == frozenset()
    with pytest.raises(DamagedTable, match=r"x\.requested"):
        compacted_file_groups(b"nonsense", "x.requested")
    plan(harness, data, State.INFLIGHT, "compaction")
    [operation] = planned_operations(harness.storage, harness.timeline())
    assert operation.action == "compaction"
    assert operation.groups == frozenset({FileGroupId("p", "g-0"), FileGroupId("", "h-0")})


def test_a_replacing_write_of_the_jvm_is_known_by_the_forecast_in_its_inflight_file(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    later = Instant("20231114221320050", "replacecommit", State.REQUESTED)
    forecast = CommitMetadata.of([WriteStat("p", "g-0", None)], "INSERT_OVERWRITE", schema=None)
    harness.storage.replace(LAYOUT_2.path(later), b"")
    harness.storage.replace(LAYOUT_2.path(later.as_inflight()), forecast.encode("replacecommit", layout_version=2))
    harness.clock.advance(2)
    conflict = tx.publish(metadata).conflict
    assert (conflict.other, conflict.other_action, conflict.other_is_pending) == (
        later.requested,
        "replacecommit",
        True,
    )
