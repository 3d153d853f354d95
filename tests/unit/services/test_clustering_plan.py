"""What a clustering plan takes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import BadInput, ConfigError, UnsupportedTable
from hudi_locks.format import (
    BaseFileName,
    ClusteringPlan,
    CommitMetadata,
    Instant,
    LogFileName,
    State,
    WriteStat,
    bucket_file_id,
)
from hudi_locks.services import Clustering, ClusteringSettings, find_planned_slices
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import Table, TableConfig, create_partition_metadata
from hudi_locks.transaction import Transactions

SCHEMA = (
    '{"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "string"], "default": null},'
    ' {"name": "ts", "type": ["null", "long"], "default": null}]}'
)


@pytest.fixture
def table() -> Table:
    return Table.create(MemoryStorage(ManualClock()), TableConfig("t", ("id",), ("part",)))


def fill(table: Table, number: int = 1, operation: str = "INSERT", **sizes: dict[str, int]) -> None:
    """One commit with base files of these sizes, by partition and file group."""
    stats, time = [], f"202611210000{number:05d}"
    for partition, files in sizes.items():
        create_partition_metadata(table.storage, partition, instant=time)
        for group, size in files.items():
            path = f"{partition}/{BaseFileName(group, time)}"
            table.storage.replace(path, b"x" * size)
            stats.append(WriteStat(partition, group, path))
    action = "replacecommit" if operation == "CLUSTER" else "commit"
    completed = Instant(time, action, State.COMPLETED, f"202611210000{number + 1:05d}")
    metadata = CommitMetadata.of(stats, operation, schema=SCHEMA)
    table.storage.replace(table.layout.path(completed), metadata.encode(action, layout_version=2))


def plan_of(table: Table, *, sort_by: Any = (), **options: object) -> ClusteringPlan | None:
    given = {name.replace("__", "."): value for name, value in options.items()}
    return clustering_of(table, given, sort_by).make_plan(table.timeline())


def clustering_of(table: Table, options: Mapping[str, object], sort_by: Any = ()) -> Clustering:
    settings = ClusteringSettings.of(options, table_properties=table.config.extra, sort_by=sort_by)
    return Clustering(table, Transactions(table, None, clock=ManualClock()), settings)


def taken(plan: ClusteringPlan | None) -> list[list[str]]:
    return [[piece.file_id for piece in group.slices] for group in plan.groups] if plan else []


def test_groups_are_cut_by_size_the_largest_files_first(table: Table) -> None:
    fill(table, p={"a": 10, "b": 30, "c": 20, "d": 90})
    options = {
        "hoodie.clustering.plan.strategy.max.bytes.per.group": 55,
        "hoodie.clustering.plan.strategy.target.file.max.bytes": 20,
    }
    options["hoodie.clustering.plan.strategy.small.file.limit"] = 90
    plan = clustering_of(table, options).make_plan(table.timeline())
    assert taken(plan) == [["b", "c"]]
    plan = clustering_of(table, options, ["id", "ts"]).make_plan(table.timeline())
    assert plan is not None
    assert taken(plan) == [["b", "c"], ["a"]]
    assert [(group.output_groups, group.input_bytes) for group in plan.groups] == [(3, 50), (1, 10)]
    assert plan.sort_columns == ("id", "ts")


def test_a_file_that_is_alone_is_left_alone_unless_it_is_to_be_sorted(table: Table) -> None:
    fill(table, p={"a": 10}, q={"b": 10})
    assert plan_of(table) is None
    assert taken(plan_of(table, sort_by=["ts"])) == [["a"], ["b"]]
    off = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": False}
    assert plan_of(table, sort_by=["ts"], **off) is None
    few = {"hoodie.clustering.plan.strategy.max.num.groups": 1}
    assert taken(plan_of(table, sort_by=["ts"], **few)) == [["a"]]


DAYS: Any = {f"day=0{number}": {f"{number}a": 1, f"{number}b": 1} for number in range(1, 6)}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "12345"),
        ({"hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS"}, "45"),
        (
            {
                "hoodie.clustering.plan.partition.filter.mode": "recent_days",
                "hoodie.clustering.plan.strategy.daybased.lookback.partitions": 1,
                "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions": 2,
            },
            "3",
        ),
        (
            {
                "hoodie.clustering.plan.partition.filter.mode": "SELECTED_PARTITIONS",
                "hoodie.clustering.plan.strategy.cluster.begin.partition": "day=02",
                "hoodie.clustering.plan.strategy.cluster.end.partition": "day=03",
            },
            "23",
        ),
        ({"hoodie.clustering.plan.strategy.partition.selected": "day=05, day=01"}, "15"),
        ({"hoodie.clustering.plan.strategy.partition.regex.pattern": "day=0[1-2]"}, "12"),
        ({"hoodie.clustering.plan.strategy.partition.regex.pattern": "day"}, ""),
    ],
)
def test_partitions_are_chosen(table: Table, options: dict[str, object], expected: str) -> None:
    fill(table, **DAYS)
    plan = clustering_of(table, options).make_plan(table.timeline())
    assert "".join(ids[0][0] for ids in taken(plan)) == expected


def test_commits_are_counted_since_the_last_clustering(table: Table) -> None:
    clustering = clustering_of(table, {})
    assert clustering.count_commits(table.timeline()) == 0
    fill(table, 1, p={"a": 1})
    fill(table, 3, p={"a": 1})
    assert clustering.count_commits(table.timeline()) == 2
    fill(table, 5, "CLUSTER", p={"b": 1})
    assert clustering.count_commits(table.timeline()) == 0
    fill(table, 7, p={"b": 1})
    assert clustering.count_commits(table.timeline()) == 1
    pending = Instant("20261121000000009", "clustering", State.REQUESTED)
    table.storage.replace(table.layout.path(pending), b"")
    assert clustering.count_commits(table.timeline()) == 0


def test_a_column_that_is_not_there_and_a_pattern_that_is_none_are_refused(table: Table) -> None:
    assert plan_of(table, sort_by=["ts"]) is None
    fill(table, p={"a": 1, "b": 1})
    with pytest.raises(BadInput, match=r"no column 'nope' to sort by; the table has id, ts") as caught:
        plan_of(table, sort_by=["ts", "nope"])
    assert caught.value.columns == ["nope"]
    with pytest.raises(ConfigError, match="no regular expression"):
        clustering_of(table, {"hoodie.clustering.plan.strategy.partition.regex.pattern": "("})


def test_buckets_are_not_joined(table: Table) -> None:
    ids = [bucket_file_id(number, uuid.UUID(int=1), partition="p") for number in range(2)]
    fill(table, p=dict.fromkeys(ids, 1))
    with pytest.raises(UnsupportedTable, match="buckets of a bucket index"):
        plan_of(table)


def test_a_file_group_of_logs_alone_counts_for_its_logs(table: Table) -> None:
    fill(table, p={"a": 10, "b": 30})
    path = f"p/{LogFileName('c', '20261121000000001')}"
    table.storage.replace(path, b"x" * 20)
    plan = plan_of(table, hoodie__clustering__plan__strategy__max__bytes__per__group=55)
    assert plan is not None
    [group] = plan.groups
    assert (taken(plan), group.input_bytes, group.log_bytes) == ([["b", "c"]], 50, 20)
    [_, logged] = find_planned_slices(group, {})
    assert (logged.base, [log.path for log in logged.logs]) == (None, [path])


def test_file_groups_of_a_ring_are_not_joined() -> None:
    config = TableConfig("t", ("id",), ("part",), table_type="MERGE_ON_READ")
    table = Table.create(MemoryStorage(ManualClock()), config)
    fill(table, p={"a": 1, "b": 1})
    assert taken(plan_of(table)) == [["a", "b"]]
    ring = ".hoodie/.bucket_index/consistent_hashing_metadata/p/00000000000000.hashing_meta"
    table.storage.replace(ring, b"")
    with pytest.raises(UnsupportedTable, match="buckets of a bucket index"):
        plan_of(table)


def test_a_job_is_due_only_where_it_is_switched_on() -> None:
    on: dict[str, object] = {"hoodie.clustering.inline": True, "hoodie.clustering.async.enabled": "true"}
    settings = ClusteringSettings.of({**on, "hoodie.clustering.async.max.commits": 7}, table_properties={})
    assert (settings.inline_commits, settings.async_commits) == (4, 7)
    off = ClusteringSettings.of({"hoodie.clustering.inline.max.commits": 1}, table_properties={})
    assert (off.inline_commits, off.async_commits) == (0, 0)
