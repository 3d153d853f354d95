"""Rings of a consistent hashing index: hashes, nodes, and what JVM Hudi writes."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import DamagedTable
from hudi_locks.format.consistent_hashing import HashRing, hash_record_keys, hash_texts

# Of XXHash's own tests, and of its reference implementation.
KNOWN = {
    "": 0x02CC5D05,
    "a": 0x550D7456,
    "abc": 0x32D153FF,
    "abcdefghijklmnopqrstuvwxyz": 0x63A14D5F,
    "0123456789abcdef": 0xC2C45B69,
    "ü": 0x5117339C,
}
JVM = ("db3207e5-92b1-3438-848f-c9caa7ab8ce4-0", "7c83bf6e-37e4-346e-865d-8ef09866bbc3-0")
"""Of JVM Hudi 1.0.2 and 1.2.0, for the partition 2024-02-01 with two buckets."""


def test_hashes_are_those_of_xxhash() -> None:
    assert hash_texts(pa.array([*KNOWN])).tolist() == [*KNOWN.values()]
    assert hash_texts(pa.array([], pa.string())).tolist() == []


@given(st.lists(st.text(max_size=40), max_size=20))
def test_a_column_is_hashed_as_each_of_its_texts(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    together = hash_texts(pa.array(texts, pa.string()))
    assert together.tolist() == [int(hash_texts(pa.array([text]))[0]) for text in texts]
    padded = pa.array(["before", *texts, "after"], pa.string()).slice(1, len(texts))
    assert hash_texts(padded).tolist() == together.tolist(), "of a slice"


def test_a_partition_begins_with_the_ring_of_the_jvm() -> None:
    ring = HashRing.create("2024-02-01", 2)
    assert ring == HashRing((1073741824, 2147483647), JVM)
    record = json.loads(ring.encode("2024-02-01"))
    assert record["nodes"][0] == {"value": 1073741824, "fileIdPrefix": JVM[0][:-2], "tag": "NORMAL"}
    assert (record["version"], record["instant"], record["numBuckets"], record["seqNo"]) == (0, "0" * 14, 2, 0)
    assert HashRing.decode(ring.encode("2024-02-01"), "it") == ring


@pytest.mark.parametrize("buckets", [1, 3, 7, 256])
def test_the_nodes_of_a_new_ring_cover_all_hashes(buckets: int) -> None:
    ring = HashRing.create("p", buckets)
    assert len({*ring.file_ids}) == buckets
    assert list(ring.values) == sorted({*ring.values})
    assert ring.values[-1] == 2**31 - 1
    found = ring.assign(np.array([0, 2**31 - 1, 2**31, 2**32 - 1], np.uint32))
    assert found.tolist() == [0, buckets - 1, 0, buckets - 1], "without the upper bit"


def test_a_key_belongs_to_the_first_node_that_is_not_below_its_hash() -> None:
    ring = HashRing((10, 20, 30), ("a-0", "b-0", "c-0"))
    hashes = np.array([0, 10, 11, 20, 30, 31, 2**31 - 1], np.uint32)
    assert ring.assign(hashes).tolist() == [0, 0, 1, 1, 2, 0, 0], "or else to the first of all"


def test_nodes_come_in_any_order() -> None:
    nodes = [{"value": 20, "fileIdPrefix": "b", "tag": "NORMAL"}, {"value": 10, "fileIdPrefix": "a", "tag": "NORMAL"}]
    assert HashRing.decode(json.dumps({"nodes": nodes}).encode(), "it") == HashRing((10, 20), ("a-0", "b-0"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"nodes": []}',
        b'{"nodes": [{"value": 1}]}',
        b'{"nodes": [{"value": 1, "fileIdPrefix": "a"}, {"value": 1, "fileIdPrefix": "b"}]}',
    ],
)
def test_what_is_no_ring_is_named(data: bytes) -> None:
    with pytest.raises(DamagedTable, match=r"x\.hashing_meta"):
        HashRing.decode(data, "x.hashing_meta")


def test_the_values_of_the_hashed_columns_are_joined() -> None:
    keys = pa.array(["id:1,r:eu", "id:__null__,r:__empty__", "plain"])
    assert hash_record_keys(keys, ["id", "r"]).tolist() == hash_texts(pa.array(["1eu", "null", "plain"])).tolist()
    assert hash_record_keys(keys, ["r"]).tolist() == hash_texts(pa.array(["eu", "", "plain"])).tolist()
    odd = pa.array(["id:1,r:a:b", "id:2,r:eu"])
    assert hash_record_keys(odd, ["id", "r"]).tolist() == hash_texts(pa.array(["1a:b", "2eu"])).tolist()
