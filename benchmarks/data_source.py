"""Reads by Spark's own format `hudi_locks` beside the functions of this package. Needs PySpark 4."""

from __future__ import annotations

import tempfile

from benchmarks.figures import Figure
from benchmarks.sides import run_side

__all__ = ["run"]

_ROWS, _QUICK_ROWS = 3_000_000, 40_000
_JOBS = {"all": "all columns", "sum": "the sum of one column"}
_PEERS = {"function": "hudi_locks.spark.read", "method": "HoodieTable.read"}


def run(*, quick: bool) -> list[Figure]:
    """In one process, in turns."""
    rows = _QUICK_ROWS if quick else _ROWS
    with tempfile.TemporaryDirectory() as folder:
        found = run_side("data_source_side", folder, rows)
    return [
        Figure(
            f"{rows:,} rows, {kind}, {told}, format",
            found[f"{kind}_{job}_format"],
            name,
            found[f"{kind}_{job}_{peer}"],
            "thousand rows/s",
            "higher",
        )
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
        for job, told in _JOBS.items()
        for peer, name in _PEERS.items()
    ]
