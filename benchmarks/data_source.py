"""Reads and writes by Spark's own format `hudi_locks` beside the functions of this package. Needs PySpark 4."""

from __future__ import annotations

import tempfile

from benchmarks.figures import Figure
from benchmarks.sides import run_side

__all__ = ["run"]

_ROWS, _QUICK_ROWS = 3_000_000, 40_000
_JOBS = {"all": "all columns", "sum": "the sum of one column"}
_WRITES = {"load": "a first load", "update": "an update of one row in ten"}
_PEERS = {"function": "hudi_locks.spark.read", "method": "HoodieTable.read"}


def run(*, quick: bool) -> list[Figure]:
    """In one process, in turns."""
    rows = _QUICK_ROWS if quick else _ROWS
    with tempfile.TemporaryDirectory() as folder:
        found = run_side("data_source_side", folder, rows)
    kinds = ("COPY_ON_WRITE", "MERGE_ON_READ")
    reads = [(job, told, peer, name) for job, told in _JOBS.items() for peer, name in _PEERS.items()]
    writes = [(job, told, "function", "hudi_locks.spark.write") for job, told in _WRITES.items()]
    return [
        Figure(
            f"{rows:,} rows, {kind}, {told}, format",
            found[f"{kind}_{job}_format"],
            name,
            found[f"{kind}_{job}_{peer}"],
            "thousand rows/s",
            "higher",
        )
        for kind in kinds
        for job, told, peer, name in (*reads, *writes)
    ]
