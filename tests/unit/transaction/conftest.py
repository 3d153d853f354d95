"""Transactions of one table in memory: in a harness, or in a simulator of processes that take turns."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import fastavro
import pytest
from transaction_plays import Histories, play_mixed, play_native


@pytest.fixture
def native() -> Histories:
    return play_native


@pytest.fixture
def mixed() -> Histories:
    return play_mixed


@pytest.fixture
def clustering_plan() -> Callable[..., bytes]:
    """The plan of a JVM clustering, with the fields that matter."""
    piece: dict[str, Any] = {"type": "record", "name": "HoodieSliceInfo", "fields": []}
    piece["fields"] = [
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "fileId", "type": ["null", "string"]},
    ]
    group: dict[str, Any] = {"type": "record", "name": "HoodieClusteringGroup"}
    group["fields"] = [{"name": "slices", "type": ["null", {"type": "array", "items": piece}]}]
    plan: dict[str, Any] = {"type": "record", "name": "HoodieClusteringPlan"}
    plan["fields"] = [{"name": "inputGroups", "type": ["null", {"type": "array", "items": group}]}]
    schema: dict[str, Any] = {"type": "record", "name": "HoodieRequestedReplaceMetadata"}
    schema["fields"] = [{"name": "clusteringPlan", "type": ["null", plan]}]

    def encode(*groups: tuple[str, str]) -> bytes:
        slices = [{"partitionPath": partition, "fileId": file_id} for partition, file_id in groups]
        sink = io.BytesIO()
        fastavro.writer(sink, schema, [{"clusteringPlan": {"inputGroups": [{"slices": slices}]}}])
        return sink.getvalue()

    return encode
