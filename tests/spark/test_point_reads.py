"""Reads by record key: where an option asks for it, only the file groups are read that the record index names."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import shared_table

from hudi_locks.spark import HoodieTable
from hudi_locks.spark.reading import point_reads
from hudi_locks.spark.reading.point_reads import list_wanted_keys
from hudi_locks.spark.reading.reader import Reader
from hudi_locks.table import RECORD_KEY, AllOf, AnyOf, Comparison, TableConfig

pytestmark = pytest.mark.spark

COLUMNS = "id string, region string, ts long, value double, label string"
ASKED = {"hoodie.metadata.record.index.enable": "true"}
OPTIONS = {**shared_table.SHARED, "hoodie.index.type": "RECORD_INDEX", "hoodie.clean.failed.writes.policy": "LAZY"}
PLACES = {"a": "eu", "c": "us", "d": "us", "e": "eu", "n": "new"}


@pytest.fixture(params=["v9_record_index", "v9_mor_record_index"], ids=["copy on write", "merge on read"])
def load(spark: Any, golden: Any, request: pytest.FixtureRequest) -> Callable[..., HoodieTable]:
    """With a file group in each of three partitions."""
    base = golden(request.param).base

    def make(**changes: str) -> HoodieTable:
        options = {**OPTIONS, **ASKED, **{key.replace("__", "."): value for key, value in changes.items()}}
        return HoodieTable.load(spark, base, options=options)

    return make


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Partitions of the slices that were read since."""
    found: list[str] = []
    merge = Reader._merge

    def spy(self: Reader, slices: Any, *given: Any, **more: Any) -> Any:
        found.extend(piece.partition.removeprefix("region=") for piece in slices)
        return merge(self, slices, *given, **more)

    monkeypatch.setattr(Reader, "_merge", spy)
    return found


def show(table: HoodieTable, where: str, **how: Any) -> str:
    return "".join(sorted(row["id"] for row in table.read(where=where, **how).collect()))


@pytest.mark.parametrize(
    ("where", "shown", "partitions"),
    [
        ("id = 'a'", "a", {"eu"}),
        ("id in ('a', 'd', 'gone')", "ad", {"eu", "us"}),
        (f"{RECORD_KEY} = 'n'", "n", {"new"}),
        ("id = 'gone'", "", set()),
        ("(id = 'a' or id = 'c') and ts > 0 and id <> 'c'", "a", {"eu", "us"}),
        ("id = 'a' and region = 'us'", "", set()),
        ("id = 'a' and id in ('c', 'd')", "", set()),
        ("id = 'a' or ts < 0", "a", {"eu", "us", "new"}),
        ("not (id = 'a')", "cden", {"eu", "us", "new"}),
        ("upper(id) = 'A'", "a", {"eu", "us", "new"}),
    ],
)
def test_only_the_file_groups_are_read_that_have_the_keys(
    load: Any, chosen: list[str], where: str, shown: str, partitions: set[str]
) -> None:
    assert show(load(), where) == shown
    assert set(chosen) == partitions


def test_without_the_option_the_index_is_not_asked(load: Any, chosen: list[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(point_reads, "find_groups", None)
    for off in (*ASKED, "hoodie.metadata.enable", "hoodie.enable.data.skipping"):
        chosen.clear()
        assert show(load(**{off: "false"}), "id = 'a'") == "a"
        assert set(chosen) >= {"eu", "us", "new"}


def test_a_read_of_the_past_does_not_go_by_what_is_now(load: Any) -> None:
    table = load(**{"hoodie.record.index.update.partition.path": "true"})
    moment = table.table.timeline().completed()[-1].completion
    table.upsert(table.spark.createDataFrame([("a", "us", 99, 1.0, "moved")], COLUMNS))
    assert [row["region"] for row in table.read(where="id = 'a'").collect()] == ["us"]
    assert [row["region"] for row in table.as_of(moment, where="id = 'a'").collect()] == ["eu"]


def test_some_partitions_are_read_by_it_too(load: Any, chosen: list[str]) -> None:
    assert show(load(), "id in ('a', 'c')", partitions=["region=us", "region=new"]) == "c"
    assert set(chosen) == {"us"}


def test_what_was_written_since_the_snapshot_counts_for_nothing(
    load: Any, chosen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index knows where a row came to, and the snapshot has it where it was."""
    table, other = load(), load(**{"hoodie.record.index.update.partition.path": "true"})
    find = Reader._find_rows

    def find_late(self: Reader, *given: Any) -> Any:
        monkeypatch.setattr(Reader, "_find_rows", find)
        other.upsert(other.spark.createDataFrame([("a", "new", 99, 1.0, "moved")], COLUMNS))
        return find(self, *given)

    monkeypatch.setattr(Reader, "_find_rows", find_late)
    assert [row["region"] for row in table.read(where="id = 'a'").collect()] == ["eu"]
    assert {"eu", "us", "new"} <= set(chosen)


def test_a_damaged_index_is_done_without_and_told(
    load: Any, chosen: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    table = load()
    folder = ".hoodie/metadata/record_index"
    for name in table.table.storage.list_names(folder):
        if ".log." in name:
            table.table.storage.replace(f"{folder}/{name}", b"damaged")
    with caplog.at_level(logging.WARNING):
        assert show(table, "id = 'a'") == "a"
    assert set(chosen) == {"eu", "us", "new"}
    assert "are not looked up in its record index" in caplog.text


SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("share", pa.float64()), ("day", pa.string())])


def config(*fields: str, partitions: tuple[str, ...] = ("day",)) -> TableConfig:
    kind = "SIMPLE" if len(fields) + len(partitions) <= 2 else "COMPLEX"
    return TableConfig("t", fields, partitions, extra={"hoodie.table.keygenerator.type": kind})


@pytest.mark.parametrize(
    ("table", "condition", "keys"),
    [
        (config("id"), Comparison("id", "=", 7), {"7"}),
        (config("id"), Comparison("id", ">", 7), None),
        (config("id"), Comparison("id", "=", True), None),
        (config("name"), Comparison("name", "=", ""), None),
        (config("share"), Comparison("share", "=", 1.5), None),
        (config("name"), AnyOf((Comparison("name", "=", "a"), Comparison("id", "=", 1))), None),
        (config("name"), AllOf((Comparison("name", "=", "a"), Comparison("name", "=", "b"))), set()),
        (config("id", "name"), AllOf((Comparison("name", "=", "a"), Comparison("id", "=", 1))), {"id:1,name:a"}),
        (config("id", "name"), Comparison("id", "=", 1), None),
        (config("id", partitions=("day", "name")), Comparison("id", "=", 1), None),
        (config("id", "name"), Comparison(RECORD_KEY, "=", "id:1,name:a"), {"id:1,name:a"}),
        (config(), Comparison("id", "=", 1), None),
        (config("id"), AnyOf(tuple(Comparison("id", "=", number) for number in range(10_001))), None),
    ],
)
def test_which_keys_a_condition_leaves(table: TableConfig, condition: Any, keys: set[str] | None) -> None:
    assert list_wanted_keys(condition, table, SCHEMA) == keys
