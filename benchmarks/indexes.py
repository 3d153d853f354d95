"""TPC-H lineitem: upsert one row in ten by each index, beside JVM Hudi with the same index and session settings."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from hudi_locks_conformance.servers import fetch_bundle

from benchmarks.figures import Figure
from benchmarks.indexes_side import INDEXES
from benchmarks.lineitem import generate
from benchmarks.sides import run_side

__all__ = ["run"]

_BUNDLE = "1.2.0"
_QUICK_SCALE = 0.01


def run(*, quick: bool, scale: float, rounds: int) -> list[Figure]:
    """Both sides take turns, each table in a process of its own; each figure is the median of its rounds."""
    bundle = str(fetch_bundle(_BUNDLE))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        data = generate(folder, _QUICK_SCALE if quick else scale)
        return [_compare(index, data, folder, bundle, rounds=1 if quick else rounds) for index in INDEXES]


def _compare(index: str, data: Path, folder: Path, bundle: str, *, rounds: int) -> Figure:
    found: dict[str, list[float]] = {"ours": [], "hudi": []}
    for number in range(rounds):
        for side, seconds in found.items():
            place = folder / f"{index}-{side}-{number}"
            seconds.append(run_side("indexes_side", side, index, data, place, bundle if side == "hudi" else ""))
    ours, theirs = (statistics.median(seconds) for seconds in found.values())
    return Figure(f"upsert by {index}", ours, f"JVM Hudi {_BUNDLE}", theirs, "s", "lower")
