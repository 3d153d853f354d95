"""Tables with the metadata table that JVM Hudi makes by default, written by both in turns.

After each step the JVM with the metadata table, the JVM without it, hudi-rs and our reader show the same rows, filtered
reads miss none of them, and `verify` finds no damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from every_type import FROM_SPARK, spark_query
from metadata_turns import KINDS, NIGHTLY, WITH_IT, Row, Shared, serve
from other_readers import JvmError
from small_tables import archive_now
from table_lives import collect, merge

from hudi_locks.metadata_table import METADATA_LAYOUT, MetadataTable
from hudi_locks.spark import HoodieTable
from hudi_locks.storage import LocalStorage
from hudi_locks.timeline import Timeline
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop


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
    table.check()
    table.check_filters()
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
    monkeypatch.setattr(LocalStorage, "is_remote", True)

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
    jvm.ask("write_query", path=path, query=spark_query("n", 1, with_values=False), options=options).result(600)
    table = HoodieTable.load(spark, path)
    table.upsert(spark.sql(spark_query("a", 2)))
    metadata_table = MetadataTable.of(table.table.storage, table.table.config)
    assert metadata_table is not None
    assert set(metadata_table.indexed_columns) > {"price", "day", "at", "raw", "single"}

    def read(where: str) -> list[list[str]]:
        told = {"path": path, "columns": ["id"], "options": WITH_IT, "where": where}
        return sorted(jvm.ask("read", **told).result(600))

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
