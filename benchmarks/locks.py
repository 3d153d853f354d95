"""Every lock provider on its real service, beside the raw calls and its peers, all in one run."""

from __future__ import annotations

import importlib

from benchmarks.figures import Figure

__all__ = ["PIECES", "run"]

PIECES = ("zookeeper", "dynamodb", "hive", "storage")
"""Each a module `locks_NAME`, which also runs on its own."""


def run(*, quick: bool) -> list[Figure]:
    return [
        figure for piece in PIECES for figure in importlib.import_module(f"benchmarks.locks_{piece}").run(quick=quick)
    ]
