"""Early conflict detection: what a look at other writes costs, and what it saves."""

from __future__ import annotations

import importlib

from benchmarks.figures import Figure

__all__ = ["PIECES", "run"]

PIECES = ("checks", "markers", "writers")
"""Each a module `early_conflict_NAME`, which also runs on its own."""


def run(*, quick: bool) -> list[Figure]:
    return [
        figure
        for piece in PIECES
        for figure in importlib.import_module(f"benchmarks.early_conflict_{piece}").run(quick=quick)
    ]
