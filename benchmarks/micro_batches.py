"""Upserts of a few rows and reads between them, as small micro-batches of a stream make them, beside JVM Hudi."""

from __future__ import annotations

import tempfile

from hudi_locks_conformance.servers import fetch_bundle

from benchmarks.figures import Figure
from benchmarks.sides import run_side

__all__ = ["run"]

_BUNDLE = "1.2.0"
_BATCHES, _QUICK_BATCHES = 30, 3
_KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def run(*, quick: bool) -> list[Figure]:
    """Each side in a process of its own, one after the other."""
    jar, batches = str(fetch_bundle(_BUNDLE)), _QUICK_BATCHES if quick else _BATCHES
    return [figure for kind in _KINDS for figure in _compare(kind, batches, jar)]


def _compare(kind: str, batches: int, jar: str) -> list[Figure]:
    ours, theirs = (_run_side(side, kind, batches, *jars) for side, jars in (("ours", ()), ("hudi", (jar,))))
    assert ours["rows"] == theirs["rows"], f"the sides show different rows: {ours}, {theirs}"
    short = "".join(word[0] for word in kind.split("_"))
    return [
        Figure(f"{short}, {job} of 100 rows", ours[job], f"JVM Hudi {_BUNDLE}", theirs[job], "s", "lower")
        for job in ("upsert", "snapshot")
    ]


def _run_side(side: str, kind: str, batches: int, *jars: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, float] = run_side("micro_batches_side", side, kind, batches, folder, *jars)
    return found
