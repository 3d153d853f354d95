"""Writers of both kinds at once on one table of each index, under one lock: what a serial replay gives is there.

All go for the same rows, and each brings some that nobody else has. Any order of the writes leaves of each key the row
with the greatest value in the ordering column, so the replay needs none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from other_readers import COLUMNS, DEADLINE_S, OURS, SCHEMA, THEIRS, Jvm, JvmError, read_rust

from hudi_locks.errors import WriteConflict
from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"]),
]
Row = tuple[str, str, int, float, str]
Write = Callable[[Iterable[Row]], bool]
"""False for one that met another."""
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
WITH_METADATA = {"hoodie.metadata.enable": "true"}
BUCKETS = {"hoodie.bucket.index.num.buckets": "2", "hoodie.bucket.index.hash.field": "id"}
INDEXES: dict[str, dict[str, str]] = {
    "SIMPLE": {},
    "BLOOM": {},
    "GLOBAL_SIMPLE": {},
    "GLOBAL_BLOOM": {},
    "BUCKET": BUCKETS,
    "CONSISTENT_HASHING": {
        **BUCKETS,
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        # what JVM Hudi takes for buckets else reads a number out of names of file groups, which have none here
        "hoodie.write.lock.conflict.resolution.strategy": "org.apache.hudi.client.transaction."
        "SimpleConcurrentFileWritesConflictResolutionStrategy",
    },
    "RECORD_INDEX": {
        **WITH_METADATA,
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
    "RECORD_LEVEL_INDEX": {**WITH_METADATA, "hoodie.metadata.record.level.index.enable": "true"},
}
ALWAYS = ("MERGE_ON_READ", "BLOOM")
"""In every run; the others are the nightly run's."""
PAIRS = [
    pytest.param(kind, index, marks=() if (kind, index) == ALWAYS else pytest.mark.nightly)
    for index in INDEXES
    for kind in KINDS
    if index != "CONSISTENT_HASHING" or kind == "MERGE_ON_READ"  # JVM Hudi has it nowhere else
]
ROUNDS = 4
ATTEMPTS = 60


@dataclass
class Fleet:
    """Two writers of the JVM and two of ours, and what they wrote."""

    jvm: Jvm
    spark: Any
    path: str
    ours: dict[str, str]
    theirs: dict[str, str]
    written: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    conflicts: int = 0

    def write_theirs(self, rows: Iterable[Row]) -> bool:
        listed = [list(row) for row in rows]
        told = {"rows": listed, "schema": SCHEMA, "options": self.theirs, "gate": ""}
        try:
            self.jvm.ask("write", path=self.path, **told).result(DEADLINE_S)
        except JvmError as error:
            if "Conflict" not in str(error) and "Lock" not in str(error):
                raise
            return False
        return True

    def write_ours(self, rows: Iterable[Row]) -> bool:
        frame = self.spark.createDataFrame(list(rows), SCHEMA).coalesce(1)
        table = HoodieTable.load(self.spark, self.path, options=self.ours)
        try:
            table.upsert(frame)
        except WriteConflict:
            return False
        finally:
            table.close()
        return True

    def repeat(self, write: Write, rows: Iterable[Row]) -> None:
        """As a job that is started anew after a conflict: an upsert of the same rows changes nothing."""
        for _ in range(ATTEMPTS):
            if write(rows):
                return
            self.conflicts += 1
        raise TimeoutError(f"{ATTEMPTS} conflicts")

    def run(self) -> None:
        """All at once, each its rounds."""
        parts = [(f"{kind}{number}", write) for kind, write in self._kinds() for number in range(2)]
        threads = [threading.Thread(target=self._work, args=(at, *part)) for at, part in enumerate(parts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _kinds(self) -> list[tuple[str, Write]]:
        return [("ours", self.write_ours), ("theirs", self.write_theirs)]

    def _work(self, at: int, name: str, write: Write) -> None:
        try:
            for number in range(ROUNDS):
                ts = 10 + number * 4 + at  # no two writes have one
                shared: list[Row] = [(f"k{n}", ("eu", "us")[n % 2], ts, float(ts), name) for n in range(6)]
                own: list[Row] = [(f"{name}-{number}", "eu", ts, float(ts), name)]
                self.repeat(write, [*shared, *own])
                self.written += [*shared, *own]
        except Exception as error:  # told at the end
            self.failures.append(f"{name}: {type(error).__name__}: {error}")

    def expected(self) -> list[Row]:
        newest: dict[str, Row] = {}
        for row in sorted(self.written, key=lambda row: row[2]):
            newest[row[0]] = row
        return sorted(newest.values())


@pytest.mark.parametrize(("kind", "index"), PAIRS)
def test_writers_at_once_leave_what_a_serial_replay_gives(
    spark: Any, jvm: Jvm, path: str, zookeeper_lock: tuple[dict[str, str], dict[str, str]], kind: str, index: str
) -> None:
    common = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.metadata.enable": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.write.lock.wait_time_ms": "60000",
        "hoodie.write.lock.num_retries": "50",
        "hoodie.index.type": index,
        **INDEXES[index],
    }
    theirs = {**THEIRS, **common, **zookeeper_lock[1]}
    theirs |= {"hoodie.embed.timeline.server": "true"} if index == "RECORD_LEVEL_INDEX" else {}
    ours = {**OURS, "hoodie.index.type": index, **INDEXES[index], **zookeeper_lock[0]}
    ours |= {"hoodie.clean.automatic": "false"}
    fleet = Fleet(jvm, spark, path, ours, theirs)
    first: list[Row] = [(f"k{n}", ("eu", "us")[n % 2], 1, 1.0, "first") for n in range(6)]
    fleet.write_theirs(first)
    fleet.written += first
    fleet.run()
    assert fleet.failures == []
    table = HoodieTable.load(spark, path)
    assert sorted(tuple(row) for row in table.read().select(*COLUMNS).collect()) == fleet.expected()
    for told in ("true", "false"):
        assert jvm.read_path(path, {"hoodie.metadata.enable": told}) == fleet.expected()
    if kind == "COPY_ON_WRITE":
        assert read_rust(path) == fleet.expected()
    assert verify_table(table.table.storage, reads_keys=True).damages == ()
    assert fleet.conflicts, "they never met"
