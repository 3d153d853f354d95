"""Writes, compactions and reads pass through no more code than they did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flow import LIMITS, SPARK_FLOWS, measure_flow

pytestmark = pytest.mark.spark


def test_each_flow_stays_within_its_limit(spark: Any, tmp_path: Path) -> None:
    found = {name: measure_flow(flow(tmp_path / name, spark)) for name, flow in SPARK_FLOWS.items()}
    assert {name: LIMITS[name].find_excess(passage) for name, passage in found.items()} == dict.fromkeys(found, "")
    assert all(passage.files > 5 for passage in found.values()), "it measures something"
