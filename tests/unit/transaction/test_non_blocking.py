"""Writers that do not block each other, on the same file groups of a merge-on-read table."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from transaction_plays import play_non_blocking

from hudi_locks.format import CommitMetadata, Instant, State, WriteStat
from hudi_locks.format.claim import FileGroupId
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome
from hudi_locks.transaction.conflicts import ConcurrentOperation, NonBlocking, SimpleConcurrentFileWrites
from hudi_locks.transaction.planning import ClusteringPlanning, CompactionPlanning, ServicePlanning
from hudi_locks.transaction.settings import WriterSettings

HISTORIES = max(40, int(os.environ.get("HUDI_LOCKS_HISTORIES", "0")))
BUCKET = "00000003-0000-0000-0000-000000000000-0"
OTHER = "00000004-0000-0000-0000-000000000000-0"
TIMES = "20231114221319990", "20231114221320003"
"""Begin and end of a foreign write, around the begin of ours."""


@pytest.fixture
def mor(harness: Any) -> Any:
    harness.table_type = "MERGE_ON_READ"
    return harness


def begin(mor: Any, mode: str = "non_blocking_concurrency_control") -> Any:
    options = {"hoodie__write__concurrency__mode": mode, "hoodie__index__type": "BUCKET"}
    return mor.open(**options).begin("deltacommit", "UPSERT")


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_writers_of_one_file_group_complete_in_any_order(mor: Any, order: tuple[int, ...]) -> None:
    writes = [begin(mor) for _ in range(3)]
    drafts = [mor.log(tx, BUCKET) for tx in writes]
    results = [writes[number].publish(drafts[number]) for number in order]
    assert [result.outcome for result in results] == [Outcome.COMMITTED] * 3
    times = [result.completion_time for result in results]
    assert times == sorted(set(times))
    assert min(times) > max(tx.instant for tx in writes)


def test_the_same_writers_meet_a_conflict_where_they_are_optimistic(mor: Any) -> None:
    first, second = (begin(mor, "optimistic_concurrency_control") for _ in range(2))
    drafts = mor.log(first, BUCKET), mor.write(second, BUCKET)
    assert first.publish(drafts[0]).is_committed
    assert second.publish(drafts[1]).conflict.other == first.instant


@pytest.mark.histories
def test_histories_of_writers_that_do_not_block_lose_nothing_and_meet_nobody() -> None:
    """Without a lock, with clocks that differ, answers that are lost, deaths, and a cleaner that takes all for dead."""
    simulators = [play_non_blocking(seed) for seed in range(HISTORIES)]
    for seed, simulator in enumerate(simulators):
        assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    calm = [simulator for seed, simulator in enumerate(simulators) if seed % 12 == 0]
    assert {outcome for simulator in calm for outcome in simulator.outcomes.values()} == {Outcome.COMMITTED}
    assert {len(simulator.done()) for simulator in calm} >= {6, 12}
    assert any("is dead" in line for simulator in simulators for line in simulator.trail)
    assert max(len(simulator.compacted) for simulator in simulators) >= 2
    assert Outcome.ABORTED in {outcome for simulator in simulators for outcome in simulator.outcomes.values()}


@pytest.mark.histories
def test_a_conflict_check_among_them_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NonBlocking, "is_candidate", SimpleConcurrentFileWrites.is_candidate)
    assert any(play_non_blocking(seed).wrong().startswith("a write met another") for seed in range(0, HISTORIES, 4))


@pytest.mark.histories
def test_a_compaction_that_forgets_what_is_logged_beside_its_plan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """First by the seed that was found when this was written, then by others."""
    monkeypatch.setattr(CompactionPlanning, "_bring_up_to_date", ServicePlanning._bring_up_to_date)
    assert any("readers see" in play_non_blocking(seed).wrong() for seed in (58, *range(300)))


@pytest.mark.histories
def test_a_compaction_that_leaves_out_what_is_written_all_the_time_harms_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CompactionPlanning, "_stands", ClusteringPlanning._stands)
    wrong = [simulator.wrong() for simulator in map(play_non_blocking, range(HISTORIES))]
    assert not any("readers see" in found for found in wrong)


def foreign(mor: Any, action: str, metadata: CommitMetadata) -> None:
    instant = Instant(TIMES[0], action, State.REQUESTED)
    data = metadata.encode(action, layout_version=2)
    for state, content in ((instant, b""), (instant.as_inflight(), b"")):
        mor.storage.create_if_absent(LAYOUT_2.path(state), content)
    completed = Instant(TIMES[0], action, State.COMPLETED, TIMES[1])
    mor.storage.create_if_absent(LAYOUT_2.path(completed), data)


def written(group: str, operation: str, **changes: Any) -> CommitMetadata:
    return CommitMetadata.of([WriteStat("p", group, f"p/{group}_x")], operation, schema="{}", **changes)


REPLACED = CommitMetadata({}, "CLUSTER", {}, {"p": (BUCKET,)})
COMPACTED = CommitMetadata(written(BUCKET, "COMPACT").partition_to_write_stats, "COMPACT", {}, compacted=True)


@pytest.mark.parametrize(
    ("action", "metadata", "is_met"),
    [
        ("deltacommit", written(BUCKET, "UPSERT"), False),
        ("commit", COMPACTED, False),
        ("commit", written(BUCKET, "BULK_INSERT"), True),
        ("commit", written(BUCKET[:8] + "-aaaa-bbbb-cccc-dddddddddddd-0", "BULK_INSERT"), True),
        ("commit", written(OTHER, "BULK_INSERT"), False),
        ("replacecommit", REPLACED, True),
    ],
    ids=["append", "compaction", "bulk insert", "of another id", "elsewhere", "replacement"],
)
def test_a_write_meets_what_ends_or_rewrites_its_file_groups(
    mor: Any, action: str, metadata: CommitMetadata, is_met: bool
) -> None:
    mor.foreign = True
    tx = begin(mor)
    draft = mor.log(tx, BUCKET)
    foreign(mor, action, metadata)
    result = tx.publish(draft)
    assert result.is_committed is not is_met
    assert (result.conflict is not None) is is_met


@pytest.mark.parametrize(
    ("action", "requested", "is_met"),
    [
        ("clustering", "1", True),
        ("replacecommit", "3", True),
        ("replacecommit", "1", False),
        ("compaction", "3", False),
    ],
)
def test_of_plans_for_its_file_groups_a_write_meets_those_that_end_them(
    action: str, requested: str, is_met: bool
) -> None:
    groups = frozenset({FileGroupId("p", BUCKET)})
    this = ConcurrentOperation("2", "deltacommit", "UPSERT", False, groups)
    plan = ConcurrentOperation(requested, action, None, False, groups)
    assert NonBlocking(is_merge_on_read=True, is_bucketed=True).is_conflict(this, plan) is is_met


def test_columns_that_two_writers_add_are_there_both(mor: Any) -> None:
    first, second = begin(mor), begin(mor)
    drafts = [mor.log(tx, BUCKET) for tx in (first, second)]
    drafts = [replace(d, extra={"schema": columns(name)}) for d, name in zip(drafts, ("a", "b"), strict=True)]
    assert first.publish(drafts[0]).is_committed
    assert second.publish(drafts[1]).is_committed
    done = mor.timeline().completed()[-1]
    data = mor.storage.read(mor.timeline().paths[done])
    schema = json.loads(str(CommitMetadata.decode(data, "").schema))
    assert sorted(field["name"] for field in schema["fields"]) == ["a", "b", "id"]


def columns(added: str) -> str:
    fields = [{"name": name, "type": ["null", "string"], "default": None} for name in ("id", added)]
    return json.dumps({"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": fields})


def test_the_index_of_a_table_counts_where_a_writer_does_not_name_it() -> None:
    assert WriterSettings.of({}, {"hoodie.index.type": "BUCKET"}).is_bucketed
    assert not WriterSettings.of({"hoodie.index.type": "SIMPLE"}, {"hoodie.index.type": "BUCKET"}).is_bucketed
    assert not WriterSettings.of({}, {}).is_bucketed
