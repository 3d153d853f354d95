"""Tables without a column for the record key: each row that is inserted gets a key of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import BadInput, ConfigError, NotATable
from hudi_locks.spark import HoodieTable, write

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "partitionpath.field": "region",
    WRITE + "operation": "insert",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def frame(spark: Any) -> Callable[..., Any]:
    def make(*ids: str, tasks: int = 2) -> Any:
        rows = [(name, "eu" if name < "m" else "us", 1) for name in ids]
        return spark.createDataFrame(rows, "id string, region string, ts long").repartition(tasks)

    return make


def read(spark: Any, path: str) -> tuple[list[str], set[str]]:
    """The ids that are there, and the keys."""
    rows = HoodieTable.load(spark, path).read(meta_columns=True).select("id", "_hoodie_record_key").collect()
    return sorted(row["id"] for row in rows), {row["_hoodie_record_key"] for row in rows}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_equal_rows_are_there_as_often_as_they_were_inserted(
    spark: Any, frame: Any, path: str, table_type: str, operation: str
) -> None:
    options = {**OPTIONS, WRITE + "table.type": table_type, WRITE + "operation": operation}
    write(frame("a", "a", "b", "x"), path, options)
    write(frame("a", "y"), path, options, mode="append")
    ids, keys = read(spark, path)
    assert ids == ["a", "a", "a", "b", "x", "y"]
    assert len(keys) == 6


def test_services_and_overwrites_leave_each_key(spark: Any, frame: Any, path: str) -> None:
    write(frame("a", "a", "b", "x"), path, OPTIONS)
    write(frame("c", "y"), path, OPTIONS, mode="append")
    table = HoodieTable.load(spark, path, options={"hoodie.clustering.plan.strategy.small.file.limit": "1000000"})
    before = read(spark, path)
    table.clustering.run()
    assert read(spark, path) == before
    table.insert_overwrite(frame("d", "d"))
    ids, keys = read(spark, path)
    assert (ids, len(keys)) == (["d", "d", "x", "y"], 4)


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_what_looks_for_keys_is_refused(spark: Any, frame: Any, path: str, operation: str) -> None:
    write(frame("a"), path, OPTIONS)
    with pytest.raises(BadInput, match=f"{operation} looks for rows by their record key"):
        getattr(HoodieTable.load(spark, path), operation)(frame("a"))
    dropping = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
    with pytest.raises(BadInput, match="insert looks for rows by their record key"):
        HoodieTable.load(spark, path, options=dropping).insert(frame("a"))
    assert read(spark, path)[0] == ["a"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({WRITE + "operation": "upsert"}, "recordkey.field is required"),
        ({WRITE + "precombine.field": "ts"}, "a record key is not given"),
        ({"hoodie.index.type": "BUCKET"}, "the table names no key column"),
    ],
)
def test_what_needs_a_key_column_is_refused_before_a_table_is_made(
    spark: Any, frame: Any, path: str, changes: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        write(frame("a"), path, {**OPTIONS, **changes})
    with pytest.raises(NotATable):
        HoodieTable.load(spark, path)
