"""Clustering of a table of version 6: its action is that of an overwrite, replacecommit; its plan tells it apart."""

from __future__ import annotations

from typing import Any

import pytest
from clustering_harness import ClusteringHarness

from hudi_locks.format import Instant, State, clustered_file_groups
from hudi_locks.table import Table, TableConfig, create_partition_metadata
from hudi_locks.timeline import LAYOUT_1, create_instant
from hudi_locks.transaction import Outcome


@pytest.fixture
def old(harness: Any) -> ClusteringHarness:
    harness.layout = LAYOUT_1
    found = ClusteringHarness(harness, Table(harness.storage, TableConfig("t", ("id",), ("part",), version=6)))
    create_partition_metadata(harness.storage, "p", instant="0")
    return found


def test_a_plan_is_a_replacecommit_that_names_its_file_groups(old: ClusteringHarness) -> None:
    old.commit("a-0", "b-0")
    planned = str(old.clustering().schedule())
    path = f".hoodie/{planned}.replacecommit.requested"
    data = old.harness.storage.read(path)
    assert clustered_file_groups(data or b"", path) == {("p", "a-0"), ("p", "b-0")}
    assert old.clustering().count_commits(old.harness.timeline()) == 0
    result = old.run(old.clustering(), planned)
    assert result is not None
    assert result.is_committed
    assert old.groups() == [f"{planned}-0"]
    assert old.harness.storage.exists(f".hoodie/{planned}.replacecommit")


def test_a_write_of_a_planned_file_group_is_a_conflict_and_others_are_not(old: ClusteringHarness) -> None:
    old.commit("a-0", "b-0")
    planned = old.clustering().schedule()
    tx = old.harness.open().begin("commit", "UPSERT")
    refused = tx.publish(old.write(tx, "a-0"))
    assert refused.conflict is not None
    assert (refused.conflict.other, refused.conflict.other_action) == (planned, "clustering")
    old.commit("c-0")
    assert old.clustering().abort(str(planned)) is Outcome.ABORTED
    old.commit("a-0")
    assert sorted(old.groups()) == ["a-0", "b-0", "c-0"]


def test_a_clustering_that_died_is_rolled_back_by_the_next_one_alone(old: ClusteringHarness) -> None:
    old.commit("a-0", "b-0")
    dead = old.clustering()
    taken = dead.take(str(dead.schedule()))
    assert taken is not None
    taken[0]._state.heartbeat.pause()
    assert old.harness.open().roll_back_failed() == []
    result = old.run(old.clustering())
    assert result is not None
    assert result.is_committed
    assert result.instant > taken[0].instant
    assert [one.action for one in old.harness.timeline().completed()] == ["commit", "rollback", "replacecommit"]
    assert old.harness.timeline().pending() == ()


def test_an_overwrite_under_way_is_no_plan(old: ClusteringHarness) -> None:
    old.commit("a-0", "b-0")
    begun = Instant("20231114231400000", "replacecommit", State.REQUESTED)
    create_instant(old.harness.storage, LAYOUT_1, instant=begun)
    assert old.clustering().list_pending(old.harness.timeline()) == []
    assert old.clustering().count_commits(old.harness.timeline()) == 1
