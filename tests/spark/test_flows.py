"""Writes, compactions and reads pass through no more code than they did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flow import LIMITS, SPARK_FLOWS, measure_flow

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", SPARK_FLOWS)
def test_a_flow_stays_within_its_limit(spark: Any, tmp_path: Path, name: str) -> None:
    found = measure_flow(SPARK_FLOWS[name](tmp_path / "table", spark))
    assert LIMITS[name].find_excess(found) == ""
    assert found.files > 5, "it measures something"
