"""Tables with a consistent hashing index that JVM Hudi and this package write in turns, and that the JVM resizes."""

from __future__ import annotations

from typing import Any

import pytest
from metadata_turns import BY_RING, Shared
from other_readers import Jvm

from hudi_locks.format.consistent_hashing import HashRing
from hudi_locks.table import latest_file_slices

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"]),
]
_PACKAGE = "org.apache.hudi.client.clustering."
SPLITS = {
    "hoodie__clustering__inline": "true",
    "hoodie__clustering__inline__max__commits": "1",
    "hoodie__clustering__plan__strategy__class": f"{_PACKAGE}plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie__clustering__execution__strategy__class": (
        f"{_PACKAGE}run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    ),
    "hoodie__bucket__index__max__num__buckets": "16",
    "hoodie__bucket__index__min__num__buckets": "1",
    "hoodie__bucket__index__split__threshold": "0.0000001",
    "hoodie__parquet__max__file__size": "1048576",
}


@pytest.mark.nightly  # the next one has turns of both, too
def test_both_write_in_turns_and_each_finds_the_keys_of_the_other(spark: Any, jvm: Jvm, path: str) -> None:
    table = Shared(jvm, spark, path, BY_RING)
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 2.0, None), ("c", "us", 1, None, "theirs"))
    table.ours(("a", "eu", 2, 5000.0, "ours"), ("k", "new", 2, -7.5, "ours"), ("m", "us", 2, None, None))
    table.theirs(("k", "new", 3, 6000.0, "theirs"), ("n", "new", 3, 0.0, "theirs"))
    assert table.open().compaction.run() is not None
    table.check()
    table.ours(("b", "eu", 4, 1.5, "ours"), ("n", "new", 4, 2.5, "ours"), ("z", "last", 4, 1.0, "ours"))
    table.theirs(("z", "last", 5, 1e9, "theirs"), ("m", "us", 5, 0.5, "theirs"))
    slices = latest_file_slices(table.open().table.storage, table.open().table.timeline())
    for piece in slices:
        assert piece.file_id in HashRing.create(piece.partition, 2).file_ids, "the first ring of every writer"


def test_file_groups_that_the_jvm_split_are_found_by_their_new_ring(spark: Any, jvm: Jvm, path: str) -> None:
    table = Shared(jvm, spark, path, BY_RING)
    rows = [(f"k{n:02}", "eu", 1, float(n), "theirs") for n in range(40)]
    table.theirs(*rows)
    assert table.open().compaction.run() is not None
    table.theirs(("k00", "eu", 2, 2.0, "theirs"), **SPLITS)
    table.theirs(("k01", "eu", 2, 2.0, "theirs"), **SPLITS)
    timeline = table.open().table.timeline()
    assert timeline.completed(("replacecommit",)), "the JVM resized nothing"
    table.ours(*((f"k{n:02}", "eu", 3, float(n), "ours") for n in range(0, 40, 3)), ("new", "eu", 3, 0.0, "ours"))
    table.theirs(*((f"k{n:02}", "eu", 4, float(n), "theirs") for n in range(0, 40, 4)))
