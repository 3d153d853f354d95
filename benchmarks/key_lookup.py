"""Upserts by the indexes that look keys up in base files, beside JVM Hudi by the same index."""

from __future__ import annotations

import tempfile

from hudi_locks_conformance.servers import fetch_bundle

from benchmarks.figures import Figure
from benchmarks.sides import run_side

__all__ = ["run"]

_BUNDLE = "1.2.0"
_ROWS, _QUICK_ROWS = 2_000_000, 40_000
_INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")


def run(*, quick: bool) -> list[Figure]:
    """In one process, in turns: JVM Hudi made the table."""
    rows = _QUICK_ROWS if quick else _ROWS
    with tempfile.TemporaryDirectory() as folder:
        found = run_side("key_lookup_side", folder, rows, fetch_bundle(_BUNDLE), *_INDEXES)
    return [
        Figure(
            f"upsert of the newest 1,000 of {rows:,} keys, {index}",
            found[f"ours_{index}"],
            f"JVM Hudi {_BUNDLE}, the same",
            found[f"jvm_{index}"],
            "s",
            "lower",
        )
        for index in _INDEXES
    ]
