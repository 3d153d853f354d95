"""Filters that Spark hands to the format `hudi_locks`, where `spark.sql.python.filterPushdown.enabled` is set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyspark
import pytest

from hudi_locks.spark import HoodieTable, register_format

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        pyspark.__version__.startswith(("3.", "4.0.")), reason="unsupported: PySpark hands filters over from 4.1 on"
    ),
]
ENABLED = "spark.sql.python.filterPushdown.enabled"
ROWS = (
    "select format_string('%03d', id) id, cast(id % 3 as string) month, id ts, date_add(date'2026-01-01', int(id)) day"
)
ROWS += ", timestamp'2026-01-01 00:00:00' + make_interval(0, 0, 0, int(id)) at, if(id % 5 = 0, null, id / 2) half"
ROWS += ", cast(id as decimal(10,2)) price, struct(id as n) nested from range({}, {})"
FILTERS = [
    "month = '1'",
    "month in ('0', '2') and ts > 20",
    "id >= '025' and id < '027'",
    "day = date'2026-01-08'",
    "at > timestamp'2026-01-20 12:00:00'",
    "price = 7.00 or id = '003'",
    "not (ts > 3)",
    "half is null",
    "nested.n = 5",
    "_hoodie_record_key = '004'",
]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(spark: Any, path: str, create: Callable[..., HoodieTable], request: pytest.FixtureRequest) -> HoodieTable:
    """Thirty rows in three partitions; every third was written again, to logs where there are such."""
    table = create(table_type=request.param, options={"hoodie.metadata.enable": "true"})
    table.upsert(spark.sql(ROWS.format(0, 30)))
    table.upsert(spark.sql(ROWS.format(0, 30)).where("id % 9 = 0").selectExpr("* except (half)", "-1D half"))
    return table


@pytest.fixture
def pushing(spark: Any) -> Iterator[Any]:
    register_format(spark)
    before = spark.conf.get(ENABLED)
    spark.conf.set(ENABLED, "true")
    yield spark
    spark.conf.set(ENABLED, before)


def test_rows_are_the_same_with_and_without(pushing: Any, table: HoodieTable, path: str) -> None:
    whole = table.read()
    for where in FILTERS:
        found = pushing.read.format("hudi_locks").load(path).where(where)
        expected = sorted(map(tuple, whole.where(where).collect()))
        assert sorted(map(tuple, found.collect())) == expected, where
    pushing.conf.set(ENABLED, "false")
    assert pushing.read.format("hudi_locks").load(path).where("id = '007'").count() == 1


def test_partitions_and_files_without_such_rows_are_left_out(
    table: HoodieTable, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, Not

    from hudi_locks.spark import HudiLocksDataSource
    from hudi_locks.spark.reading import data_source

    monkeypatch.setattr(data_source, "hands_filters", lambda: True)

    def list_partitions(*filters: Filter) -> set[str]:
        source = HudiLocksDataSource({"path": path})
        reader: Any = source.reader(source.schema())
        assert list(reader.pushFilters(list(filters))) == list(filters)
        return {one.slice.partition for share in reader.partitions() for one in share.pack}

    assert list_partitions() == {"0", "1", "2"}
    assert list_partitions(EqualTo(("month",), "1")) == {"1"}
    assert list_partitions(In(("month",), ("0", "2"))) == {"0", "2"}
    assert list_partitions(Not(EqualTo(("month",), "1"))) == {"0", "1", "2"}
    assert list_partitions(GreaterThan(("ts",), 28)) == {"2"}
    assert list_partitions(GreaterThan(("ts",), 99)) == set()
