"""Writes, compactions and reads pass through no more code than they did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flow import LIMITS, SPARK_FLOWS, measure_flow

pytestmark = pytest.mark.spark

TRIES = 3
"""Who has to wait on a full machine asks once more what it waits for; more code in the flow shows in each try."""


def find_excesses(name: str, spark: Any, folder: Path) -> list[str]:
    """Of each try, until one has none."""
    found: list[str] = []
    while len(found) < TRIES and "" not in found:
        passage = measure_flow(SPARK_FLOWS[name](folder / f"{name}-{len(found)}", spark))
        assert passage.files > 5, "it measures something"
        found.append(LIMITS[name].find_excess(passage))
    return found


def test_each_flow_stays_within_its_limit(spark: Any, tmp_path: Path) -> None:
    found = {name: find_excesses(name, spark, tmp_path) for name in SPARK_FLOWS}
    assert {name: excesses for name, excesses in found.items() if "" not in excesses} == {}
