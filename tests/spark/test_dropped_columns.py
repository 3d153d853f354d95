"""Tables whose files lack the partition columns: folders tell them, as texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.spark import HoodieTable, write
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
DROPS = {"hoodie.datasource.write.drop.partition.columns": "true"}
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "region,day",
    WRITE + "precombine.field": "ts",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
    **DROPS,
}
SCHEMA = "region string, id string, day int, ts long, value double"
ROWS = [("eu", "a", 5, 1, 1.0), ("us", "b", 7, 1, 2.0), (None, "c", 5, 1, 3.0)]
Rows = list[tuple[Any, ...]]


@pytest.fixture
def put(spark: Any, path: str) -> Callable[..., HoodieTable]:
    """Write rows as a job does, and open the table."""

    def make(rows: Rows, operation: str = "upsert", **more: str) -> HoodieTable:
        options = {**OPTIONS, WRITE + "operation": operation, **more}
        write(spark.createDataFrame(rows, SCHEMA).coalesce(1), path, options, mode="append")
        return HoodieTable.load(spark, path)

    return make


def rows_of(frame: Any) -> Rows:
    return sorted((tuple(row) for row in frame.select("region", "id", "day", "ts", "value").collect()), key=repr)


@pytest.mark.parametrize("hive_style", ["true", "false"])
def test_files_lack_the_columns_and_readers_show_them(put: Any, path: str, hive_style: str) -> None:
    styled = {WRITE + "hive_style_partitioning": hive_style}
    put(ROWS, **styled)
    table = put([("eu", "a", 5, 2, 10.0), ("eu", "n", 5, 1, 4.0)], **styled)
    expected = [(None, "c", "5", 1, 3.0), ("eu", "a", "5", 2, 10.0), ("eu", "n", "5", 1, 4.0), ("us", "b", "7", 1, 2.0)]
    assert rows_of(table.read()) == sorted(expected, key=repr)
    assert table.read(meta_columns=False).columns == ["id", "ts", "value", "region", "day"]
    for file in Path(path).rglob("*.parquet"):
        assert not {"region", "day"} & set(pq.ParquetFile(file).schema_arrow.names)
    assert verify_table(table.table.storage).damages == ()


def test_every_write_and_service_keeps_the_columns(put: Any) -> None:
    put(ROWS)
    put([("eu", "a", 5, 9, 0.0)], "delete")
    put([("us", "d", 7, 1, 5.0)], "insert")
    put([(None, "e", 5, 1, 6.0)], "insert_overwrite")
    table = put([("eu", "f", 6, 1, 7.0)], "bulk_insert")
    assert table.clustering.run(sort_by=["ts"]) is not None
    expected = [(None, "e", "5", 1, 6.0), ("eu", "f", "6", 1, 7.0), ("us", "b", "7", 1, 2.0), ("us", "d", "7", 1, 5.0)]
    assert rows_of(table.read()) == sorted(expected, key=repr)
    assert verify_table(table.table.storage).damages == ()


def test_filters_columns_and_changes_know_them(put: Any) -> None:
    table = put(ROWS)
    first = table.table.timeline().completed()[-1].completion
    table = put([("eu", "a", 5, 2, 10.0)])
    assert rows_of(table.read(where="region = 'eu' and day = '5'")) == [("eu", "a", "5", 2, 10.0)]
    assert rows_of(table.read().where("region is null")) == [(None, "c", "5", 1, 3.0)]
    assert sorted(row[0] for row in table.read(columns=["day"], meta_columns=False).collect()) == ["5", "5", "7"]
    assert [row["region"] for row in table.read(columns=["region", "value"], where="value > 5").collect()] == ["eu"]
    assert rows_of(table.incremental(begin=first)) == [("eu", "a", "5", 2, 10.0)]
    (change,) = table.change_data(begin=first).collect()
    assert (change["op"], change["before"]["region"], change["after"]["day"]) == ("u", "eu", "5")


def test_a_folder_that_does_not_tell_them_is_refused_by_name(spark: Any, path: str) -> None:
    options = {**OPTIONS, WRITE + "partitionpath.field": "region"}
    write(spark.createDataFrame([("eu", "a", 5, 1, 1.0), ("x/y", "b", 5, 1, 1.0)], SCHEMA), path, options)
    table = HoodieTable.load(spark, path)
    with pytest.raises(UnsupportedTable, match="folder 'x/y' does not tell them"):
        table.read().collect()
    assert [row["region"] for row in table.read(partitions=["eu"]).collect()] == ["eu"]


@pytest.mark.parametrize(
    "more",
    [
        {WRITE + "table.type": "MERGE_ON_READ"},
        {WRITE + "precombine.field": "day"},
        {
            WRITE + "partitionpath.field": "ts",
            WRITE + "keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
            "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
            "hoodie.keygen.timebased.timezone": "UTC",
        },
    ],
    ids=["logs", "ordering", "times"],
)
def test_tables_that_need_the_columns_are_not_made_without(spark: Any, path: str, more: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"drop\.partition\.columns"):
        write(spark.createDataFrame(ROWS, SCHEMA), path, {**OPTIONS, **more})
    assert not Path(path).exists()
