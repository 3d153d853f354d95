"""A record index that this package makes: of a new table's first rows, of a table that has many, and anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shared_table
from record_places import list_places, read_index

from hudi_locks.errors import UnsupportedTable
from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

COLUMNS = "id string, region string, ts long"
ASKED = {"hoodie.metadata.record.index.enable": "true"}
BY_INDEX = {"hoodie.index.type": "RECORD_INDEX"}
OPTIONS = {
    **shared_table.SHARED,
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}
FOLDER = ".hoodie/metadata/record_index"


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def create(spark: Any, path: str, request: pytest.FixtureRequest) -> Callable[..., HoodieTable]:
    def make(**more: str) -> HoodieTable:
        names = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
        options = {**OPTIONS, **{key.replace("__", "."): value for key, value in more.items()}}
        return HoodieTable.create(spark, path, table_type=request.param, options=options, **names)

    return make


@pytest.fixture
def rows(spark: Any) -> Callable[..., Any]:
    return lambda *rows: spark.createDataFrame(list(rows), COLUMNS).coalesce(1)


def load(table: HoodieTable, **more: str) -> HoodieTable:
    return HoodieTable.load(table.spark, table.path, options={**OPTIONS, **more})


def check(table: HoodieTable, **partitions: str) -> None:
    """The index says where each row is, and each row is in this partition."""
    found = load(table)
    assert {key: path.removeprefix("region=") for key, (path, _) in list_places(found).items()} == partitions
    assert read_index(found) == list_places(found)
    report = verify_table(found.table.storage, reads_keys=True)
    assert (report.damages, report.checked["record keys in the metadata table"]) == ((), len(partitions))


def list_groups(table: HoodieTable) -> set[str]:
    names = table.table.storage.list_names(FOLDER)
    return {name.lstrip(".").partition("_")[0] for name in names if name.endswith(".hfile") or ".log." in name}


def test_a_new_table_gets_one_with_its_metadata_table(create: Any, rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"hoodie__metadata__enable": "true", "hoodie__metadata__record__index__enable": "true"}
    table = create(**asked)
    table.upsert(rows(("a", "eu", 1), ("b", "us", 1)))
    monkeypatch.setattr("hudi_locks.spark.index.global_index.search_files", None)  # no data file is read for keys
    table = load(table, **ASKED, **BY_INDEX)
    result = table.upsert(rows(("a", "us", 2), ("c", "us", 2)))
    assert (result.rows_updated, result.rows_inserted, result.warnings) == (1, 1, ())
    check(table, a="eu", b="us", c="us")
    table.delete(rows(("b", "any", 9)))
    check(table, a="eu", c="us")


def test_a_table_with_rows_gets_one_and_writers_go_by_it(create: Any, rows: Any) -> None:
    table = create()
    table.upsert(rows(("a", "eu", 1), ("b", "us", 1), ("c", "us", 1)))
    table.upsert(rows(("a", "us", 2), ("d", "new", 2)))
    table.delete(rows(("c", "us", 9)))
    made = load(table, **ASKED, **{"hoodie.metadata.record.index.min.filegroup.count": "3"})
    done = made.services.make_metadata_table()
    assert done is not None
    assert (done.parts[-1], done.keys) == ("record_index", 3)
    assert list_groups(table) == {f"record-index-{number:04}-0" for number in range(3)}
    check(table, a="us", b="us", d="new")
    write_by_one_that_was_loaded_before(table, rows(("b", "us", 3)))
    check(table, a="us", b="us", d="new")
    load(table, **BY_INDEX).upsert(rows(("d", "us", 3), ("e", "eu", 3), ("c", "eu", 3)))
    check(table, a="us", b="us", c="eu", d="new", e="eu")


def write_by_one_that_was_loaded_before(table: HoodieTable, some: Any) -> None:
    """It keeps the index, or refuses to write where it cannot know what its logs take out."""
    if not table.table.is_merge_on_read:
        table.upsert(some)
        return
    with pytest.raises(UnsupportedTable, match="was made since it was loaded: load the table again"):
        table.upsert(some)


def test_one_that_is_damaged_is_made_anew_with_the_metadata_table(create: Any, rows: Any) -> None:
    table = create(hoodie__metadata__enable="true", hoodie__metadata__record__index__enable="true")
    table.insert(rows(("a", "eu", 1), ("b", "us", 1)))
    for name in table.table.storage.list_names(FOLDER):
        table.table.storage.delete(f"{FOLDER}/{name}")
    done = load(table).services.make_metadata_table(anew=True)
    assert done is not None
    assert (done.keys, done.lost) == (2, ())
    check(table, a="eu", b="us")


def test_a_restore_that_dies_leaves_none_and_one_that_repeats_it_goes_on(
    create: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(hoodie__metadata__enable="true", hoodie__metadata__record__index__enable="true")
    first = table.insert(rows(("a", "eu", 1), ("b", "us", 1)))
    load(table).upsert(rows(("b", "eu", 2), ("c", "us", 2)))
    with monkeypatch.context() as patched:
        patched.setattr("hudi_locks.services.restoring.drop_staged", None)
        with pytest.raises(TypeError):
            load(table).services.restore(first.instant)
    assert not load(table).table.config.has_record_index
    load(table).services.restore(first.instant)
    assert load(table, **ASKED).services.make_metadata_table(anew=True) is not None
    check(table, a="eu", b="us")


@pytest.mark.parametrize("create", ["COPY_ON_WRITE"], indirect=True)
def test_a_restore_goes_on_without_one_where_none_can_be_made(
    create: Any, rows: Any, caplog: pytest.LogCaptureFixture
) -> None:
    asked = {"hoodie__metadata__enable": "true", "hoodie__metadata__record__index__enable": "true"}
    table, simple = create(**asked, hoodie__index__type="SIMPLE"), {"hoodie.index.type": "SIMPLE"}
    table.insert(rows(("a", "eu", 1), ("b", "us", 1)))
    second = load(table, **simple).insert(rows(("a", "us", 2)))
    load(table, **simple).insert(rows(("c", "us", 3)))
    done = load(table, **simple).services.restore(second.instant)
    assert (done.dropped, done.indexed_keys) == (("record_index",), None)
    assert "goes on without a record index after a restore: no record index can be made" in caplog.text
    found = load(table, **simple)
    assert not found.table.config.has_record_index
    assert sorted(row.id for row in found.read().collect()) == ["a", "a", "b"]


def test_a_table_with_a_key_in_two_rows_gets_none_and_stays_as_it_is(create: Any, rows: Any) -> None:
    table = create(hoodie__metadata__enable="true", hoodie__index__type="SIMPLE")
    table.insert(rows(("a", "eu", 1), ("b", "us", 1)))
    table.insert(rows(("a", "us", 2)))
    storage = table.table.storage
    before = storage.read(".hoodie/hoodie.properties"), sorted(storage.list_names(".hoodie/metadata/files"))
    with pytest.raises(UnsupportedTable, match="no record index can be made: the key 'a' is in more") as caught:
        load(table, **ASKED, **{"hoodie.index.type": "SIMPLE"}).services.make_metadata_table(anew=True)
    assert caught.value.facts["keys"] == ["a"]
    assert before == (storage.read(".hoodie/hoodie.properties"), sorted(storage.list_names(".hoodie/metadata/files")))


def test_a_writer_whose_options_ask_for_one_is_told_once_that_there_is_none(create: Any, rows: Any) -> None:
    table = create(hoodie__metadata__record__index__enable="true")
    result = table.insert(rows(("a", "eu", 1)))
    [told] = [one for one in result.warnings if "record.index" in one]
    assert told.endswith(".enable=true, and the table has no metadata table: give hoodie.metadata.enable=true too")
    assert table.insert(rows(("b", "eu", 1))).warnings == ()
    assert load(table).services.make_metadata_table() is not None
    again = load(table, **ASKED).insert(rows(("c", "eu", 1))).warnings
    assert [one.partition(": ")[2] for one in again] == [
        "make it anew with hudi-locks metadata rebuild, with the same options"
    ]
