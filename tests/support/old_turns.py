"""Tables of version 6 that JVM Hudi and this package write in turns."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from metadata_turns import WITH_IT, Shared

from hudi_locks.spark import HoodieTable

__all__ = [
    "BY_RECORD",
    "CLEANS",
    "FIRST",
    "OLD",
    "SEVERAL",
    "THEIRS",
    "begin",
    "compact",
    "let_time_pass",
    "open_several",
]

OLD = [pytest.param(("0.15.0", 6), marks=pytest.mark.nightly), ("1.2.0", 6)]
"""The last release that knows no later version, and one that writes this one still."""
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
CLEANS = {"hoodie__clean__automatic": "true", "hoodie__clean__commits__retained": "20"}
"""Release 0.15.0 looks for failed writes of others only where it cleans."""
THEIRS = {key.replace(".", "__"): value for key, value in SEVERAL.items()}
BY_RECORD = {
    "hoodie__index__type": "RECORD_INDEX",
    "hoodie__metadata__record__index__enable": "true",
    "hoodie__metadata__record__index__min__filegroup__count": "2",
}
FIRST = (("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 2.0, None), ("c", "us", 1, None, "theirs"))


def begin(jvm: Any, spark: Any, path: str, kind: str) -> Shared:
    """A table of the JVM, to which both have written."""
    table = Shared(jvm, spark, path, kind)
    table.theirs(*FIRST, **THEIRS)
    table.ours(("a", "eu", 2, 5000.0, "ours"), ("k", "new", 2, -7.5, "ours"), ("m", "us", 2, None, None))
    assert table.open().table.config.version == 6
    return table


def open_several(table: Shared, **changes: str) -> HoodieTable:
    return table.open(**THEIRS, **changes)


def let_time_pass(path: str) -> None:
    """The heartbeat of a writer that died expires, and so does its lock."""
    for file in Path(path, ".hoodie/.heartbeat").iterdir():
        os.utime(file, (0, 0))
    shutil.rmtree(Path(path, ".hoodie/.locks"), ignore_errors=True)
    Path(path, ".hoodie/lock").unlink(missing_ok=True)


def compact(table: Shared, op: str) -> None:
    given = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.write.table.version": "6",
        **WITH_IT,
        **SEVERAL,  # a single writer of JVM Hudi plans nothing while a write is pending
    }
    options = ",".join(f"{key}={value}" for key, value in given.items())
    table.jvm.sql(f"call run_compaction(path => '{table.path}', op => '{op}', options => '{options}')")
