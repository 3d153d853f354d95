"""Tables whose folders are named by formatted times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import BadInput, ConfigError, NotATable
from hudi_locks.spark import HoodieTable, write
from hudi_locks.spark.writing import keys

pytestmark = pytest.mark.spark

WRITE, TIMED = "hoodie.datasource.write.", "hoodie.keygen.timebased."
GENERATOR = WRITE + "keygenerator.class"
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "at",
    WRITE + "precombine.field": "ts",
    GENERATOR: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    TIMED + "timestamp.type": "UNIX_TIMESTAMP",
    TIMED + "output.dateformat": "yyyy/MM/dd",
    TIMED + "timezone": "UTC",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}
TEXTS = {**OPTIONS, TIMED + "timestamp.type": "DATE_STRING", TIMED + "input.dateformat": "yyyy-MM-dd"}
CUSTOM = {
    **TEXTS,
    GENERATOR: "org.apache.hudi.keygen.CustomKeyGenerator",
    WRITE + "partitionpath.field": "region:SIMPLE,at:TIMESTAMP",
    WRITE + "hive_style_partitioning": "true",
    TIMED + "output.dateformat": "yyyy-MM",
}
DAY_S = 86_400


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def frame(spark: Any) -> Callable[..., Any]:
    def make(*rows: tuple[Any, ...], at: str = "long") -> Any:
        return spark.createDataFrame(list(rows), f"id string, region string, at {at}, ts long").coalesce(1)

    return make


def folders(spark: Any, path: str) -> dict[str, str]:
    """Where each key lies."""
    rows = HoodieTable.load(spark, path).read(meta_columns=True)
    return dict(sorted(tuple(row) for row in rows.select("id", "_hoodie_partition_path").collect()))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_lie_in_the_folders_of_their_times(spark: Any, frame: Any, path: str, table_type: str) -> None:
    options = {**OPTIONS, WRITE + "table.type": table_type}
    write(frame(("a", "eu", 0, 1), ("b", "eu", 45 * DAY_S, 1), ("c", "us", None, 1)), path, options)
    write(frame(("a", "us", 3, 2), ("d", "us", 46 * DAY_S, 2)), path, options, mode="append")
    days = {"a": "1970/01/01", "b": "1970/02/15", "c": "1970/01/01", "d": "1970/02/16"}
    assert folders(spark, path) == days
    table = HoodieTable.load(spark, path, options=options)
    assert sorted(row["id"] for row in table.read().where("region = 'us'").collect()) == ["a", "c", "d"]
    table.delete(frame(("b", "eu", 45 * DAY_S + 7, 3)))
    deletion = {**options, WRITE + "operation": "delete_partition"}
    write(frame(("any", "us", 9, 4)), path, deletion, mode="append")
    assert folders(spark, path) == {"d": "1970/02/16"}


def test_a_custom_generator_mixes_values_and_times(spark: Any, frame: Any, path: str) -> None:
    write(frame(("a", "eu", "2024-01-31", 1), ("b", None, None, 1), at="string"), path, CUSTOM)
    expected = {"a": "region=eu/at=2024-01", "b": "region=__HIVE_DEFAULT_PARTITION__/at=1970-01"}
    assert folders(spark, path) == expected
    properties = (Path(path) / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8")
    assert "hoodie.table.partition.fields=region\\:SIMPLE,at\\:TIMESTAMP" in properties


def test_a_value_that_is_no_such_time_is_refused_before_a_table_is_written(spark: Any, frame: Any, path: str) -> None:
    write(frame(("a", "eu", "2024-01-31", 1), at="string"), path, TEXTS)
    with pytest.raises(BadInput, match=r"'2024-02-30' is no time as hoodie.keygen.timebased"):
        write(frame(("b", "eu", "2024-02-30", 1), ("c", "eu", "2024-02-01", 1), at="string"), path, TEXTS, "append")
    assert folders(spark, path) == {"a": "2024/01/31"}


@pytest.mark.parametrize(
    ("options", "kind", "named"),
    [
        (TEXTS, "long", "column 'at' of type bigint names no folder: .*DATE_STRING wants a text"),
        (OPTIONS, "string", "column 'at' of type string names no folder: .*UNIX_TIMESTAMP wants a number"),
        (OPTIONS, "boolean", "column 'at' of type boolean names no folder"),
    ],
)
def test_a_column_of_another_type_is_refused_before_a_table_is_made(
    spark: Any, frame: Any, path: str, options: dict[str, str], kind: str, named: str
) -> None:
    with pytest.raises(BadInput, match=named):
        write(frame(at=kind), path, options)
    with pytest.raises(NotATable):
        HoodieTable.load(spark, path)


def test_the_zone_of_the_machine_is_taken_where_none_is_said_and_named(
    spark: Any, frame: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsaid = {name: value for name, value in OPTIONS.items() if name != TIMED + "timezone"}
    monkeypatch.setattr(keys, "find_machine_zone", lambda _: "Asia/Tokyo")
    with pytest.warns(UserWarning, match=r"timezone is not given: folders are named by times in Asia/Tokyo"):
        write(frame(("a", "eu", 16 * 3600, 1)), path, unsaid)
    assert folders(spark, path) == {"a": "1970/01/02"}
    monkeypatch.setattr(keys, "find_machine_zone", lambda _: "PST")
    with pytest.raises(ConfigError, match=r"timezone is not given, and the zone of this machine=PST"):
        write(frame(("b", "eu", 0, 1)), path, unsaid, mode="append")


def test_a_table_is_written_as_it_was_made(spark: Any, frame: Any, path: str) -> None:
    write(frame(("a", "eu", 0, 1)), path, OPTIONS)
    other = {**OPTIONS, TIMED + "output.dateformat": "yyyy"}
    with pytest.raises(BadInput, match=r"output.dateformat=yyyy, but the table at .* was made with yyyy/MM/dd"):
        write(frame(("b", "eu", 0, 1)), path, other, mode="append")
    HoodieTable.load(spark, path).upsert(frame(("b", "eu", 0, 1)))
    assert folders(spark, path) == {"a": "1970/01/01", "b": "1970/01/01"}


def test_a_custom_table_that_does_not_say_its_times_is_read_and_written_by_who_says_them(
    spark: Any, frame: Any, path: str
) -> None:
    """JVM Hudi keeps these options of its custom generator for itself."""
    write(frame(("a", "eu", "2024-01-31", 1), at="string"), path, CUSTOM)
    properties = Path(path) / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text(encoding="utf-8").splitlines() if not line.startswith(TIMED)]
    properties.write_text("\n".join(kept), encoding="utf-8")
    table = HoodieTable.load(spark, path)
    assert folders(spark, path) == {"a": "region=eu/at=2024-01"}
    with pytest.raises(ConfigError, match=r"timestamp.type is required and was not given"):
        table.upsert(frame(("b", "eu", "2024-02-01", 1), at="string"))
    write(frame(("b", "eu", "2024-02-01", 1), at="string"), path, CUSTOM, mode="append")
    assert folders(spark, path) == {"a": "region=eu/at=2024-01", "b": "region=eu/at=2024-02"}
