"""Steps of JVM Hudi and ours on one table with a metadata table, drawn from a seed, with twenty filters after each.

`HUDI_LOCKS_TURNS=50 HUDI_LOCKS_SEED=7` plays so many steps of another seed; a step takes some 25 seconds.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from filtered_turns import FilteredTurns
from metadata_turns import BY_KEY, KINDS

pytestmark = [pytest.mark.interop, pytest.mark.nightly]
STEPS = int(os.environ.get("HUDI_LOCKS_TURNS", "20"))
SEED = int(os.environ.get("HUDI_LOCKS_SEED", "1"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("partitioned_by", ["region", ""])
@pytest.mark.parametrize("kind", [*KINDS, BY_KEY])
def test_every_filter_finds_every_row_after_every_step(
    spark: Any, jvm: Any, path: str, kind: str, partitioned_by: str
) -> None:
    turns = FilteredTurns(jvm, spark, path, kind, partitioned_by, SEED)
    turns.play(STEPS)
    assert len(turns.done) == STEPS
