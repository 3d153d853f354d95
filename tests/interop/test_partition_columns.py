"""Partition columns whose paths say less than their values: we show what the JVM shows."""

from __future__ import annotations

from typing import Any

import pytest
from other_readers import DEADLINE_S

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

SIMPLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
}
TIMES = {
    **SIMPLE,
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}
BUCKETS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline": "false",
}
SHOWN = ["id", "cast(region as string)", "_hoodie_partition_path"]
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
NEWEST = [("1.2.0", 9)]


def write(jvm: Any, path: str, options: dict[str, str], *values: str) -> None:
    rows = (f"select 'k{number}' id, {value} region, 1L ts" for number, value in enumerate(values))
    given = {**options, "hoodie.write.table.version": str(jvm.table_version)}
    jvm.ask("write_query", path=path, query=" union all ".join(rows), options=given).result(DEADLINE_S)


def read_both(spark: Any, jvm: Any, path: str) -> tuple[list[Any], list[Any]]:
    theirs = jvm.ask("read", path=path, options={}, columns=SHOWN).result(DEADLINE_S)
    ours = HoodieTable.load(spark, path).read().selectExpr(*SHOWN).collect()
    return sorted(map(tuple, ours)), sorted(map(tuple, theirs))


@pytest.mark.parametrize("jvm", NEWEST, indirect=True, ids=["1.2.0-v9"])
@pytest.mark.parametrize(
    "style", [{}, {"hoodie.datasource.write.hive_style_partitioning": "true"}], ids=["plain", "hive"]
)
@pytest.mark.parametrize("kind", [{}, BUCKETS], ids=["cow", "mor"])
def test_null_and_the_empty_text(spark: Any, jvm: Any, path: str, style: dict[str, str], kind: dict[str, str]) -> None:
    write(jvm, path, {**SIMPLE, **style, **kind}, "''", "null", "'a'", "'default'", "'x y'")
    if kind:
        write(jvm, path, {**SIMPLE, **style, **kind}, "''", "null", "'a'")
    ours, theirs = read_both(spark, jvm, path)
    assert ours == theirs
    assert [row[1] for row in ours] == [None, None, "a", "default", "x y"]


@pytest.mark.parametrize("jvm", NEWEST, indirect=True, ids=["1.2.0-v9"])
@pytest.mark.parametrize("kind", [{}, BUCKETS], ids=["cow", "mor"])
def test_formatted_times_say_nothing_of_the_column(spark: Any, jvm: Any, path: str, kind: dict[str, str]) -> None:
    """The JVM shows the column as text; its value is the one in the file, and no date."""
    write(jvm, path, {**TIMES, **kind}, "1709164800123L", "1709251201000L")
    if kind:
        write(jvm, path, {**TIMES, **kind}, "1709164800123L")
    ours, theirs = read_both(spark, jvm, path)
    assert ours == theirs == [("k0", "1709164800123", "2024-02-29"), ("k1", "1709251201000", "2024-03-01")]
    found = HoodieTable.load(spark, path).read()
    assert found.where("region = 1709164800123").count() == 1
    assert found.schema["region"].dataType.simpleString() == "bigint"
