"""Tables with the metadata table that JVM Hudi makes by default, written by both in turns.

After each step the JVM with the metadata table, the JVM without it, hudi-rs and our reader show the same rows, filtered
reads miss none of them, and `verify` finds no damage.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from every_type import FROM_SPARK, spark_query
from other_readers import COLUMNS, ONE_CLOCK, SCHEMA, THEIRS, JvmError, read_rust
from small_tables import archive_now
from table_lives import collect, merge

from hudi_locks.metadata_table import METADATA_LAYOUT, MetadataTable
from hudi_locks.services import drop_metadata_table
from hudi_locks.spark import HoodieTable
from hudi_locks.storage import LocalStorage
from hudi_locks.table import latest_file_slices
from hudi_locks.timeline import Timeline
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

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
KINDS = {"COPY_ON_WRITE": {}, "MERGE_ON_READ": {**BUCKETS, **NON_BLOCKING}}
LOCKS = {"COPY_ON_WRITE": {}, "MERGE_ON_READ": {"hoodie.write.lock.provider": "filesystem"}}
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


@dataclass
class Shared:
    """One table, and the rows that must be there."""

    jvm: Any
    spark: Any
    path: str
    kind: str
    partitioned_by: str = "region"
    expected: list[Any] = field(default_factory=list)
    turn: int = 0

    def theirs(self, *rows: Row, operation: str = "upsert", **changes: str) -> None:
        """A write of the JVM with its defaults."""
        options = {
            "hoodie.table.name": "t",
            "hoodie.metadata.enable": "true",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": self.partitioned_by,
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.table.type": self.kind,
            "hoodie.table.type": self.kind,
            "hoodie.write.table.version": str(self.jvm.table_version),
            "hoodie.metadata.compact.max.delta.commits": "4",
            "hoodie.clean.automatic": "false",
            **ONE_CLOCK,
            **KINDS[self.kind],
            **({"hoodie.write.lock.provider": THEIRS["hoodie.write.lock.provider"]} if LOCKS[self.kind] else {}),
            **{key.replace("__", "."): value for key, value in changes.items()},
        }
        told = {"rows": [list(row) for row in rows], "schema": SCHEMA, "options": options, "gate": ""}
        self.jvm.ask("write", path=self.path, **told).result(240)
        self.expected = merge(self.expected, rows)
        self.check()

    def open(self, **options: str) -> HoodieTable:
        given = {"hoodie.clean.automatic": "false", "hoodie.upsert.shuffle.parallelism": "2"}
        given["hoodie.metadata.compact.max.delta.commits"] = "3"
        given |= ONE_CLOCK | KINDS[self.kind] | LOCKS[self.kind]
        changed = {key.replace("__", "."): value for key, value in options.items()}
        return HoodieTable.load(self.spark, self.path, options={**given, **changed})

    def ours(self, *rows: Row) -> None:
        self.open().upsert(self.frame(*rows))
        self.expected = merge(self.expected, rows)
        self.check()

    def frame(self, *rows: Row) -> Any:
        return self.spark.createDataFrame(list(rows), SCHEMA).coalesce(1)

    def check(self) -> None:
        """By all readers, and by one filter in turn."""
        self.turn += 1
        table = self.open()
        assert collect(table.read()) == self.expected
        timeline, storage = table.table.timeline(), table.table.storage
        if (known := MetadataTable.of(storage, table.table.config)) is not None:
            listed = known.view(timeline).data_files()
            assert latest_file_slices(storage, timeline, listed=listed) == latest_file_slices(storage, timeline)
        assert self.read(WITH_IT) == self.read({"hoodie.metadata.enable": "false"}) == self.expected
        assert self.read_by_rust() == self.expected
        asked = list(FILTERS) if NIGHTLY else [[*FILTERS][self.turn % 7]]
        for where in asked:
            wanted = [row for row in self.expected if FILTERS[where](row)]
            assert self.read(WITH_IT, where) == collect(table.read(where=where)) == wanted, where
        assert verify_table(table.table.storage).damages == ()

    def read_by_rust(self) -> list[Any]:
        """Merge-on-read by a copy without the metadata table.

        By that hudi-rs 0.5.0 finds no log, a JVM's neither, where a file group has no base file.
        """
        if self.kind == "COPY_ON_WRITE":
            return read_rust(self.path)
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(self.path, Path(folder, "t"), ignore=shutil.ignore_patterns("*.crc"))
            drop_metadata_table(str(copy), {"hoodie.write.lock.provider": "filesystem"})
            return read_rust(str(copy))

    def read(self, options: dict[str, str], where: str = "") -> list[Any]:
        told = {"path": self.path, "columns": list(COLUMNS), "options": options, **({"where": where} if where else {})}
        found = self.jvm.ask("read", **told).result(240)
        return sorted((tuple(row) for row in found), key=repr)


@pytest.mark.parametrize("kind", KINDS)
def test_both_write_in_turns_and_every_reader_sees_every_row(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = Shared(jvm, spark, path, kind)
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 2.0, None), ("c", "us", 1, None, "theirs"))
    table.ours(("a", "eu", 2, 5000.0, "ours"), ("k", "new", 2, -7.5, "ours"), ("m", "us", 2, None, None))
    table.theirs(("b", "eu", 3, 6000.0, "theirs"), ("n", "new", 3, 0.0, "theirs"))
    gone = [row for row in table.expected if row[0] in ("c", "n")]
    table.open().delete(table.frame(*((*row[:2], 4, *row[3:]) for row in gone)))
    table.expected = [row for row in table.expected if row not in gone]
    table.check()
    table.theirs(("a", "eu", 5, -1.0, "theirs"), ("z", "last", 5, 4000.5, "theirs"))
    table.ours(("z", "last", 6, 1e9, "ours"), ("c", "us", 6, 8.0, "ours"))
    serve(table)
    table.theirs(("k", "new", 7, 1.5, "theirs"), ("c", "us", 7, 9.0, None))
    abort(table)
    assert table.open(hoodie__clean__commits__retained="1").services.clean().deleted
    table.check()
    table.theirs(("q", "eu", 8, 3.0, "theirs"), hoodie__clean__automatic="true", hoodie__clean__commits__retained="1")
    if kind == "COPY_ON_WRITE":
        replace_partition(table)
    table.ours(("q", "eu", 9, -9.0, "ours"))
    names = table.open().table.storage.list_names(".hoodie/metadata/files")
    by_us = {"_0-0-0_" in name for name in names if name.endswith(".hfile")}
    assert by_us == {True, False}, "both compacted the metadata table meanwhile"


@pytest.mark.parametrize("kind", KINDS)
def test_filters_find_what_a_restore_brought_back(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = Shared(jvm, spark, path, kind)
    table.theirs(("a", "eu", 1, -3.0, "theirs"), ("c", "us", 1, None, "ours"))
    kept, before = table.open().services.savepoints.create(), table.expected
    table.theirs(("a", "eu", 2, 9000.0, None), ("k", "new", 2, 7.0, "theirs"), ("c", "us", 2, 1.0, "theirs"))
    table.ours(("a", "eu", 3, 9500.0, "ours"), ("m", "us", 3, 2.0, None), ("z", "last", 3, 0.0, "ours"))
    assert table.open().services.restore(kept.instant).deleted
    table.expected = before
    for _ in FILTERS:
        table.check()
    table.theirs(("c", "us", 4, 8000.0, "theirs"), ("z", "last", 4, 6.0, "theirs"))
    table.ours(("a", "eu", 4, 1.0, "ours"), ("k", "new", 4, -2.0, "ours"))
    table.theirs(("k", "new", 5, -4.0, None))


def test_an_unpartitioned_table_has_no_statistics_of_partitions_and_is_kept_too(
    spark: Any, jvm: Any, path: str
) -> None:
    table = Shared(jvm, spark, path, "COPY_ON_WRITE", partitioned_by="")
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("c", "us", 1, None, "theirs"))
    table.ours(("a", "eu", 2, 5000.0, "ours"), ("k", "new", 2, -7.5, None))
    table.theirs(("c", "us", 3, 6000.0, "theirs"), ("n", "new", 3, 0.0, "theirs"))
    table.ours(("n", "new", 4, 4001.0, "ours"))
    assert not table.open().table.storage.list_names(".hoodie/metadata/partition_stats")


def test_readers_open_what_the_metadata_table_leaves_and_go_on_without_it(
    spark: Any, jvm: Any, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = Shared(jvm, spark, path, "COPY_ON_WRITE")
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("c", "us", 1, None, "theirs"))
    table.ours(("k", "new", 20, -7.5, "ours"), ("c", "us", 20, 8.0, "ours"))

    def count(where: str, **options: str) -> int:
        found = table.open(**options).read(where=where)
        assert [row[0] for row in collect(found)] == ["c", "k"]
        return len(found.inputFiles())

    assert (count("ts > 5"), count("ts > 5", **{"hoodie.enable.data.skipping": "false"})) == (2, 3)
    assert count("ts > 5", hoodie__metadata__enable="false") == 3
    assert count("value > -9 and label = 'ours'") == 3, "ranges of floats and texts are not believed"
    listed: list[str] = []
    list_folder = LocalStorage.list
    monkeypatch.setattr(LocalStorage, "is_service", True)

    def spy(self: LocalStorage, folder: str) -> Any:
        listed.append(folder)
        return list_folder(self, folder)

    monkeypatch.setattr(LocalStorage, "list", spy)

    def read_listed(**options: str) -> set[str]:
        listed.clear()
        assert collect(table.open(**options).read()) == table.expected
        return {folder for folder in listed if folder.startswith("region=")}

    assert read_listed() == set()
    assert len(read_listed(hoodie__metadata__enable="false")) == 3
    assert caplog.text == ""
    for part in ("files", "column_stats"):
        for file in Path(path, ".hoodie", "metadata", part).iterdir():
            file.write_bytes(b"no metadata" * 50)
    assert len(read_listed()) == 3
    assert "the folders of" in caplog.text
    assert count("ts > 5") == 3
    assert "all files of" in caplog.text


def test_the_jvm_goes_on_after_we_alone_compacted_cleaned_and_archived_for_long(
    spark: Any, jvm: Any, path: str
) -> None:
    table = Shared(jvm, spark, path, "COPY_ON_WRITE")
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("c", "us", 1, None, "theirs"))
    kept = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    opened = table.open(**kept, hoodie__archive__automatic="false")
    for ts in range(2, 30):
        opened.upsert(table.frame(("a", "eu", ts, float(ts), "ours")))
        if ts % 9 == 0:
            opened.services.clean()
            archive_now(opened)
            serve_metadata_now(opened)
    table.expected = merge(table.expected, [("a", "eu", 29, 29.0, "ours")])
    table.check()
    own = Timeline.load(opened.table.storage, METADATA_LAYOUT)
    assert own.completed(("clean",))
    assert len(own.completed(("deltacommit",))) < 28
    for ts in range(30, 34):
        table.theirs(
            ("c", "us", ts, 5000.0 + ts, "theirs"), ("k", "new", ts, -2.0, None), hoodie__clean__automatic="true"
        )
    table.ours(("k", "new", 40, 1.0, "ours"))
    abort(table)


def serve_metadata_now(table: HoodieTable) -> None:
    """With an archive of what was completed a moment ago."""
    services = table.services._metadata
    services._archiving = replace(services._archiving, min_age_ms=0)
    table.services.serve_metadata_table()


def serve(table: Shared) -> None:
    """A table service of ours."""
    opened = table.open()
    done = opened.compaction.run() if table.kind == "MERGE_ON_READ" else opened.clustering.run(sort_by=["value"])
    assert done is not None
    table.check()


def abort(table: Shared) -> None:
    """A write of ours whose rows are bad is rolled back."""
    before = len(table.open().table.timeline().completed(("rollback",)))
    bad = table.frame(("a", "eu", 8, 1.0, "lost"), ("", "eu", 8, 1.0, "no key"))
    with pytest.raises(Exception, match="record key"):
        table.open().upsert(bad)
    assert len(table.open().table.timeline().completed(("rollback",))) >= before
    table.check()


def replace_partition(table: Shared) -> None:
    rows: list[Row] = [("x", "us", 8, 5500.0, "ours")]
    table.open().insert_overwrite(table.frame(*rows))
    table.expected = merge([row for row in table.expected if row[1] != "us"], rows)
    table.check()
    table.open().delete_partitions(["region=new"])
    table.expected = [row for row in table.expected if row[1] != "new"]
    table.check()


def test_filters_on_columns_of_every_type_find_what_we_wrote(spark: Any, jvm: Any, path: str) -> None:
    options = {
        "hoodie.table.name": "t",
        "hoodie.metadata.enable": "true",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.write.table.version": str(jvm.table_version),
        "hoodie.metadata.index.column.stats.max.columns.to.index": "100",
    }
    jvm.ask("write_query", path=path, query=spark_query("n", 1, with_values=False), options=options).result(240)
    table = HoodieTable.load(spark, path)
    table.upsert(spark.sql(spark_query("a", 2)))
    metadata_table = MetadataTable.of(table.table.storage, table.table.config)
    assert metadata_table is not None
    assert set(metadata_table.indexed_columns) > {"price", "day", "at", "raw", "single"}

    def read(where: str) -> list[list[str]]:
        told = {"path": path, "columns": ["id"], "options": WITH_IT, "where": where}
        return sorted(jvm.ask("read", **told).result(240))

    assert read("true") == [["a"], ["n"]]
    raw = f"raw = {FROM_SPARK['raw']}"
    if jvm.version != "1.0.2":  # also on what it wrote itself
        with pytest.raises(JvmError, match="ClassCastException"):
            read(raw)
    else:
        assert read(raw) == [["a"]]
    for name in list_comparable():
        value = FROM_SPARK[name]
        equal = [(f"{name} = {value}", "a")] if NIGHTLY else []
        for where, there in ((f"{name} is null", "n"), (f"{name} >= {value}", "a"), *equal):
            found = table.read(where=where, columns="id", meta_columns=False).collect()
            assert [row.id for row in found] == [there], where
            assert (name == "raw" and there == "a") or read(where) == [[there]], where
    assert verify_table(table.table.storage).damages == ()


def list_comparable() -> Iterator[str]:
    for name, text in FROM_SPARK.items():
        if not text.startswith(("map", "array", "named_struct", "cast(map")):
            yield name
