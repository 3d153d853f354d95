"""What reads and upserts cost, copy-on-write against merge-on-read (RFC-22): processor, conversions, bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.lineitem import generate
from benchmarks.nbcc_tables import LOGS
from benchmarks.sides import run_side

__all__ = ["run"]

_SCALE, _QUICK_SCALE = 0.2, 0.01


def run(*, quick: bool) -> list[Figure]:
    """Reads beside the copy-on-write table's snapshot, writes beside its last upsert."""
    with tempfile.TemporaryDirectory() as folder:
        data = generate(Path(folder), _QUICK_SCALE if quick else _SCALE)
        costs: dict[str, dict[str, float]] = run_side("nbcc_costs_side", data, folder)
    reads = [name for name in costs if "crossed" in costs[name]]
    logged = [name for name in reads if name.endswith("logs")]
    writes = [f"MOR, upsert {LOGS[-1]}", "MOR, compaction"]
    pairs: list[tuple[str, str, tuple[str, ...]]]
    pairs = [(name, "COW, snapshot", ("cpu_s", "took_s", "crossed", "read")) for name in reads]
    pairs += [(name, f"{name.rpartition(', ')[0]}, compacted", ("cpu_s", "took_s")) for name in logged]
    pairs += [(name, f"COW, upsert {LOGS[-1]}", ("cpu_s", "took_s", "written")) for name in writes]
    return [
        _compare(f"{name}: {_UNITS[what][0]}", costs[name][what], peer, costs[peer][what], _UNITS[what][1])
        for name, peer, whats in pairs
        for what in whats
    ]


_UNITS = {
    "cpu_s": ("processor time", "s"),
    "took_s": ("time", "s"),
    "crossed": ("rows from Arrow to the JVM", "rows"),
    "read": ("data files", "MB"),
    "written": ("written", "MB"),
}


def _compare(what: str, ours: float, peer: str, theirs: float, unit: str = "s") -> Figure:
    ours, theirs = (round(value / 1e6 if unit == "MB" else value, 2) for value in (ours, theirs))
    return Figure(what, ours, peer, theirs, unit, "lower")
