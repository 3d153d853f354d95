"""Which buckets a plan splits and merges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hudi_locks.errors import ConfigError
from hudi_locks.format.consistent_hashing import HashRing
from hudi_locks.services import ClusteringSettings
from hudi_locks.services.resize_settings import ResizeSettings
from hudi_locks.services.resizing import plan_resizes
from hudi_locks.table import BaseFile, FileSlice, LogFile

BY_RING = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
STRATEGY = "hoodie.clustering.plan.strategy.class"
PACKAGE = "org.apache.hudi.client.clustering.plan.strategy."


def ring_of(count: int) -> HashRing:
    return HashRing(tuple(100 * (n + 1) for n in range(count)), tuple(f"f{n}-0" for n in range(count)))


def slice_of(node: int, size: int, logged: int = 0) -> FileSlice:
    base = BaseFile("p", f"f{node}-0", "1", f"p/f{node}-0_0_1.parquet", size)
    log = LogFile.parse("p", f".f{node}-0_2.log.1_0-0-0", logged)
    assert log is not None
    return FileSlice("p", f"f{node}-0", "1", base, (log,) if logged else ())


def plan(sizes: Mapping[int, int], count: int, *, sorts: bool = False, **bounds: int) -> list[tuple[Any, Any]]:
    """Nodes that are read, and (value, whether it stays) of those that are changed."""
    known = {"first_buckets": count, "most_buckets": count, "least_buckets": count, "split_bytes": 100}
    settings = ResizeSettings(**{**known, "merge_bytes": 10, **bounds})
    slices = [slice_of(node, size) for node, size in sizes.items()]
    found = plan_resizes(ring_of(count), slices, settings, partition="p", sorts=sorts)
    return [
        (
            [piece.file_id.removesuffix("-0") for piece in resize.slices],
            [(node.value, bool(node.file_id)) for node in resize.change.nodes],
        )
        for resize in found
    ]


def test_file_groups_above_the_threshold_are_split_the_largest_first() -> None:
    sizes = {0: 101, 1: 100, 2: 500, 3: 300}
    assert plan(sizes, 4) == [], "there may be no more buckets"
    assert plan(sizes, 4, most_buckets=5) == [(["f2"], [(250, True), (300, True)])]
    assert [read for read, _ in plan(sizes, 4, most_buckets=9)] == [["f0"], ["f2"], ["f3"]]
    logged = [slice_of(0, 60, logged=41)]
    settings = ResizeSettings(1, 2, 1, 100, 0)
    assert len(plan_resizes(ring_of(1), logged, settings, partition="p", sorts=False)) == 1, "logs count"


def test_what_has_one_hash_alone_is_not_split() -> None:
    ring, settings = HashRing((5, 6), ("f0-0", "f1-0")), ResizeSettings(2, 9, 1, 1, 0)
    [found] = plan_resizes(ring, [slice_of(0, 9), slice_of(1, 9)], settings, partition="p", sorts=False)
    assert [piece.file_id for piece in found.slices] == ["f0-0"]


def test_small_neighbours_are_merged_while_there_are_buckets_to_spare() -> None:
    sizes = {0: 50, 1: 4, 2: 5, 3: 50, 4: 3, 5: 50}
    assert plan(sizes, 6) == []
    assert plan(sizes, 6, least_buckets=1) == [(["f1", "f2"], [(200, False), (300, True)])]
    small = dict.fromkeys(range(4), 1)
    across = (["f3", "f0"], [(400, False), (100, True)])
    assert plan(small, 4, least_buckets=3) == [across], "first those before a node, as in JVM Hudi"
    everything = (["f1", "f2", "f3", "f0"], [(200, False), (300, False), (400, False), (100, True)])
    assert plan(small, 4, least_buckets=1) == [everything]
    assert plan({0: 1, 2: 1}, 4, least_buckets=1) == [], "with a node between them whose file group may not be taken"


def test_a_run_ends_once_it_is_above_the_threshold() -> None:
    sizes = dict.fromkeys(range(6), 6)
    found = plan(sizes, 6, least_buckets=1)
    assert [read for read, _ in found] == [["f5", "f0"], ["f1", "f2"], ["f3", "f4"]]


def test_what_a_split_brings_may_be_merged_away_elsewhere() -> None:
    sizes = {0: 500, 1: 1, 2: 1, 3: 50}
    found = plan(sizes, 4, most_buckets=5, least_buckets=4)
    assert [read for read, _ in found] == [["f0"], ["f1", "f2"]]


def test_the_others_are_left_alone_unless_they_are_to_be_sorted() -> None:
    sizes = {0: 500, 1: 50, 2: 50}
    assert [read for read, _ in plan(sizes, 3, most_buckets=4)] == [["f0"]]
    found = plan(sizes, 3, most_buckets=4, sorts=True)
    assert found[1:] == [(["f1"], [(200, True)]), (["f2"], [(300, True)])]


def settings_of(table: Mapping[str, object] | None = None, **options: object) -> ResizeSettings | None:
    given = {**BY_RING, **{name.replace("__", "."): value for name, value in options.items()}}
    return ClusteringSettings.of(given, table_properties=table or {}).resizing


def test_thresholds_are_shares_of_the_largest_file() -> None:
    found = settings_of(
        hoodie__parquet__max__file__size=1000,
        hoodie__bucket__index__num__buckets=4,
        hoodie__bucket__index__max__num__buckets=9,
        hoodie__bucket__index__min__num__buckets=2,
        hoodie__bucket__index__split__threshold="1.5",
        hoodie__bucket__index__merge__threshold=0.25,
    )
    assert found == ResizeSettings(4, 9, 2, 1500, 250)
    assert settings_of(hoodie__parquet__max__file__size=1000) == ResizeSettings(256, 256, 256, 2000, 200)


def test_bounds_that_leave_out_the_first_number_give_way_to_it() -> None:
    bounds: dict[str, object] = {
        "hoodie__bucket__index__max__num__buckets": 2,
        "hoodie__bucket__index__min__num__buckets": 8,
    }
    found = settings_of({"hoodie.bucket.index.num.buckets": "4"}, **bounds)
    assert found is not None
    assert (found.first_buckets, found.most_buckets, found.least_buckets) == (4, 4, 4)


@pytest.mark.parametrize("factor", ["many", "-1", "nan", "inf"])
def test_a_threshold_that_is_no_number_is_refused(factor: str) -> None:
    with pytest.raises(ConfigError, match=r"split\.threshold=.* is no number from 0 on"):
        settings_of(hoodie__bucket__index__split__threshold=factor)


def test_a_strategy_is_for_its_own_tables_alone() -> None:
    by_bucket = f"{PACKAGE}SparkConsistentBucketClusteringPlanStrategy"
    by_size = f"{PACKAGE}SparkSizeBasedClusteringPlanStrategy"
    assert settings_of(hoodie__clustering__plan__strategy__class=by_bucket) is not None
    with pytest.raises(ConfigError, match=r"SizeBased.* is not for this table"):
        settings_of(hoodie__clustering__plan__strategy__class=by_size)
    plain: dict[str, Any] = {STRATEGY: by_size}
    assert ClusteringSettings.of(plain, table_properties={}).resizing is None
    with pytest.raises(ConfigError, match=r"ConsistentBucket.* is not for this table"):
        ClusteringSettings.of({STRATEGY: by_bucket}, table_properties={})
    with pytest.raises(ConfigError, match="is none of"):
        settings_of(hoodie__clustering__plan__strategy__class=f"{PACKAGE}SparkRecentDaysClusteringPlanStrategy")
