"""The record index of tables that JVM Hudi 1.2.0 made: keys are found by it, and it is told what a write brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shared_table
from record_places import list_places, read_index

from hudi_locks.errors import BadInput, ConfigError, UnsupportedTable
from hudi_locks.services import drop_metadata_table
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

COLUMNS = "id string, region string, ts long, value double, label string"
OPTIONS = {
    **shared_table.SHARED,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "1",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}
PROPERTIES = ".hoodie/hoodie.properties"
MOVING = {"hoodie.record.index.update.partition.path": "true"}


@pytest.fixture(params=["v9_record_index", "v9_mor_record_index"], ids=["copy on write", "merge on read"])
def load(spark: Any, golden: Any, request: pytest.FixtureRequest) -> Callable[..., HoodieTable]:
    base = golden(request.param).base

    def make(**changes: str) -> HoodieTable:
        return HoodieTable.load(spark, base, options={**OPTIONS, **changes})

    return make


@pytest.fixture
def rows(spark: Any) -> Callable[..., Any]:
    return lambda *rows: spark.createDataFrame(list(rows), COLUMNS).coalesce(1)


def serve(table: HoodieTable) -> None:
    """Small file groups end and others begin, or logs become base files."""
    (table.compaction if table.table.is_merge_on_read else table.clustering).run()


def name_partitions(table: HoodieTable) -> dict[str, str]:
    return {key: path.removeprefix("region=") for key, (path, _) in list_places(table).items()}


def test_keys_are_found_without_a_look_at_data_files_and_the_index_is_told(
    load: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_locks.spark.index.global_index.search_files", None)
    table = load()
    result = table.upsert(rows(("a", "us", 9, 1.0, "ours"), ("b", "us", 9, 1.0, "back"), ("x", "x", 9, 1.0, "new")))
    assert (result.rows_updated, result.rows_inserted) == (1, 2)
    assert name_partitions(table) == {"a": "eu", "b": "us", "c": "us", "d": "us", "e": "eu", "n": "new", "x": "x"}
    assert read_index(table) == list_places(table)
    table.delete(rows(("a", "any", 9, 1.0, ""), ("x", "any", 9, 1.0, "")))
    assert sorted(read_index(table)) == ["b", "c", "d", "e", "n"]
    table.upsert(rows(("n", "eu", 9, 1.0, "ours"), ("a", "us", 9, 1.0, "again")))
    assert read_index(table) == list_places(table)
    assert name_partitions(table)["a"] == "us"


def test_what_moves_or_ends_is_told(load: Any, rows: Any) -> None:
    table = load(**MOVING)
    table.upsert(rows(("a", "us", 9, 1.0, "moved"), ("c", "eu", 9, 1.0, "moved"), ("d", "eu", 0, 1.0, "old")))
    assert name_partitions(table) == {"a": "us", "c": "eu", "d": "us", "e": "eu", "n": "new"}
    assert read_index(table) == list_places(table)
    table.insert_overwrite(rows(("a", "us", 10, 1.0, "over"), ("z", "us", 10, 1.0, "over")))
    assert sorted(read_index(table)) == ["a", "c", "e", "n", "z"]
    serve(table)
    assert read_index(table) == list_places(table)
    table.delete_partitions(["region=us"])
    assert sorted(read_index(table)) == ["c", "e", "n"]
    table.insert_overwrite_table(rows(("q", "q", 1, 1.0, "only")))
    assert read_index(table) == list_places(table)


def test_the_index_is_compacted_with_the_other_parts_of_the_metadata_table(load: Any, rows: Any) -> None:
    table = load(**{"hoodie.metadata.compact.max.delta.commits": "2"})
    table.upsert(rows(("a", "eu", 9, 1.0, "ours"), ("x", "us", 9, 1.0, "ours")))
    table.delete(rows(("c", "us", 9, 1.0, "")))
    names = table.table.storage.list_names(".hoodie/metadata/record_index")
    assert [name for name in names if name.endswith(".hfile")]
    assert read_index(table) == list_places(table)
    table.upsert(rows(("c", "eu", 10, 1.0, "again"), ("x", "eu", 10, 1.0, "ours")))
    assert {key: path for key, path in name_partitions(table).items() if key in "cx"} == {"c": "eu", "x": "us"}


def test_a_row_without_a_key_is_refused_as_ever(load: Any, rows: Any) -> None:
    with pytest.raises(BadInput, match="have no record key"):
        load().upsert(rows((None, "eu", 9, 1.0, "ours"), ("b", "eu", 9, 1.0, "ours")))


@pytest.mark.parametrize("other", ["upsert", "move", "serve", "delete"])
def test_what_another_writer_does_meanwhile_leaves_one_row_for_a_key(
    load: Any, rows: Any, after_job: Callable[..., None], other: str
) -> None:
    table, theirs = load(), load(**MOVING, **{"hoodie.parquet.small.file.limit": "0"})
    theirs.bulk_insert(rows(("k", "new", 5, 1.0, "theirs")))
    actions: dict[str, Callable[[], Any]] = {
        "upsert": lambda: theirs.upsert(rows(("n", "new", 9, 9.0, "theirs"), ("m", "eu", 9, 9.0, "theirs"))),
        "move": lambda: theirs.upsert(rows(("n", "us", 9, 9.0, "theirs"))),
        "serve": lambda: serve(theirs),
        "delete": lambda: theirs.delete(rows(("n", "new", 9, 9.0, ""))),
    }
    after_job(actions[other])
    result = table.upsert(rows(("n", "new", 10, 10.0, "ours"), ("m", "us", 10, 10.0, "ours")))
    assert result.retries == int(other != "serve" or not table.table.is_merge_on_read)
    labels = {row["id"]: row["label"] for row in table.read().select("id", "label").collect()}
    assert (labels["n"], labels["m"]) == ("ours", "ours")
    assert read_index(table) == list_places(table)


def test_a_write_with_another_index_keeps_the_record_index_too(load: Any, rows: Any) -> None:
    table = load(**{"hoodie.index.type": "GLOBAL_SIMPLE" if load().table.is_merge_on_read else "SIMPLE"})
    table.upsert(rows(("a", "eu", 9, 1.0, "ours"), ("x", "us", 9, 1.0, "ours")))
    table.bulk_insert(rows(("y", "us", 9, 1.0, "ours")))
    assert read_index(table) == list_places(table)


@pytest.mark.parametrize("load", ["v9_mor_record_index"], indirect=True, ids=["merge on read"])
def test_an_index_that_does_not_see_what_logs_take_out_is_refused(load: Any, rows: Any) -> None:
    table = load(**{"hoodie.index.type": "SIMPLE"})
    before = table.table.timeline().paths
    with pytest.raises(ConfigError, match="SIMPLE does not keep the record index"):
        table.bulk_insert(rows(("y", "us", 9, 1.0, "ours")))
    assert table.table.timeline().paths == before


@pytest.mark.parametrize("load", ["v9_mor_record_index"], indirect=True, ids=["merge on read"])
def test_an_index_that_was_made_since_the_table_was_loaded_is_told(load: Any, rows: Any) -> None:
    storage = load().table.storage
    known = storage.read(PROPERTIES)
    storage.replace(PROPERTIES, known.replace(b",record_index", b""))
    table = load()
    with pytest.warns(UserWarning, match="has no record index"):
        table.upsert(rows(("a", "eu", 9, 1.0, "before")))
    storage.replace(PROPERTIES, known)
    with pytest.raises(UnsupportedTable, match="was made since it was loaded: load the table again"):
        table.upsert(rows(("a", "eu", 10, 1.0, "ours")))
    assert load().upsert(rows(("a", "eu", 10, 1.0, "ours"))).rows_updated == 1


def test_an_index_that_was_dropped_since_the_table_was_loaded_is_done_without(load: Any, rows: Any) -> None:
    table = load()
    table.upsert(rows(("a", "eu", 9, 1.0, "before")))
    assert drop_metadata_table(table.path, OPTIONS, parts=["record_index"]) == ("record_index",)
    table.upsert(rows(("a", "eu", 10, 1.0, "ours"), ("n", "new", 10, 1.0, "ours")))
    assert name_partitions(table) == {"a": "eu", "c": "us", "d": "us", "e": "eu", "n": "new"}


def test_a_restore_makes_the_index_anew(load: Any, rows: Any) -> None:
    table = load()
    written = table.upsert(rows(("a", "eu", 9, 1.0, "ours"), ("n", "us", 9, 1.0, "ours")))
    there = list_places(table)
    table.upsert(rows(("m", "new", 10, 1.0, "ours"), ("n", "us", 10, 1.0, "ours")))
    table.delete(rows(("c", "us", 10, 1.0, "")))
    done = table.services.restore(written.instant)
    assert (done.dropped, done.indexed_keys) == (("record_index",), len(there))
    assert read_index(load()) == list_places(load()) == there
    load().upsert(rows(("n", "us", 11, 1.0, "ours"), ("m", "eu", 11, 1.0, "ours")))
    assert read_index(load()) == list_places(load())


def test_without_a_record_index_keys_are_looked_for_everywhere_with_a_warning(
    spark: Any, path: str, rows: Any, rows_of: Callable[..., list[tuple[Any, ...]]]
) -> None:
    table = HoodieTable.create(
        spark, path, name="t", record_key="id", partition_by="region", ordering="ts", options=OPTIONS
    )
    with pytest.warns(UserWarning, match="has no record index"):
        table.upsert(rows(("a", "eu", 1, 1.0, "x")))
    table.upsert(rows(("a", "us", 2, 2.0, "y")))
    assert rows_of(table, "id", "label") == [("a", "y")]
