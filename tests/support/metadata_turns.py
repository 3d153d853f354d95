"""One table with a metadata table that JVM Hudi and this package write in turns, and what every reader must see."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from other_readers import COLUMNS, ONE_CLOCK, SCHEMA, THEIRS, read_rust
from table_lives import collect, merge

from hudi_locks.metadata_table import MetadataTable
from hudi_locks.services import drop_metadata_table
from hudi_locks.spark import HoodieTable
from hudi_locks.table import latest_file_slices
from hudi_locks.verification import verify_table

__all__ = [
    "BY_BUCKET",
    "BY_KEY",
    "BY_RING",
    "COPIED_BUCKETS",
    "FILTERS",
    "KINDS",
    "LOCKS",
    "NIGHTLY",
    "OPTIONS",
    "WITH_IT",
    "Row",
    "Shared",
    "name_options",
    "open_here",
    "read_rust_by_listing",
    "serve",
]

Row = tuple[str, str, int, float | None, str | None]
NIGHTLY = bool(os.environ.get("HUDI_LOCKS_NIGHTLY"))
WITH_IT = {"hoodie.metadata.enable": "true"}
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.hash.field": "id",
}
NON_BLOCKING = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
BY_KEY = "MERGE_ON_READ by key"
"""As JVM Hudi makes one by default: keys are looked up, and new ones go to base files."""
BY_BUCKET = "MERGE_ON_READ by bucket"
"""As JVM Hudi makes one of a bucket index for a single writer."""
BY_RING = "MERGE_ON_READ by ring"
"""The same with consistent hashing."""
COPIED_BUCKETS = "COPY_ON_WRITE by bucket"
RINGS = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
OPTIONS = {
    "COPY_ON_WRITE": {},
    "MERGE_ON_READ": {**BUCKETS, **NON_BLOCKING},
    BY_KEY: {},
    BY_BUCKET: BUCKETS,
    BY_RING: RINGS,
    COPIED_BUCKETS: BUCKETS,
}
LOCKS = {**{kind: {} for kind in OPTIONS}, "MERGE_ON_READ": {"hoodie.write.lock.provider": "filesystem"}}
"""Of ours; those of the JVM by its class."""
FILTERS: dict[str, Callable[[Row], bool]] = {
    "value > 4000": lambda row: row[3] is not None and row[3] > 4000,
    "value <= -1": lambda row: row[3] is not None and row[3] <= -1,
    "value is null": lambda row: row[3] is None,
    "label = 'ours'": lambda row: row[4] == "ours",
    "label is null": lambda row: row[4] is None,
    "id >= 'k'": lambda row: row[0] >= "k",
    "ts between 3 and 6 and region = 'eu'": lambda row: 3 <= row[2] <= 6 and row[1] == "eu",
}


class Turns(Protocol):
    """What both kinds of writers must know of their table."""

    jvm: Any
    spark: Any
    path: str
    kind: str
    partitioned_by: str


def name_options(table: Turns, operation: str, changes: Mapping[str, str]) -> dict[str, str]:
    """Options of a JVM writer with its defaults; keys of `changes` have `__` for each dot."""
    return {
        "hoodie.table.name": "t",
        **WITH_IT,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": table.partitioned_by,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.table.type": table.kind.split()[0],
        "hoodie.table.type": table.kind.split()[0],
        "hoodie.write.table.version": str(table.jvm.table_version),
        "hoodie.metadata.compact.max.delta.commits": "4",
        "hoodie.clean.automatic": "false",
        **ONE_CLOCK,
        **OPTIONS[table.kind],
        **({"hoodie.write.lock.provider": THEIRS["hoodie.write.lock.provider"]} if LOCKS[table.kind] else {}),
        **{key.replace("__", "."): value for key, value in changes.items()},
    }


def open_here(table: Turns, changes: Mapping[str, str]) -> HoodieTable:
    """The table for a writer of this package; keys of `changes` have `__` for each dot."""
    given = {"hoodie.clean.automatic": "false", "hoodie.upsert.shuffle.parallelism": "2"}
    given["hoodie.metadata.compact.max.delta.commits"] = "3"
    given |= ONE_CLOCK | OPTIONS[table.kind] | LOCKS[table.kind]
    changed = {key.replace("__", "."): value for key, value in changes.items()}
    return HoodieTable.load(table.spark, table.path, options={**given, **changed})


@dataclass
class Shared:
    """One table, and the rows that must be there.

    Attributes:
        asks_rust: Whether hudi-rs judges too. In version 6 it leaves out what was logged above a plan of compaction.
    """

    jvm: Any
    spark: Any
    path: str
    kind: str
    partitioned_by: str = "region"
    expected: list[Any] = field(default_factory=list)
    turn: int = 0
    asks_rust: bool = True
    looks: bool = True

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Nobody looks at the table in the block, whose steps the look at its end shows too."""
        self.looks = False
        yield
        self.looks = True
        self.check()

    def theirs(self, *rows: Row, operation: str = "upsert", **changes: str) -> None:
        """A write of the JVM with its defaults."""
        options = name_options(self, operation, changes)
        told = {"rows": [list(row) for row in rows], "schema": SCHEMA, "options": options, "gate": ""}
        self.jvm.ask("write", path=self.path, **told).result(600)
        self.expected = merge(self.expected, rows)
        self.check()

    def open(self, **options: str) -> HoodieTable:
        return open_here(self, options)

    def ours(self, *rows: Row) -> None:
        self.open().upsert(self.frame(*rows))
        self.expected = merge(self.expected, rows)
        self.check()

    def frame(self, *rows: Row) -> Any:
        return self.spark.createDataFrame(list(rows), SCHEMA).coalesce(1)

    def check(self) -> None:
        """By all readers: in every run by the JVM's of all rows or by one with a filter, in turns."""
        if not self.looks:
            return
        self.turn += 1
        table = self.open()
        assert collect(table.read()) == self.expected
        timeline, storage = table.table.timeline(), table.table.storage
        if (known := MetadataTable.of(storage, table.table.config)) is not None:
            listed = known.view(timeline).data_files()
            assert latest_file_slices(storage, timeline, listed=listed) == latest_file_slices(storage, timeline)
        assert not self.asks_rust or self.read_by_rust() == self.expected
        if NIGHTLY or self.turn % 2:
            assert self.read(WITH_IT) == self.read({"hoodie.metadata.enable": "false"}) == self.expected
        self.check_filters(self._name_filters())
        damages = verify_table(table.table.storage).damages
        assert damages == (), damages

    def check_filters(self, filters: Iterable[str] = tuple(FILTERS)) -> None:
        """What both find by these conditions, the JVM by the metadata table."""
        table = self.open()
        for where in filters:
            wanted = [row for row in self.expected if FILTERS[where](row)]
            assert self.read(WITH_IT, where) == collect(table.read(where=where)) == wanted, where

    def _name_filters(self) -> list[str]:
        """Those of this turn."""
        if NIGHTLY:
            return list(FILTERS)
        return [] if self.turn % 2 else [[*FILTERS][self.turn // 2 % 7]]

    def read_by_rust(self) -> list[Any]:
        """Merge-on-read by a copy where a file group may have no base file."""
        has_bases = self.kind in ("COPY_ON_WRITE", COPIED_BUCKETS, BY_KEY)
        return read_rust(self.path) if has_bases else read_rust_by_listing(self.path)

    def read(self, options: dict[str, str], where: str = "") -> list[Any]:
        told = {"path": self.path, "columns": list(COLUMNS), "options": options, **({"where": where} if where else {})}
        found = self.jvm.ask("read", **told).result(600)
        return sorted((tuple(row) for row in found), key=repr)


def read_rust_by_listing(path: str) -> list[Any]:
    """By a copy without the metadata table.

    By that hudi-rs 0.5.0 finds no log, a JVM's neither, where a file group has no base file.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(path, Path(folder, "t"), ignore=shutil.ignore_patterns("*.crc"))
        drop_metadata_table(str(copy), {"hoodie.write.lock.provider": "filesystem"})
        return read_rust(str(copy))


def serve(table: Shared) -> None:
    """A table service of ours."""
    opened = table.open()
    done = opened.compaction.run() if opened.table.is_merge_on_read else opened.clustering.run(sort_by=["value"])
    assert done is not None
    table.check()
