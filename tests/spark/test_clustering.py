"""Clustering: by hand, after commits, beside a writer, and as a job of its own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import shared_table
from json_checks import check_json

from hudi_locks.cli import main
from hudi_locks.errors import BadInput, UnsupportedTable, WriteConflict
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.services.clustering import ClusteringJob
from hudi_locks.table import latest_base_files
from hudi_locks.transaction import Outcome

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
SHARED = {**shared_table.SHARED, "hoodie.parquet.small.file.limit": "0"}
DEADLINE_S = 600
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")


def fill(table: HoodieTable, frame: Frame) -> list[Any]:
    """Three commits, each with file groups of its own in two partitions."""
    batches = (
        [("d", "1", 4, 4.0), ("a", "1", 1, 1.0), ("x", "2", 1, 1.0)],
        [("c", "1", None, 3.0), ("y", "2", 2, 2.0)],
        [("b", "1", 2, 2.0), ("e", "1", 5, 5.0)],
    )
    return [table.bulk_insert(frame(batch)) for batch in batches]


def files_of(table: HoodieTable) -> list[Any]:
    return list(latest_base_files(table.table.storage, table.table.timeline()))


def test_small_files_become_sorted_ones_and_every_row_stays_as_it_was(
    create: Create, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    table = create()
    commits = fill(table, frame)
    before, meta = rows_of(table), rows_of(table.read(), *META)
    result = table.clustering.run(sort_by=["ts", "id"])
    assert result is not None
    assert (result.file_groups, result.file_groups_replaced, result.rows_written, result.rows_inserted) == (2, 5, 7, 0)
    assert rows_of(table) == before
    assert rows_of(table.read(), *META) == meta
    assert rows_of(table.as_of(commits[1].completion_time), "id") == [("a",), ("c",), ("d",), ("x",), ("y",)]
    assert rows_of(table.incremental(commits[-1].completion_time)) == []
    assert rows_of(table.incremental(commits[0].completion_time), "id") == [("b",), ("c",), ("e",), ("y",)]
    first, second = files_of(table)
    rows = pq.read_table(Path(path, first.path), partitioning=None)
    assert rows["id"].to_pylist() == ["c", "a", "b", "d", "e"]
    assert set(rows["_hoodie_file_name"].to_pylist()) == {Path(first.path).name}
    assert (first.partition, second.partition) == ("1", "2")
    changed = table.upsert(frame([("a", "1", 9, 9.0), ("n", "1", 9, 9.0)]))
    assert (changed.rows_updated, changed.rows_inserted) == (1, 1)
    assert rows_of(table, "id", "ts")[0] == ("a", 9)


@pytest.mark.parametrize("sort_by", [["ts"], []], ids=["sorted", "joined"])
def test_large_groups_are_cut_into_files_of_the_target_size(
    create: Create, spark: Any, rows_of: RowsOf, path: str, sort_by: list[str]
) -> None:
    keys = "hoodie.clustering.plan.strategy."
    table = create(partition_by=(), options={keys + "target.file.max.bytes": 2_000, **SHARED})
    for part in range(2):
        rows = spark.range(part, 1000, 2).selectExpr("cast(id as string) id", "'1' month", "id ts", "1.5 value")
        table.bulk_insert(rows)
    files = files_of(table)
    wanted = -(-sum(file.size for file in files) // 2_000)
    result = table.clustering.run(sort_by=sort_by)
    assert result is not None
    assert (result.file_groups, wanted > 2) == (wanted, True)
    assert rows_of(table, "ts") == sorted(((number,) for number in range(1000)), key=repr)
    columns = [pq.read_table(Path(path, file.path), partitioning=None)["ts"].to_pylist() for file in files_of(table)]
    ranges = sorted((min(column), max(column)) for column in columns)
    if sort_by:
        assert all(column == sorted(column) for column in columns)
        assert all(low[1] < high[0] for low, high in itertools.pairwise(ranges))


def test_what_cannot_be_clustered_is_refused_before_anything_is_planned(create: Create, frame: Frame) -> None:
    bucket = create(options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})
    bucket.upsert(frame([("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "1", 1, 1.0)]))
    with pytest.raises(UnsupportedTable, match="buckets of a bucket index"):
        bucket.clustering.run()
    with pytest.raises(BadInput, match="no column 'nope'"):
        bucket.clustering.run(sort_by=["nope"])
    assert bucket.table.timeline().pending() == ()


def test_an_update_meets_a_plan_and_an_insert_goes_elsewhere(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    """Small files that are planned take no new rows, which would only meet the plan."""
    table = create(options={**SHARED, "hoodie.parquet.small.file.limit": "1000000"})
    table.bulk_insert(frame([("a", "1", 1, 1.0)]))
    table.bulk_insert(frame([("b", "1", 1, 1.0)]))
    planned = table.clustering.schedule()
    assert planned is not None
    with pytest.raises(WriteConflict, match=f"clustering {planned}") as caught:
        table.upsert(frame([("a", "1", 2, 2.0)]))
    assert (caught.value.other, caught.value.partition) == (planned, "1")
    assert table.insert(frame([("n", "1", 1, 1.0)])).conflicts == ()
    assert table.clustering.abort(planned) is Outcome.ABORTED
    table.upsert(frame([("a", "1", 2, 2.0)]))
    assert rows_of(table, "id", "ts") == [("a", 2), ("b", 1), ("n", 1)]


def test_writes_cluster_inline_when_enough_commits_came(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
    table = create(options={**SHARED, **inline, "hoodie.clustering.plan.strategy.sort.columns": "ts"})
    table.bulk_insert(frame([("a", "1", 1, 1.0)]))
    assert len(files_of(table)) == 1
    table.bulk_insert(frame([("b", "1", 2, 2.0)]))
    assert len(files_of(table)) == 1
    assert [i.action for i in table.table.timeline().completed()] == ["commit", "commit", "replacecommit"]
    failing = table.options | {"hoodie.clustering.plan.strategy.sort.columns": "nope"}
    with HoodieTable.load(table.spark, table.path, options=failing) as other:
        other.bulk_insert(frame([("c", "1", 1, 1.0)]))
        result = other.bulk_insert(frame([("d", "1", 1, 1.0)]))
    assert "inline clustering failed: there is no column 'nope'" in result.warnings[0]
    assert rows_of(table, "id") == [("a",), ("b",), ("c",), ("d",)]


def test_a_thread_clusters_beside_the_writes_of_its_process(
    create: Create, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread waits in the middle of its job while two more writes begin and end: it holds no lock there."""
    beside = {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "2"}
    table = create(options={**SHARED, **beside})
    running, go_on, run_job = threading.Event(), threading.Event(), ClusteringJob._run_job

    def wait(self: ClusteringJob, *args: Any) -> Any:
        running.set()
        assert go_on.wait(DEADLINE_S)
        return run_job(self, *args)

    monkeypatch.setattr(ClusteringJob, "_run_job", wait)
    table.bulk_insert(frame([("a", "1", 1, 1.0)]))
    table.bulk_insert(frame([("b", "1", 1, 1.0)]))
    assert running.wait(DEADLINE_S)
    table.bulk_insert(frame([("c", "1", 1, 1.0)]))
    with pytest.raises(WriteConflict, match="Let that clustering end"):
        table.upsert(frame([("a", "1", 2, 2.0)]))
    go_on.set()
    done = table.clustering.wait()
    assert done[0].file_groups_replaced == 2
    table.upsert(frame([("a", "1", 2, 2.0)]))
    table.close()
    assert rows_of(table, "id", "ts") == [("a", 2), ("b", 1), ("c", 1)]
    instants = table.table.timeline().completed(("commit", "replacecommit"))
    actions = [instant.action for instant in sorted(instants, key=lambda instant: str(instant.completion))]
    assert actions[:4] == ["commit", "commit", "commit", "replacecommit"]


def test_a_job_of_its_own_clusters_beside_a_writer(
    create: Create, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The writer began before the plan, and publishes after the run: it begins anew, and nothing is lost."""
    table = create(options={**SHARED, "hoodie.write.num.retries.on.conflict.failures": "1"})
    fill(table, frame)
    options = [word for key, value in SHARED.items() for word in ("-o", f"{key}={value}")]

    def cluster() -> None:
        with pytest.raises(SystemExit) as caught:
            main(["cluster", table.path, "--sort-by", "ts", "--json", *options])
        assert not caught.value.code

    after_job(cluster)
    result = table.upsert(frame([("a", "1", 9, 9.0), ("x", "2", 9, 9.0)]))
    [done] = check_json(["cluster"], capsys.readouterr().out)
    assert (done["state"], done["file_groups_replaced"], done["rows"]) == ("done", 5, 7)
    assert [conflict.other for conflict in result.conflicts] == [done["instant"]]
    expected = [("a", 9), ("b", 2), ("c", None), ("d", 4), ("e", 5), ("x", 9), ("y", 2)]
    assert rows_of(table, "id", "ts") == expected


KILLED = """
import sys
from pyspark.sql import SparkSession
from hudi_locks.spark import HoodieTable
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = builder.config("spark.pyspark.python", sys.executable).getOrCreate()
HoodieTable.load(spark, sys.argv[1]).clustering.run()
"""


def test_what_a_killed_clustering_left_is_removed_and_clustered_anew(
    spark: Any, create: Create, frame: Frame, rows_of: RowsOf
) -> None:
    table = create()
    fill(table, frame)
    before = rows_of(table)
    environment = {**os.environ, "HUDI_LOCKS_STOP_AT": "publish:prepared"}
    command = [sys.executable, "-c", KILLED, table.path]
    killed = subprocess.run(command, env=environment, capture_output=True, timeout=240, check=False)
    assert killed.returncode == -9, killed.stderr
    assert rows_of(table) == before
    [dead] = table.table.timeline().pending(("clustering",))
    result = table.clustering.run()  # its process is certainly gone
    assert result is not None
    assert result.file_groups_replaced == 5
    assert rows_of(table) == before
    assert not [file for file in Path(table.path).rglob("*.parquet") if dead.requested in file.name]
