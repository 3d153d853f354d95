"""A writer that is killed with signal 9, at each named point of begin, publish and rollback, and at any other."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.transaction.hooks import StopPoint

pytestmark = pytest.mark.spark

SCRIPT = Path(__file__).with_name("kill_writer.py")
STEPS = ("begin", "publish", "rollback")
NAMED = [point.value for point in StopPoint if point.value.split(":")[0] in STEPS]
CALLS = [f"call:{number}" for number in random.Random(20240101).sample(range(1, 20), 10)]
DECIDED = (
    "publish:claimed",
    "publish:settling",
    "publish:metadata-begun",
    "publish:named",
    "publish:metadata-completed",
    "publish:staged",
    "publish:looked",
    "publish:completed",
    "publish:looked-again",
    "publish:cleaned",
    "publish:unlocked",
)
"""From here on the claim stands, so that the next writer finishes what the dead one began."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("kill")), *NAMED, *CALLS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return {result["stop"]: {**result, "stderr": done.stderr} for result in results}


@pytest.mark.parametrize("stop", NAMED)
def test_the_next_run_after_a_kill_at_a_named_point_ends_with_the_right_rows(
    found: dict[str, dict[str, Any]], stop: str
) -> None:
    result = found[stop]
    killed = 2 if stop.startswith("rollback:") else 1
    assert result["codes"] == [-9] * killed + [0, 0], result["stderr"]
    expected = ["a", "b", "c"] if stop in DECIDED else ["b", "c"]
    assert sorted(result["rows"]) == expected
    assert result["files"] == len(result["commits"]) == len(expected)


@pytest.mark.parametrize("stop", CALLS)
def test_the_next_run_after_a_kill_at_any_call_ends_with_the_right_rows(
    found: dict[str, dict[str, Any]], stop: str
) -> None:
    result = found[stop]
    assert result["codes"][1:] == [0, 0], result["stderr"]
    rows = sorted(result["rows"])
    assert rows in (["a", "b", "c"], ["b", "c"])
    assert result["files"] == len(result["commits"]) == len(rows)
    assert result["codes"][0] == -9 or rows == ["a", "b", "c"]


@pytest.mark.parametrize("stop", [*NAMED, *CALLS])
def test_nothing_is_left_over_that_could_be_taken_for_work(found: dict[str, dict[str, Any]], stop: str) -> None:
    result = found[stop]
    assert (result["pending"], result["staged"]) == ([], [])
    assert set(result["marked"]) <= set(result["commits"])
