"""What a metadata table costs a commit, and what its statistics spare a read, beside JVM Hudi."""

from __future__ import annotations

import tempfile

from hudi_locks_conformance.servers import fetch_bundle

from benchmarks.figures import Figure
from benchmarks.sides import run_side

__all__ = ["run"]

_BUNDLE = "1.2.0"
_FILES, _QUICK_FILES = 200, 8
_COMMITS, _QUICK_COMMITS = 12, 2


def run(*, quick: bool) -> list[Figure]:
    """In one process, in turns: the tables are JVM Hudi's, and both read them with its bundle in the session."""
    files, commits = (_QUICK_FILES, _QUICK_COMMITS) if quick else (_FILES, _COMMITS)
    with tempfile.TemporaryDirectory() as folder:
        found = run_side("metadata_table_side", folder, files, commits, str(fetch_bundle(_BUNDLE)))
    theirs = f"JVM Hudi {_BUNDLE}"
    return [
        Figure("upsert of 10 rows, kept", found["kept_s"], "dropped", found["dropped_s"], "s", "lower"),
        Figure("its publish under the lock, kept", found["kept_ms"], "dropped", found["dropped_ms"], "ms", "lower"),
        Figure(f"one of {files} files, opened", found["opened"], "no skipping", found["all"], "files", "lower"),
        Figure("the same, count", found["skipping_s"], "no skipping", found["plain_s"], "s", "lower"),
        Figure("the same, count", found["skipping_s"], theirs, found["jvm_s"], "s", "lower"),
    ]
