"""Merge-on-read tables of the JVM as DataFrames: its rows, at every moment."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import BadInput, TableError
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.reading import merged_reading
from hudi_locks.storage import LocalStorage
from hudi_locks.table import losses

pytestmark = pytest.mark.spark

Golden = Callable[[str], LocalStorage]


def rows_of(frame: Any) -> list[dict[str, Any]]:
    ordered = frame.orderBy("_hoodie_partition_path", "id").collect()
    return [{name: row[name] for name in row.asDict() if not name.startswith("_hoodie_")} for row in ordered]


@pytest.mark.parametrize("name", ["v8_mor", "v8_mor_compacted", "v8_mor_nbcc", "v9_mor"])
def test_a_snapshot_shows_what_hudis_readers_show(
    spark: Any, golden: Golden, golden_rows: Callable[[str], str], name: str
) -> None:
    expected = [json.loads(line) for line in golden_rows(name).splitlines()]
    for row in expected:
        row["at"] = datetime.fromisoformat(row["at"]).replace(tzinfo=None)
    assert rows_of(HoodieTable.load(spark, golden(name).base).read()) == expected


def test_each_commit_can_be_gone_back_to(spark: Any, golden: Golden) -> None:
    table = HoodieTable.load(spark, golden("v8_mor").base)
    commits = table.table.timeline().completed_between("")
    counts = [table.as_of(commit.completion).count() for commit in commits]
    assert counts == [table.as_of(requested=commit.requested).count() for commit in commits] == [20, 22, 19]


@pytest.mark.parametrize(("name", "count"), [("v8_mor_nbcc", 0), ("v8_mor_compacted", 19)])
def test_a_read_optimized_query_shows_base_files_alone(spark: Any, golden: Golden, name: str, count: int) -> None:
    table = HoodieTable.load(spark, golden(name).base)
    assert table.read(read_optimized=True).count() == count


def test_filters_and_joins_of_plain_and_merged_slices_agree(spark: Any, golden: Golden) -> None:
    rows = HoodieTable.load(spark, golden("v9_mor").base).read(meta_columns=False)
    assert rows.where("qty is null").count() == sum(row.qty is None for row in rows.collect())
    assert rows.select("id").distinct().count() == rows.count()


def versions_of(frame: Any) -> set[tuple[Any, ...]]:
    """Every row with its place and its write, so that a row that was written again counts as another one."""
    names = [
        "_hoodie_commit_time",
        "_hoodie_partition_path",
        *(c for c in frame.columns if not c.startswith("_hoodie")),
    ]
    return {tuple(row) for row in frame.select(*names).collect()}


@pytest.mark.parametrize("name", ["v8_mor_compacted", "v8_mor_nbcc"])
def test_each_span_of_changes_is_what_two_snapshots_differ_in(spark: Any, golden: Golden, name: str) -> None:
    table = HoodieTable.load(spark, golden(name).base)
    times = ["0", *(str(commit.completion) for commit in table.table.timeline().completed_between(""))]
    snapshots = [set(), *(versions_of(table.as_of(time)) for time in times[1:])]
    for begin, end in [(0, len(times) - 1), *((number, number + 1) for number in range(len(times) - 1))]:
        assert versions_of(table.incremental(times[begin], times[end])) == snapshots[end] - snapshots[begin]
    assert versions_of(table.incremental(times[1])) == snapshots[-1] - snapshots[1]


def test_changes_whose_files_are_gone_are_refused(spark: Any, golden: Golden) -> None:
    storage = golden("v8_mor")
    table = HoodieTable.load(spark, storage.base)
    commits = table.table.timeline().completed_between("")
    log = next(path for path, entry in storage.walk("") if commits[1].requested in entry.name and ".log." in path)
    storage.delete(log)
    with pytest.raises(TableError, match=f"{re.escape(log)} is gone"):
        table.incremental("0", commits[1].completion)


@pytest.mark.parametrize("name", ["v8_mor", "v8_mor_compacted"])
def test_columns_and_partitions_that_are_not_wanted_are_not_read(spark: Any, golden: Golden, name: str) -> None:
    """The files of other partitions may be gone, and the rows are those of the whole read."""
    storage, wanted = golden(name), "region=us_east"
    table = HoodieTable.load(spark, storage.base)
    rows = table.read().where(f"_hoodie_partition_path = '{wanted}'").select("qty", "id").collect()
    others = [
        path for path, _ in storage.walk("") if not path.startswith((".hoodie", wanted)) and "metadata" not in path
    ]
    for path in others:
        storage.delete(path)
    found = table.read(meta_columns=False, columns=["qty", "id"], partitions=[wanted])
    assert found.columns == ["qty", "id"]
    assert sorted(found.collect(), key=repr) == sorted(rows, key=repr)
    changed = table.incremental("0", meta_columns=False, columns=["id"], partitions=[wanted])
    assert sorted(changed.collect()) == sorted((row.id,) for row in rows)


def test_wrong_columns_and_partitions_are_named(spark: Any, golden: Golden) -> None:
    table = HoodieTable.load(spark, golden("v8_mor").base)
    with pytest.raises(BadInput, match=r"no column 'quantity' to read; the table has .*qty"):
        table.read(columns=["quantity"])
    with pytest.raises(BadInput, match=r"no partition 'us_east' to read.*region=us_east"):
        table.as_of("2030-01-01", partitions=["us_east"])


def test_a_large_slice_is_read_by_several_tasks(
    spark: Any, create: Callable[..., HoodieTable], frame: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(
        table_type="MERGE_ON_READ",
        partition_by=(),
        options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
    )
    table.insert(frame([(f"k{number:03}", "m", 1, 0.5) for number in range(200)]))
    table.compaction.run()
    [base] = (path for path, _ in table.table.storage.walk("") if path.endswith(".parquet"))
    pq.write_table(
        pq.read_table(table.table.storage.address(base)), table.table.storage.address(base), row_group_size=30
    )
    monkeypatch.setattr(losses, "is_amiss", lambda *_: False)  # of another size than its commit says, on purpose
    table.upsert(frame([(f"k{number:03}", "m", 2, 1.5) for number in range(0, 250, 10)]))
    table.delete(frame([("k005", "m", 3, 0.0), ("k195", "m", 3, 0.0)]))
    whole = table.read()
    for bound, bytes_or_ratio in (("_LEAST_BYTES", 1), ("_LEAST_PART_BYTES", 1), ("_LEAST_PART_LOGS", 0)):
        monkeypatch.setattr(merged_reading, bound, bytes_or_ratio)
    parts = table.read()
    assert (whole.rdd.getNumPartitions(), parts.rdd.getNumPartitions()) == (1, spark.sparkContext.defaultParallelism)
    assert parts.count() == 203
    assert sorted(parts.collect()) == sorted(whole.collect())
