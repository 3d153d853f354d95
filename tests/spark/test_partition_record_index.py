"""A record index by partition: made here, kept by every write, and gone by for writes and for reads of keys."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table
from record_places import list_places_by_partition, read_index_by_partition

from hudi_locks.errors import ConfigError, HoodieEarlyConflictDetectionException, UnsupportedTable, WriteError
from hudi_locks.metadata_table import find_keys
from hudi_locks.services import downgrade_table
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.reading import point_reads
from hudi_locks.spark.reading.reader import Reader
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

COLUMNS = "id string, region string, ts long"
LEAST = "hoodie.metadata.record.level.index.min.filegroup.count"
MOST = "hoodie.metadata.record.level.index.max.filegroup.count"
ASKED = {"hoodie.metadata.record.level.index.enable": "true"}
VERSION = "hoodie.write.table.version"
OPTIONS = {
    **shared_table.SHARED,
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}
MAKING = {**ASKED, "hoodie.metadata.enable": "true"}
SIMPLE = {"hoodie.index.type": "SIMPLE"}
EARLY = {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}
FOLDER = ".hoodie/metadata/record_index"
BY_PARTITION: list[tuple[str, list[tuple[str, str]], list[str]]] = [
    ("id in ('a', 'd') and region = 'us'", [("us", "a")], ["us"]),
    ("id = 'a' and region in ('us', 'new')", [("us", "a")], ["new", "us"]),
    ("id = 'a' and region > 'eu' and region <> 'new'", [("us", "a")], ["new", "us"]),
    ("id = 'a' and (region = 'eu' or ts < 0)", [("eu", "a")], ["eu", "new", "us"]),
    ("id = 'a' and (region = 'eu' or region = 'none')", [("eu", "a")], ["eu"]),
    ("id = 'a' and region = 'none'", [], []),
    ("id = 'a' and region is null", [], []),
    ("id = 'a' and upper(region) = 'US'", [("us", "a")], ["eu", "new", "us"]),
]
"""Conditions, what they find, and the partitions of the file groups of the index that are asked."""


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def create(spark: Any, path: str, request: pytest.FixtureRequest) -> Callable[..., HoodieTable]:
    def make(**more: str) -> HoodieTable:
        names = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
        options = {**OPTIONS, VERSION: "9", **more}
        return HoodieTable.create(spark, path, table_type=request.param, options=options, **names)

    return make


@pytest.fixture
def rows(spark: Any) -> Callable[..., Any]:
    return lambda *rows: spark.createDataFrame(list(rows), COLUMNS).coalesce(1)


def load(table: HoodieTable, **more: str) -> HoodieTable:
    return HoodieTable.load(table.spark, table.path, options={**OPTIONS, **more})


def check(table: HoodieTable, *expected: tuple[str, str, int]) -> None:
    """These rows are there, and the index says where each is."""
    found = load(table)
    assert sorted(tuple(row) for row in found.read().select("region", "id", "ts").collect()) == sorted(expected)
    assert read_index_by_partition(found) == list_places_by_partition(found)
    report = verify_table(found.table.storage, reads_keys=True)
    assert (report.damages, report.checked["record keys in the metadata table"]) == ((), len(expected))


def list_groups(table: HoodieTable) -> set[str]:
    names = table.table.storage.list_names(FOLDER)
    return {name.lstrip(".").partition("_")[0] for name in names if name.endswith(".hfile") or ".log." in name}


def test_a_key_is_once_in_each_partition_and_writes_find_it_by_the_index(
    create: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(**MAKING)
    table.upsert(rows(("a", "eu", 1), ("b", "eu", 1), ("c", "us", 1)))
    monkeypatch.setattr("hudi_locks.spark.index.simple_index.search_files", None)  # no data file is read for keys
    monkeypatch.setattr("hudi_locks.spark.index.simple_index.read_keys", None)
    result = load(table, **MAKING).upsert(rows(("a", "us", 2), ("a", "eu", 2), ("n", "new", 2), ("a", "new", 2)))
    assert (result.rows_updated, result.rows_inserted, result.warnings) == (1, 3, ())
    check(table, ("eu", "a", 2), ("eu", "b", 1), ("new", "a", 2), ("new", "n", 2), ("us", "a", 2), ("us", "c", 1))
    load(table).delete(rows(("a", "us", 9), ("b", "us", 9), ("n", "none", 9)))
    load(table).insert(rows(("i", "ins", 3)))
    load(table).bulk_insert(rows(("k", "us", 3)))
    check(
        table,
        ("eu", "a", 2),
        ("eu", "b", 1),
        ("ins", "i", 3),
        ("new", "a", 2),
        ("new", "n", 2),
        ("us", "c", 1),
        ("us", "k", 3),
    )
    assert {f"record-index-{path}-0000-0" for path in ("eu", "us", "new", "ins")} == list_groups(table)


def test_file_groups_end_and_the_index_follows(create: Any, rows: Any) -> None:
    table = create(**MAKING, **{LEAST: "2"})
    table.upsert(rows(("a", "eu", 1), ("b", "eu", 1), ("a", "us", 1), ("c", "us", 1)))
    writer = load(table, **{LEAST: "3", "hoodie.metadata.compact.max.delta.commits": "2"})
    writer.insert_overwrite(rows(("b", "eu", 2), ("o", "eu", 2)))
    check(table, ("eu", "b", 2), ("eu", "o", 2), ("us", "a", 1), ("us", "c", 1))
    writer.delete_partitions(["us"])
    check(table, ("eu", "b", 2), ("eu", "o", 2))
    writer.upsert(rows(("a", "us", 3), ("b", "us", 3), ("n", "new", 3)))
    check(table, ("eu", "b", 2), ("eu", "o", 2), ("new", "n", 3), ("us", "a", 3), ("us", "b", 3))
    writer.upsert(rows(("b", "eu", 4)))
    (writer.compaction if table.table.is_merge_on_read else writer.clustering).run()
    check(table, ("eu", "b", 4), ("eu", "o", 2), ("new", "n", 3), ("us", "a", 3), ("us", "b", 3))
    writer.upsert(rows(("b", "us", 5), ("b", "eu", 5), ("o", "us", 5)))
    check(table, ("eu", "b", 5), ("eu", "o", 2), ("new", "n", 3), ("us", "a", 3), ("us", "b", 5), ("us", "o", 5))
    sizes = {"eu": 2, "us": 2, "new": 3}
    assert list_groups(table) == {f"record-index-{path}-{n:04}-0" for path in sizes for n in range(sizes[path])}
    assert any(name.endswith(".hfile") for name in table.table.storage.list_names(FOLDER))


def test_one_is_made_of_the_rows_that_are_there_and_made_anew_as_it_was(create: Any, rows: Any) -> None:
    table = create()
    table.upsert(rows(("a", "eu", 1), ("a", "us", 1)))
    with pytest.warns(UserWarning, match="has no record index: keys are looked for in the files of their partitions"):
        load(table).upsert(rows(("b", "us", 1)))
    load(table, **SIMPLE).upsert(rows(("b", "us", 2), ("c", "new", 2)))
    done = load(table, **ASKED, **SIMPLE, **{LEAST: "2", MOST: "2"}).services.make_metadata_table()
    assert done is not None
    assert (done.parts[-1], done.keys) == ("record_index", 4)
    assert list_groups(table) == {f"record-index-{path}-{n:04}-0" for path in ("eu", "us", "new") for n in range(2)}
    check(table, ("eu", "a", 1), ("new", "c", 2), ("us", "a", 1), ("us", "b", 2))
    before = load(table).upsert(rows(("a", "us", 3), ("a", "new", 3)))
    assert load(table).services.make_metadata_table(anew=True) is not None
    check(table, ("eu", "a", 1), ("new", "a", 3), ("new", "c", 2), ("us", "a", 3), ("us", "b", 2))
    load(table).upsert(rows(("d", "late", 4)))
    assert load(table).services.restore(before.instant).indexed_keys == 5
    check(table, ("eu", "a", 1), ("new", "a", 3), ("new", "c", 2), ("us", "a", 3), ("us", "b", 2))
    assert set(list_groups(table)) == {f"record-index-{path}-0000-0" for path in ("eu", "us", "new")}
    with pytest.raises(UnsupportedTable, match="the key 'a' is in more than one row, and"):
        load(table, **{"hoodie.metadata.record.index.enable": "true"}).services.make_metadata_table(anew=True)


def test_each_kind_of_index_names_the_other(create: Any, rows: Any) -> None:
    table = create(**MAKING)
    table.upsert(rows(("a", "eu", 1)))
    for name in ("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"):
        with pytest.raises(ConfigError, match=r"hoodie.index.type"):
            load(table, **{"hoodie.index.type": name}).upsert(rows(("a", "us", 2)))
    if table.table.is_merge_on_read:
        with pytest.raises(ConfigError, match=r"SIMPLE does not keep the record index.*RECORD_LEVEL_INDEX"):
            load(table, **SIMPLE).upsert(rows(("a", "us", 2)))
    else:
        load(table, **SIMPLE).upsert(rows(("a", "us", 2), ("a", "eu", 2)))
        check(table, ("eu", "a", 2), ("us", "a", 2))


def test_an_index_of_the_whole_table_is_no_index_by_partition(create: Any, rows: Any) -> None:
    table = create(**{"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"})
    table.upsert(rows(("a", "eu", 1)))
    with pytest.raises(ConfigError, match=r"has a record index of the whole table.*set hoodie.index.type=RECORD_INDEX"):
        load(table).upsert(rows(("a", "us", 2)))


def test_reads_of_keys_open_what_the_index_names(create: Any, rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(**MAKING)
    table.upsert(rows(("a", "eu", 1), ("b", "eu", 1), ("a", "us", 1), ("c", "us", 1), ("d", "new", 1)))
    opened, asked, find = list[str](), list[str](), Reader._find_rows

    def spy(self: Reader, *given: Any) -> Any:
        found = find(self, *given)
        opened.extend(sorted(piece.partition for piece in found))
        return found

    def spy_on_index(storage: Any, piece: Any, keys: Any) -> Any:
        asked.append(piece.file_id)
        asked.sort()
        return find_keys(storage, piece, keys)

    monkeypatch.setattr(Reader, "_find_rows", spy)
    monkeypatch.setattr(point_reads, "find_keys", spy_on_index)

    def show(where: str) -> list[tuple[str, str]]:
        opened.clear()
        asked.clear()
        return sorted((row["region"], row["id"]) for row in load(table, **ASKED).read(where=where).collect())

    assert show("id = 'a'") == [("eu", "a"), ("us", "a")]
    assert opened == ["eu", "us"]
    assert asked == [f"record-index-{path}-0000-0" for path in ("eu", "new", "us")]
    assert show("id = 'z'") == []
    assert opened == []
    asked.clear()
    only = load(table, **ASKED).read(where="id = 'a'", partitions=["us"])
    assert [row["region"] for row in only.collect()] == ["us"]
    assert asked == ["record-index-us-0000-0"]
    for where, found, paths in BY_PARTITION:
        assert show(where) == found, where
        assert asked == [f"record-index-{path}-0000-0" for path in paths], where


def test_a_write_that_meets_an_earlier_one_gives_up_before_it_brings_a_partition(
    create: Any, rows: Any, after_job: Callable[..., None]
) -> None:
    table = create(**MAKING)
    table.upsert(rows(("a", "eu", 1), ("b", "eu", 1), ("c", "us", 1)))
    ours, theirs = load(table, **EARLY), load(table, **EARLY, **{LEAST: "3"})

    def meet() -> None:
        with pytest.raises(HoodieEarlyConflictDetectionException) as caught:
            theirs.upsert(rows(("b", "eu", 2), ("n", "new", 2)))
        assert caught.value.partition == "eu"
        theirs.services.sweep()

    after_job(meet)
    ours.upsert(rows(("a", "eu", 2), ("a", "us", 2)))
    assert list_groups(table) == {f"record-index-{path}-0000-0" for path in ("eu", "us")}
    assert not table.table.storage.list_staged()
    assert ours.upsert(rows(("n", "new", 3), ("b", "eu", 3))).rows_inserted == 1
    check(table, ("eu", "a", 2), ("eu", "b", 3), ("new", "n", 3), ("us", "a", 2), ("us", "c", 1))


@pytest.mark.parametrize("early", [{}, EARLY], ids=["", "early"])
def test_writers_that_bring_a_partition_at_once_are_both_there_if_they_agree_on_its_file_groups(
    create: Any, rows: Any, after_job: Callable[..., None], early: dict[str, str]
) -> None:
    table = create(**MAKING)
    table.upsert(rows(("a", "eu", 1)))
    writer = load(table, **early, **{LEAST: "2"})
    after_job(lambda: load(table, **early, **{LEAST: "2"}).upsert(rows(("m", "new", 2), ("a", "new", 2))))
    writer.upsert(rows(("n", "new", 2), ("b", "new", 2)))
    after_job(lambda: load(table, **early, **{LEAST: "2"}).upsert(rows(("m", "late", 3))))
    with pytest.raises(WriteError, match=r"another number of file groups.*hoodie.metadata.record.level.index"):
        load(table, **early, **{LEAST: "3"}).upsert(rows(("n", "late", 3)))
    check(table, ("eu", "a", 1), ("late", "m", 3), *(("new", key, 2) for key in "abmn"))
    load(table, **early, **{LEAST: "3"}).upsert(rows(("n", "late", 4), ("m", "late", 4)))
    check(table, ("eu", "a", 1), ("late", "m", 4), ("late", "n", 4), *(("new", key, 2) for key in "abmn"))


def test_what_a_failed_write_brought_is_begun_anew_by_the_next(
    create: Any, rows: Any, after_job: Callable[..., None]
) -> None:
    """One that gives up by itself, and one that dies and is rolled back by others."""
    table = create(**MAKING)
    table.upsert(rows(("a", "eu", 1)))
    failing = load(table, **{LEAST: "3"})

    def fail() -> None:
        raise RuntimeError("enough")

    def bury() -> None:
        for file in Path(table.path, ".hoodie/.heartbeat").iterdir():
            os.utime(file, (1_600_000_000, 1_600_000_000))
        load(table, **{LEAST: "2"}).upsert(rows(("n", "new", 3), ("m", "new", 3)))

    after_job(fail)
    with pytest.raises(RuntimeError, match="enough"):
        failing.upsert(rows(("n", "new", 2), ("a", "eu", 2), ("k", "eu", 2)))
    check(table, ("eu", "a", 1))
    assert list_groups(table) == {"record-index-eu-0000-0"}
    after_job(bury)
    with pytest.raises(WriteError, match="rolled"):
        failing.upsert(rows(("n", "new", 2), ("a", "eu", 2), ("z", "other", 2)))
    check(table, ("eu", "a", 1), ("new", "m", 3), ("new", "n", 3))
    assert list_groups(table) == {"record-index-eu-0000-0", *(f"record-index-new-000{n}-0" for n in range(2))}
    assert failing.upsert(rows(("n", "new", 4), ("x", "new", 4), ("z", "other", 4))).rows_inserted == 2
    check(table, ("eu", "a", 1), ("new", "m", 3), ("new", "n", 4), ("new", "x", 4), ("other", "z", 4))
    assert "record-index-other-0002-0" in list_groups(table)
    assert not table.table.storage.list_staged()


def test_a_downgrade_leaves_it_out_and_says_so(create: Any, rows: Any) -> None:
    table = create(**MAKING)
    table.upsert(rows(("a", "eu", 1), ("a", "us", 1)))
    done = downgrade_table(table.path, OPTIONS, to=8)
    assert "record_index" in done.dropped
    assert done.made == ("files", "column_stats", "partition_stats")
    assert "the record index by partition is gone" in done.warnings[0]
    with pytest.raises(UnsupportedTable, match=r"do not know that kind.*upgrade --to 9"):
        load(table, **ASKED, **SIMPLE).services.make_metadata_table(anew=True)


def test_it_is_refused_before_a_write_where_releases_do_not_know_it(create: Any, rows: Any) -> None:
    table = create(**MAKING, **{VERSION: "8"})
    with pytest.raises(UnsupportedTable, match=r"make the table with hoodie.write.table.version=9"):
        table.upsert(rows(("a", "eu", 1)))
    assert table.table.timeline().instants == ()
