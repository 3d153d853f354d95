"""Buckets of consistent hashing that both split and merge by clustering, in turns and each the plan of the other."""

from __future__ import annotations

from typing import Any

import pytest
from metadata_turns import BY_RING, Shared, name_options
from other_readers import Jvm

from hudi_locks.errors import WriteAborted, WriteConflict
from hudi_locks.format.consistent_hashing import HashRing
from hudi_locks.table import latest_file_slices
from hudi_locks.table.hash_rings import find_hash_ring

NIGHTLY = [("1.0.2", 8), ("1.1.1", 9), ("1.2.0", 6), ("0.15.0", 6)]
VERSIONS = [("1.2.0", 9), *(pytest.param(pair, marks=pytest.mark.nightly) for pair in NIGHTLY)]
pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("jvm", VERSIONS, indirect=True, ids=lambda pair: f"{pair[0]}-v{pair[1]}"),
]
_PACKAGE = "org.apache.hudi.client.clustering."
STRATEGIES = {
    "hoodie.clustering.plan.strategy.class": f"{_PACKAGE}plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": (
        f"{_PACKAGE}run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    ),
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.bucket.index.min.num.buckets": "1",
}
SPLITS = {**STRATEGIES, "hoodie.bucket.index.split.threshold": "0.0000001"}
MERGES = {**STRATEGIES, "hoodie.bucket.index.split.threshold": "9.0", "hoodie.bucket.index.merge.threshold": "1.0"}
PLANS = {
    "hoodie.clustering.schedule.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clustering.async.max.commits": "1",
}
RUNS = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
TWICE = {
    "hoodie.clustering.updates.strategy": f"{_PACKAGE}update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"
}


def named(*options: dict[str, str]) -> dict[str, str]:
    return {key.replace(".", "__"): value for part in options for key, value in part.items()}


class Buckets(Shared):
    """A table whose rings are looked at, too."""

    def ring(self, partition: str = "region=eu") -> HashRing:
        opened = self.open()
        ring = find_hash_ring(opened.table.storage, opened.table.timeline(), partition)
        assert ring is not None
        return ring

    def check(self) -> None:
        super().check()
        if not self.looks:
            return
        opened = self.open()
        for piece in latest_file_slices(opened.table.storage, opened.table.timeline()):
            assert piece.file_id in self.ring(piece.partition).file_ids

    def resize(self, options: dict[str, str]) -> Any:
        """By us."""
        done = self.open(**named(options)).clustering.run()
        self.check()
        return done

    def run_theirs(self, options: dict[str, str], instant: str) -> None:
        """What waits, by the JVM."""
        given = {**name_options(self, "upsert", {}), **options}
        told = ",".join(f"{key}={value}" for key, value in given.items() if "," not in value)
        self.jvm.sql(
            f"call run_clustering(path => '{self.path}', op => 'execute', instants => '{instant}', options => '{told}')"
        )
        self.check()


def rows_of(count: int, ts: int, label: str, *, step: int = 1) -> list[Any]:
    return [(f"k{n:02}", "eu" if n % 4 else "us", ts, float(n), label) for n in range(0, count, step)]


@pytest.fixture
def table(spark: Any, jvm: Jvm, path: str) -> Buckets:
    return Buckets(jvm, spark, path, BY_RING, asks_rust=False)


def test_buckets_that_we_split_and_merge_are_those_of_the_jvm_too(table: Buckets) -> None:
    table.theirs(*rows_of(40, 1, "theirs"))
    assert table.resize(SPLITS) is not None
    assert (len(table.ring().values), table.ring().number) == (4, 1)
    table.theirs(*rows_of(40, 2, "theirs", step=3), ("new", "eu", 2, 0.0, "theirs"))
    table.ours(*rows_of(40, 3, "ours", step=4))
    table.theirs(("k01", "eu", 4, 4.0, "theirs"), **named(SPLITS, RUNS))
    assert (len(table.ring().values), table.ring().number) == (8, 2), "the JVM went on from our ring"
    assert table.resize(MERGES) is not None
    assert (len(table.ring().values), table.ring().number) == (1, 3), "and we from theirs"
    table.theirs(*rows_of(40, 5, "theirs", step=5), ("last", "us", 5, 5.0, "theirs"))
    table.open().compaction.run()
    table.check()


def test_the_jvm_runs_what_we_planned(table: Buckets) -> None:
    table.theirs(*rows_of(40, 1, "theirs"))
    for turn, (options, nodes) in enumerate(((SPLITS, 4), (MERGES, 1)), 1):
        planned = table.open(**named(options)).clustering.schedule()
        assert planned is not None
        table.check()
        table.run_theirs(options, planned)
        assert len(table.ring().values) == nodes
        table.ours(*rows_of(40, 2 * turn, "ours", step=3))
        table.theirs(*rows_of(40, 2 * turn + 1, "theirs", step=4))


def plan_theirs(table: Buckets, options: dict[str, str], row: Any, **more: str) -> str:
    """A write of the JVM that leaves a plan behind."""
    table.theirs(row, **named(options, PLANS), **more)
    return str(table.open().table.timeline().pending(("clustering", "replacecommit"))[-1].requested)


def test_we_run_what_the_jvm_planned(table: Buckets) -> None:
    table.theirs(*rows_of(40, 1, "theirs"))
    for turn, (options, nodes) in enumerate(((SPLITS, 4), (MERGES, 1)), 2):
        planned = plan_theirs(table, options, ("k01", "eu", turn, 0.0, "theirs"))
        table.check()
        assert table.open(**named(options)).clustering.run() is None, "unless it is named"
        assert table.open().clustering.execute(planned) is not None
        table.check()
        assert len(table.ring().values) == nodes
        table.theirs(*rows_of(40, 2 * turn, "theirs", step=3))
        table.ours(*rows_of(40, 2 * turn + 1, "ours", step=4))


@pytest.mark.parametrize("planner", ["us", "jvm"])
def test_writers_of_the_jvm_write_twice_beside_a_plan_and_ours_meet_it(table: Buckets, planner: str) -> None:
    table.theirs(*rows_of(40, 1, "theirs"))
    if planner == "us":
        planned = str(table.open(**named(SPLITS)).clustering.schedule())
    else:
        planned = plan_theirs(table, SPLITS, ("k01", "eu", 2, 0.0, "theirs"))
    before = table.expected
    with pytest.raises(WriteConflict, match=planned):
        table.open().upsert(table.frame(("k02", "eu", 3, 3.0, "ours")))
    table.expected = before
    table.check()
    table.theirs(*rows_of(40, 4, "theirs", step=7), **named(TWICE))
    with pytest.raises((WriteAborted, WriteConflict)):
        table.open().clustering.execute(planned)
    table.check()
    if planner == "us":
        assert table.ring().number == 0
        assert not table.open().table.timeline().pending()
    else:
        table.run_theirs(SPLITS, planned)
        assert table.ring().number == 1
    table.theirs(*rows_of(40, 5, "theirs", step=3))
    table.ours(*rows_of(40, 6, "ours", step=4))
