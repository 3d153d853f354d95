"""Clustering plans, beside one that JVM Hudi 1.0.2 made."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hudi_locks.errors import DamagedTable
from hudi_locks.format import ClusteringGroup, ClusteringPlan, ClusteringSlice, clustered_file_groups
from hudi_locks.format.records import decode_record

JVM = (Path(__file__).parents[2] / "golden" / "v8_clustering.requested").read_bytes()


def datum_of(data: bytes) -> bytes:
    """The bytes of the only datum, without the container, whose sync marker is random."""
    blocks: Any = fastavro.block_reader(io.BytesIO(data))
    [datum] = [block.bytes_.getvalue() for block in blocks]
    return bytes(datum)


def test_the_plan_of_the_jvm_is_read() -> None:
    plan = ClusteringPlan.decode(JVM, "x")
    assert plan is not None
    assert plan.sort_columns == ("ts", "id")
    assert [(len(group.slices), group.output_groups) for group in plan.groups] == [(1, 1), (3, 1)]
    piece = plan.groups[0].slices[0]
    assert (piece.partition, piece.file_id) == ("region=us", "860bcafd-e30b-48d6-b8fc-80004ca6e718-0")
    assert piece.relative_path == "region=us/860bcafd-e30b-48d6-b8fc-80004ca6e718-0_0-27-32_20261121222850491.parquet"
    assert len(clustered_file_groups(JVM, "x")) == 4


def test_a_plan_is_written_byte_for_byte_as_the_jvm_writes_it() -> None:
    plan = ClusteringPlan.decode(JVM, "x")
    assert plan is not None
    assert datum_of(plan.encode()) == datum_of(JVM)
    ours, theirs = (fastavro.reader(io.BytesIO(data)).writer_schema for data in (plan.encode(), JVM))
    assert fastavro.schema.to_parsing_canonical_form(ours) == fastavro.schema.to_parsing_canonical_form(theirs)


def test_a_plan_survives_the_round_trip() -> None:
    pieces = (
        ClusteringSlice("", "f-0", "/t/f-0_0-0-0_1.parquet"),
        ClusteringSlice("", "g-0", "", ("/t/.g-0_1.log.1",)),
    )
    plan = ClusteringPlan((ClusteringGroup(pieces, 3, 5 << 20), ClusteringGroup(pieces[:1])))
    assert ClusteringPlan.decode(plan.encode(), "x") == plan
    assert decode_record(plan.encode(), "x")["clusteringPlan"]["inputGroups"][0]["metrics"]["TOTAL_IO_MB"] == 10.0
    assert plan.encode() == plan.encode()


def test_what_holds_no_plan_is_none_and_damage_is_named() -> None:
    assert ClusteringPlan.decode(b"", "x") is None
    with pytest.raises(DamagedTable, match=r"x\.requested"):
        ClusteringPlan.decode(JVM[:40], "x.requested")
