"""Fifty steps of JVM Hudi and ours on one table with a metadata table, with twenty filters after each."""

from __future__ import annotations

import os
from typing import Any

import pytest
from filtered_turns import FilteredTurns

pytestmark = [pytest.mark.interop, pytest.mark.nightly]
STEPS = int(os.environ.get("HUDI_LOCKS_TURNS", "50"))
SEED = int(os.environ.get("HUDI_LOCKS_SEED", "1"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("is_partitioned", [True, False], ids=["partitioned", "whole"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_filter_finds_every_row_after_every_step(
    spark: Any, jvm: Any, path: str, kind: str, is_partitioned: bool
) -> None:
    FilteredTurns(jvm, spark, path, kind, is_partitioned, SEED).play(STEPS)
