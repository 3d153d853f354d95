"""How nodes of a ring are cut and taken out, beside what JVM Hudi 1.2.0 answers and what its plans hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import DamagedTable
from hudi_locks.format import ClusteringGroup, ClusteringPlan, ClusteringSlice
from hudi_locks.format.consistent_hashing import HashRing
from hudi_locks.format.records import decode_record
from hudi_locks.format.ring_change import RING_STRATEGY, RingChange, RingNode

GOLDEN = Path(__file__).parents[2] / "golden"
MOST = 2**31 - 1

# ConsistentBucketIdentifier.splitBucket of JVM Hudi 1.2.0: values of a ring, and where each node is cut.
MIDDLES = [
    ((MOST,), (1073741823,)),
    ((1073741824, MOST), (536870911, 1610612735)),
    ((715827883, 1431655766, MOST), (357913941, 1073741824, 1789569706)),
    ((536870912, 1073741824, 1610612736, MOST), (268435455, 805306368, 1342177280, 1879048191)),
    ((10, 20, 30), (1073741844, 15, 25)),
    ((0, 1, 2), (1073741825, None, None)),
    ((5, MOST), (2, 1073741826)),
    ((100,), (1073741924,)),
    ((0,), (1073741824,)),
    ((1, MOST), (0, 1073741824)),
    ((MOST - 1, MOST), (1073741822, None)),
    ((1073741824, 2147483640), (536870908, 1610612732)),
]


def ring_of(*values: int) -> HashRing:
    return HashRing(values, tuple(f"f{value}-0" for value in values))


@pytest.mark.parametrize(("values", "middles"), MIDDLES)
def test_a_node_is_cut_where_the_jvm_cuts_it(values: tuple[int, ...], middles: tuple[int | None, ...]) -> None:
    ring = ring_of(*values)
    assert tuple(ring.find_middle(node) for node in range(len(values))) == middles


def test_a_split_leaves_two_nodes_and_a_merge_the_last() -> None:
    ring = ring_of(10, 20, 30)
    split = ring.change([RingNode(15, "x-0"), RingNode(20, "y-0")])
    assert split == HashRing((10, 15, 20, 30), ("f10-0", "x-0", "y-0", "f30-0"), 1)
    merged = split.change([RingNode(10), RingNode(15), RingNode(20, "z-0")])
    assert merged == HashRing((20, 30), ("z-0", "f30-0"), 2)
    across = ring.change([RingNode(30), RingNode(10, "w-0")])
    assert across == HashRing((10, 20), ("w-0", "f20-0"), 1), "keys above the last node belong to the first"


def test_a_later_ring_says_what_that_of_the_jvm_says() -> None:
    text = HashRing.create("region=eu", 2).change([RingNode(536870911, "x-0"), RingNode(1073741824, "y-0")])
    record = decode(text.encode("region=eu", instant="20261130085138556"))
    assert {name: record[name] for name in ("version", "instant", "numBuckets", "seqNo")} == {
        "version": 0,
        "instant": "20261130085138556",
        "numBuckets": 2,  # of the first ring, as there
        "seqNo": 1,
    }
    assert [node["tag"] for node in record["nodes"]] == ["NORMAL"] * 3
    assert HashRing.decode(text.encode("region=eu"), "it") == text


def decode(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data)
    return found


def test_plans_of_the_jvm_are_read() -> None:
    split = ClusteringPlan.decode((GOLDEN / "v9_split_buckets.requested").read_bytes(), "x")
    merge = ClusteringPlan.decode((GOLDEN / "v9_merge_buckets.requested").read_bytes(), "x")
    assert split is not None
    assert merge is not None
    [cut, kept] = split.ring_changes["region=eu"]
    assert (cut.number, [node.value for node in cut.nodes]) == (0, [536870911, 1073741824])
    assert cut.file_ids == {"4d051091-53aa-4153-af42-571295fb26c7-0", "d7c17f1c-b0f8-429f-87ec-6a6f0b47d91b-0"}
    assert kept.nodes == (RingNode(MOST, "fbe896ae-6344-43f6-ac59-0dfd7f1dcd59-0"),)
    [joined] = merge.ring_changes["region=eu"]
    last = RingNode(536870911, "d0eed2cd-c76f-423e-bc77-38bf3d567365-0")
    assert (joined.number, joined.nodes) == (1, (RingNode(1073741824), RingNode(MOST), last))


@pytest.mark.parametrize("name", ["v9_split_buckets", "v9_merge_buckets"])
def test_a_plan_says_what_that_of_the_jvm_says(name: str) -> None:
    data = (GOLDEN / f"{name}.requested").read_bytes()
    plan = ClusteringPlan.decode(data, "x")
    assert plan is not None
    ours, theirs = (decode_record(one, "x")["clusteringPlan"] for one in (plan.encode(), data))
    assert ours["strategy"] == theirs["strategy"]
    assert ours["strategy"]["strategyClassName"] == RING_STRATEGY
    for mine, its in zip(ours["inputGroups"], theirs["inputGroups"], strict=True):
        assert {**mine, "metrics": None, "extraMetadata": None} == {**its, "metrics": None, "extraMetadata": None}
        assert RingChange.decode(mine["extraMetadata"]) == RingChange.decode(its["extraMetadata"])
        assert mine["extraMetadata"].keys() == its["extraMetadata"].keys()


def test_a_plan_without_rings_has_none() -> None:
    plain = ClusteringPlan((ClusteringGroup((ClusteringSlice("p", "f-0", "/t/p/f.parquet"),)),))
    assert plain.ring_changes == {}
    assert ClusteringPlan.decode(plain.encode(), "x") == plain
    changed = replace(plain.groups[0], ring_change=RingChange("p", 3, (RingNode(1), RingNode(2, "g-0"))))
    assert ClusteringPlan.decode(ClusteringPlan((changed,)).encode(), "x") == ClusteringPlan((changed,))


def test_a_node_with_another_tag_is_damage() -> None:
    plan = (GOLDEN / "v9_split_buckets.requested").read_bytes()
    damaged = plan.replace(b"REPLACE", b"NORMALX", 1)
    with pytest.raises(DamagedTable, match=r"x\.requested"):
        ClusteringPlan.decode(damaged, "x.requested")
