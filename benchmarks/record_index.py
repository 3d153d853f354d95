"""An upsert whose keys are looked up in the record index, beside one that reads all keys, and beside JVM Hudi."""

from __future__ import annotations

import tempfile

from hudi_locks_conformance.servers import fetch_bundle

from benchmarks.figures import Figure
from benchmarks.sides import run_side

__all__ = ["run"]

_BUNDLE = "1.2.0"
_ROWS, _QUICK_ROWS = 10_000_000, 100_000
_BATCHES = (1_000, 100_000)


def run(*, quick: bool) -> list[Figure]:
    """In one process, in turns: JVM Hudi made the table and its index."""
    rows = _QUICK_ROWS if quick else _ROWS
    with tempfile.TemporaryDirectory() as folder:
        found = run_side("record_index_side", folder, rows, *_BATCHES, fetch_bundle(_BUNDLE))
    figures = []
    for batch in _BATCHES:
        title = f"upsert of {batch:,} keys of {rows:,}, by the record index"
        ours = found[f"record_{batch}"]
        figures.append(Figure(title, ours, "GLOBAL_SIMPLE", found[f"simple_{batch}"], "s", "lower"))
        figures.append(Figure(title, ours, f"JVM Hudi {_BUNDLE}, the same", found[f"jvm_{batch}"], "s", "lower"))
    return figures
