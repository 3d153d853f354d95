from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from hudi_locks.errors import ConfigError, DamagedTable, WriteConflict
from hudi_locks.format import clustered_file_groups
from hudi_locks.format.claim import FileGroupId
from hudi_locks.transaction import (
    BucketIndexConcurrentFileWrites,
    ConcurrentOperation,
    Conflict,
    ConflictResolutionStrategy,
    Outcome,
    PreferWriter,
    PublishResult,
    SimpleConcurrentFileWrites,
)
from hudi_locks.transaction.conflicts import load_strategy
from hudi_locks.transaction.hooks import STOP_AT, tracer_from
from hudi_locks.transaction.settings import WriterSettings

G, H = FileGroupId("p", "g-0"), FileGroupId("p", "h-0")
SIMPLE = "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy"


def operation(requested: str, action: str = "commit", *groups: FileGroupId, **facts: Any) -> ConcurrentOperation:
    how = {"operation": "UPSERT", "is_completed": True, "groups": frozenset(groups), **facts}
    return ConcurrentOperation(requested, action, **how)


THIS = operation("5", "commit", G, is_completed=False)


@pytest.mark.parametrize("known_by", ["writer", "table"])
def test_a_bucket_index_counts_whoever_knows_of_it(known_by: str) -> None:
    index = {"hoodie.index.type": "BUCKET"}
    given = {"writer": (index, {}), "table": ({}, index)}[known_by]
    assert WriterSettings.of(*given).is_bucketed
    assert not WriterSettings.of({}, {}).is_bucketed


@pytest.mark.parametrize(
    ("other", "on_write", "on_read"),
    [
        (operation("6", "commit", G), True, True),
        (operation("4", "commit", G), True, True),
        (operation("6", "commit", H), False, False),
        (operation("6", "commit", G, operation="COMPACT"), True, False),
        (operation("6", "replacecommit", G, H), True, True),
        (operation("4", "clustering", G, is_completed=False), True, True),
        (operation("6", "replacecommit", G, is_completed=False), True, True),
        (operation("4", "replacecommit", G, is_completed=False), False, False),
        (operation("6", "compaction", G, is_completed=False), False, False),
        (operation("6", "commit", G, is_completed=False), False, False),
        (operation("6", "restore", covers_table=True), True, True),
    ],
)
def test_the_simple_strategy(other: ConcurrentOperation, on_write: bool, on_read: bool) -> None:
    assert SimpleConcurrentFileWrites(is_merge_on_read=False).is_conflict(THIS, other) is on_write
    assert SimpleConcurrentFileWrites(is_merge_on_read=True).is_conflict(THIS, other) is on_read


CLUSTERING = operation("5", "clustering", G, is_completed=False, operation="CLUSTER")
A1, A2, B1 = (FileGroupId("p", f"{bucket:08d}-{tail}-0") for bucket, tail in ((7, "aa"), (7, "bb"), (8, "aa")))


@pytest.mark.parametrize(
    ("theirs", "expected"), [(A1, {A1}), (A2, {A1}), (B1, set()), (FileGroupId("q", A1.file_id), set())]
)
def test_the_bucket_strategy_takes_two_file_groups_of_one_bucket_for_one(
    theirs: FileGroupId, expected: set[FileGroupId]
) -> None:
    strategy = BucketIndexConcurrentFileWrites(is_merge_on_read=False)
    this, other = operation("5", "commit", A1, G, is_completed=False), operation("6", "commit", theirs, H)
    assert strategy.conflicting_groups(this, other) == expected
    assert strategy.is_conflict(this, other) is bool(expected)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hoodie__write__lock__conflict__resolution__strategy": SIMPLE},
        {"hoodie__write__lock__conflict__resolution__strategy": SIMPLE.replace("Simple", "BucketIndex")},
    ],
)
def test_two_writers_that_make_the_same_new_bucket_conflict(harness: Any, options: Any) -> None:
    first, second = (harness.open(hoodie__index__type="BUCKET", **options).begin("commit", "UPSERT") for _ in range(2))
    metadata = harness.write(second, A2.file_id)
    assert first.publish(harness.write(first, A1.file_id)).is_committed
    result = second.publish(metadata)
    assert (result.outcome, result.conflict.groups) == (Outcome.ABORTED, (A2,))


@pytest.mark.parametrize(
    ("this", "other", "expected"),
    [
        (THIS, operation("6", "commit", G), True),
        (THIS, operation("4", "replacecommit", G), True),
        (THIS, operation("6", "commit", H), False),
        (THIS, operation("4", "clustering", G, is_completed=False), False),
        (THIS, operation("6", "replacecommit", G, is_completed=False), False),
        (THIS, operation("4", "commit", G, is_completed=False), False),
        (THIS, operation("6", "restore", covers_table=True), True),
        (CLUSTERING, operation("6", "commit", G), True),
        (CLUSTERING, operation("4", "commit", G, is_completed=False), True),
        (CLUSTERING, operation("6", "deltacommit", G, is_completed=False), True),
        (CLUSTERING, operation("6", "commit", H, is_completed=False), False),
        (CLUSTERING, operation("4", "compaction", G, is_completed=False), False),
    ],
)
def test_the_strategy_that_prefers_writers(
    this: ConcurrentOperation, other: ConcurrentOperation, expected: bool
) -> None:
    strategy = PreferWriter(is_merge_on_read=False)
    assert strategy.is_conflict(this, other) is expected
    assert strategy.heeds_living_writers(this) is (this is CLUSTERING)


@pytest.mark.parametrize("kind", [SimpleConcurrentFileWrites, PreferWriter])
def test_every_strategy_compares_buckets_where_there_is_a_bucket_index(
    kind: type[ConflictResolutionStrategy],
) -> None:
    this, other = operation("5", "commit", A1, is_completed=False), operation("6", "commit", A2)
    assert kind(is_merge_on_read=False, is_bucketed=True).is_conflict(this, other)
    assert not kind(is_merge_on_read=False).is_conflict(this, other)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("simple", SimpleConcurrentFileWrites),
        (SIMPLE, SimpleConcurrentFileWrites),
        ("hudi_locks.transaction.conflicts:SimpleConcurrentFileWrites", SimpleConcurrentFileWrites),
        ("bucket", BucketIndexConcurrentFileWrites),
        (SIMPLE.replace("Simple", "BucketIndex"), BucketIndexConcurrentFileWrites),
        ("prefer_writer", PreferWriter),
        (SIMPLE.replace("SimpleConcurrentFileWrites", "PreferWriter"), PreferWriter),
    ],
)
def test_a_strategy_is_found_by_each_of_its_names(name: str, kind: type[ConflictResolutionStrategy]) -> None:
    assert type(load_strategy(name, is_merge_on_read=True, is_bucketed=False)) is kind


class OnePartition(ConflictResolutionStrategy):
    """Somebody's own: two writes of one partition conflict."""

    def is_candidate(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        return other.is_completed

    def conflicting_groups(self, this: ConcurrentOperation, other: ConcurrentOperation) -> frozenset[FileGroupId]:
        taken = {group.partition for group in other.groups}
        return frozenset(group for group in this.groups if group.partition in taken)


def test_a_strategy_of_ones_own_is_asked(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("their_package")
    monkeypatch.setattr(module, "OnePartition", OnePartition, raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    key = {"hoodie.write.lock.conflict.resolution.strategy": "their_package:OnePartition"}
    first, second = (harness.open(**key).begin("commit", "UPSERT") for _ in range(2))
    metadata = harness.write(second, "h-0")
    assert first.publish(harness.write(first, "g-0")).is_committed
    assert second.publish(metadata).conflict.groups == (H,)


@pytest.mark.parametrize("name", ["smple", "no.such.module:Class", "json:loads", "hudi_locks.errors:TableError"])
def test_a_name_that_means_no_strategy_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load_strategy(name, is_merge_on_read=False, is_bucketed=False)


def test_plans_are_read_and_damaged_ones_named(clustering_plan: Any) -> None:
    assert clustered_file_groups(clustering_plan(("p", "a"), ("", "b")), "x") == {("p", "a"), ("", "b")}
    assert clustered_file_groups(b"", "x") == frozenset()
    with pytest.raises(DamagedTable, match=r"x\.requested"):
        clustered_file_groups(b"nonsense", "x.requested")


def test_a_conflict_travels_between_processes() -> None:
    conflict = Conflict("5", (G, H), "6", "commit", "job (pid 1 on host)", 2500, "Try again.")
    result = PublishResult("5", Outcome.ABORTED, conflict=conflict)
    with pytest.raises(WriteConflict) as caught:
        result.raise_unless_committed()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.partition, again.file_id, again.groups, again.other_age_ms) == ("p", "g-0", (G, H), 2500)
    assert "g-0 of partition 'p' and 1 more" in str(again)
    assert "came first, 2.5 s ago" in str(again)
    assert not again.other_is_pending


@pytest.mark.parametrize(("suffix", "expected"), [("", signal.SIGKILL), (":kill", signal.SIGKILL)])
def test_a_process_stops_where_the_environment_says(suffix: str, expected: signal.Signals) -> None:
    code = (
        "import os; from hudi_locks.transaction.hooks import *; trace = tracer_from(os.environ);"
        "trace(StopPoint.BEGIN_LOCKED); trace(StopPoint.PUBLISH_CLAIMED); print('alive')"
    )
    environment = {**os.environ, STOP_AT: f"publish:claimed{suffix}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-expected, b"")


def test_no_stop_is_asked_for_by_default_and_slips_are_named() -> None:
    assert tracer_from({}) is None
    with pytest.raises(ConfigError, match="publish:claimed"):
        tracer_from({STOP_AT: "publish:clamed"})
