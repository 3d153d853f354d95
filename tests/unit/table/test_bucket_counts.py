"""Numbers of buckets that differ between partitions: read as the JVM reads them, refused where they cannot be."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import ConfigError, DamagedTable
from hudi_locks.format import BucketCounts, Instant, State, assign_buckets
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import PROPERTIES_PATH, Table, TableConfig, find_bucket_counts
from hudi_locks.timeline import LAYOUT_2, Timeline, create_instant

FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
TEXT = r"^eu,4;day=2026-\d\d,16"


def test_the_first_expression_that_is_found_gives_the_number() -> None:
    counts = BucketCounts.parse(TEXT, 2)
    partitions = ["eu", "eu/day=2026-01", "us/day=2026-01", "us", ""]
    assert [counts.count(partition) for partition in partitions] == [4, 4, 16, 2, 2]
    assert (counts.most, counts.text) == (16, TEXT)
    assert BucketCounts.parse("", 2) == BucketCounts(2)


@pytest.mark.parametrize("text", ["eu", "eu,", "eu,none", "eu,0", ",4", "(,4", "eu,4;us"])
def test_what_cannot_be_used_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"partition.expressions=.* write regex,number") as caught:
        BucketCounts.parse(text, 2)
    assert caught.value.value == text


def test_the_bytes_are_hudis() -> None:
    counts = BucketCounts.parse(TEXT, 2)
    record = json.loads(counts.encode())
    assert record == {
        "version": 1,
        "instant": "00000000000000",
        "expressions": TEXT,
        "rule": "regex",
        "defaultBucketNumber": 2,
    }
    assert BucketCounts.decode(counts.encode(), "it") == counts


@pytest.mark.parametrize("damaged", [b"", b"[]", b"{}", json.dumps({"rule": "glob"}).encode()])
def test_a_damaged_file_is_named(damaged: bytes) -> None:
    with pytest.raises(DamagedTable, match=r"some\.hashing_config holds no numbers of buckets"):
        BucketCounts.decode(damaged, "some.hashing_config")


def test_keys_go_to_the_buckets_of_their_partition() -> None:
    keys = pa.array([f"k{number}" for number in range(100)])
    partitions = pa.array(["eu", "us"] * 50)
    counts = BucketCounts.parse("eu,16", 3)
    found = counts.assign(keys, ["id"], partitions=partitions).to_pylist()
    for partition, count in (("eu", 16), ("us", 3)):
        mask = pa.compute.equal(partitions, partition)
        expected = assign_buckets(keys.filter(mask), ["id"], buckets=count).to_pylist()
        assert [bucket for bucket, is_there in zip(found, mask.to_pylist(), strict=True) if is_there] == expected
    assert BucketCounts(3).assign(keys, ["id"]).equals(assign_buckets(keys, ["id"], buckets=3))


def test_a_new_table_names_them() -> None:
    storage = MemoryStorage(ManualClock())
    extra = {"hoodie.bucket.index.partition.expressions": TEXT, "hoodie.bucket.index.num.buckets": "2"}
    table = Table.create(storage, TableConfig("t", ("id",), ("region",), extra=extra))
    assert find_bucket_counts(storage, table.timeline()) == BucketCounts.parse(TEXT, 2)
    assert storage.exists(PROPERTIES_PATH)


def test_those_of_the_newest_completed_write_are_in_force() -> None:
    storage = MemoryStorage(ManualClock())
    for named, default in (("00000000000000", 2), ("20260101000000000", 4), ("20260102000000000", 8)):
        storage.replace(f"{FOLDER}/{named}.hashing_config", BucketCounts(default).encode(named))
    assert find_bucket_counts(storage, Timeline.load(storage, LAYOUT_2)) == BucketCounts(2)
    for requested, state in (("20260101000000000", State.COMPLETED), ("20260102000000000", State.INFLIGHT)):
        instant = Instant(requested, "replacecommit", state, requested if state is State.COMPLETED else None)
        create_instant(storage, LAYOUT_2, instant=instant, data=b"x")
    assert find_bucket_counts(storage, Timeline.load(storage, LAYOUT_2)) == BucketCounts(4)
    assert find_bucket_counts(MemoryStorage(ManualClock()), Timeline.load(storage, LAYOUT_2)) is None
