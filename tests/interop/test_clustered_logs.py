"""Clustering of merge-on-read tables: rows of logs move too, and both kinds of writers go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bucketed_tables import run_compaction
from metadata_turns import BY_KEY, Shared
from record_places import list_places

from hudi_locks.errors import WriteConflict, WriteError
from hudi_locks.format import ClusteringPlan, CompactionPlan
from hudi_locks.spark import HoodieTable
from hudi_locks.table import latest_file_slices

pytestmark = pytest.mark.interop

APART = {"hoodie__parquet__small__file__limit": "0", "hoodie__compact__inline": "false"}
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")


@pytest.fixture
def table(jvm: Any, spark: Any, path: str) -> Shared:
    """Three file groups in eu, two of them with logs, and one of its own in us; checked once they are all there."""
    made = Shared(jvm, spark, path, BY_KEY)
    with made.unwatched():
        fill(made)
        made.expected = [row for row in made.expected if row[0] != "e"]
    return made


def fill(made: Shared) -> None:
    made.theirs(("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 2.0, None), ("c", "us", 1, None, "theirs"), **APART)
    made.theirs(("d", "eu", 1, 3.0, "theirs"), ("e", "eu", 1, 4.0, "theirs"), **APART)
    made.theirs(("f", "eu", 1, 5.0, "theirs"), **APART)
    made.ours(("a", "eu", 2, 5000.0, "ours"), ("d", "eu", 2, -9.0, "ours"))
    made.theirs(("a", "eu", 3, 6000.0, "theirs"), **APART)
    made.open().delete(made.frame(("e", "eu", 9, 0.0, "")))


def count_logs(table: HoodieTable) -> list[int]:
    return [len(piece.logs) for piece in latest_file_slices(table.table.storage, table.table.timeline())]


def plans_of(path: str, kind: Any, action: str) -> list[Any]:
    found = sorted(Path(path, ".hoodie/timeline").glob(f"*.{action}.requested"))
    return [kind.decode(file.read_bytes(), str(file)) for file in found]


def show(plan: ClusteringPlan) -> list[Any]:
    """Paths without the scheme that only a JVM names."""
    return [
        [(one.file_id, *(path.removeprefix("file:") for path in (one.path, *one.log_paths))) for one in group.slices]
        for group in plan.groups
    ]


def test_both_read_and_write_on_after_either_clustered_logs(table: Shared, jvm: Any) -> None:
    ours = table.open()
    meta = sorted(map(tuple, ours.read().select(*META).collect()))
    last = str(ours.table.timeline().completed()[-1].completion)
    result = ours.clustering.run(sort_by=["value"])
    assert result is not None
    assert (result.file_groups, result.file_groups_replaced, result.rows_written) == (2, 4, 5)
    table.check()
    assert count_logs(ours) == [0, 0]
    assert sorted(map(tuple, ours.read().select(*META).collect())) == meta
    assert ours.incremental(last).count() == 0
    begin = {"hoodie.datasource.read.begin.instanttime": str(int(last) + 1)}
    assert table.read({"hoodie.datasource.query.type": "incremental", **begin}) == []
    with table.unwatched():
        table.theirs(("a", "eu", 4, 1.0, "theirs"), ("g", "eu", 4, 1.0, "theirs"), **APART)
        table.ours(("b", "eu", 4, 2.0, "ours"), ("e", "eu", 4, 2.0, "again"))
        jvm.cluster(ours, "scheduleAndExecute", order="ts")
    assert count_logs(ours) == [0, 0]
    with table.unwatched():
        table.ours(("g", "eu", 5, 3.0, "ours"), ("h", "us", 5, 3.0, "ours"))
        table.theirs(("c", "us", 6, 4.0, "theirs"), ("h", "us", 6, 4.0, "theirs"))
        waiting = ours.clustering.schedule(sort_by=["id"])
        assert waiting is not None
        jvm.cluster(ours, "execute", order="id", instants=waiting)
    with table.unwatched():
        table.ours(("a", "eu", 7, 5.0, "ours"))
        assert ours.clustering.run(sort_by=["id"]) is not None
        assert table.open(hoodie__clean__commits__retained="1").services.clean().deleted
    assert len(list_places(ours)) == len(table.expected)


def test_each_leaves_alone_what_the_other_plans_and_plans_the_same(table: Shared, jvm: Any, path: str) -> None:
    ours = table.open()
    jvm.cluster(ours, "schedule", order="ts")
    [theirs] = plans_of(path, ClusteringPlan, "clustering")
    [waiting] = ours.table.timeline().pending(("clustering",))
    assert sum(len(one.log_paths) for group in theirs.groups for one in group.slices) == 4
    with pytest.raises(WriteConflict, match=f"clustering {waiting.requested}"):
        ours.upsert(table.frame(("a", "eu", 9, 9.0, "ours")))
    with pytest.raises(WriteError, match="planned by a JVM writer"):
        ours.clustering.execute(waiting.requested)
    assert (ours.clustering.run(sort_by=["ts"]), ours.compaction.schedule()) == (None, None)
    run_compaction(jvm, ours, "schedule")
    assert plans_of(path, CompactionPlan, "compaction") == []
    jvm.cluster(ours, "execute", order="ts", instants=waiting.requested)
    table.check()
    table.ours(("a", "eu", 9, 9.0, "ours"), ("c", "us", 9, 9.0, "ours"))
    planned = ours.clustering.schedule(sort_by=["ts"])
    with pytest.raises(Exception, match=r"Conflict|HoodieClusteringUpdateException"):
        table.theirs(("a", "eu", 10, 9.0, "theirs"))
    run_compaction(jvm, ours, "schedule")
    assert (plans_of(path, CompactionPlan, "compaction"), ours.compaction.schedule()) == ([], None)
    mine = plans_of(path, ClusteringPlan, "clustering")[-1]
    assert ours.clustering.abort(str(planned)).value == "ABORTED"
    jvm.cluster(ours, "schedule", order="ts")
    assert show(plans_of(path, ClusteringPlan, "clustering")[-1]) == show(mine)
