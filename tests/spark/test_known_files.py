"""Reads whose files Spark is told, so that it lists none of them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.spark import HoodieTable
from hudi_locks.spark._compat import SWITCHES, FileIndexes, encode_file_status
from hudi_locks.spark.reading.files import read_files

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
_FREED = "m\nd\n"
MONTHS = ("plain", "a b", "100%", "ü=1", "x:y")


@pytest.fixture
def table(create: Create, frame: Callable[..., Any]) -> HoodieTable:
    made = create()
    made.upsert(frame([(f"k{number}", month, 1, float(number)) for number in range(2) for month in MONTHS]))
    return made


@pytest.fixture
def looked_for(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The files that Spark was made to look for."""
    seen: list[Any] = []
    index = FileIndexes.index

    def look(self: FileIndexes, paths: list[str], *given: Any) -> Any:
        seen.extend(paths)
        return index(self, paths, *given)

    monkeypatch.setattr(FileIndexes, "index", look)
    return seen


@pytest.fixture
def switched_off(spark: Any) -> Iterator[Callable[[], None]]:
    yield lambda: spark.conf.set(SWITCHES["files"], "false")
    spark.conf.unset(SWITCHES["files"])


def list_files(table: HoodieTable) -> list[str]:
    """Spark writes their addresses in one way or another."""
    return sorted(file.replace("file:///", "file:/") for file in table.read().inputFiles())


def read_all(table: HoodieTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.read(meta_columns=True).collect())


def test_spark_reads_what_it_is_told_and_looks_for_nothing(
    table: HoodieTable, looked_for: list[Any], switched_off: Callable[[], None]
) -> None:
    rows, files = table.read(), list_files(table)
    assert rows.count() == 2 * len(MONTHS)
    assert sorted(row.month for row in rows.where("month in ('a b', '100%')").collect()) == ["100%"] * 2 + ["a b"] * 2
    told = read_all(table)
    assert looked_for == []
    switched_off()
    assert list_files(table) == files
    assert read_all(table) == told
    assert len(set(looked_for)) == len(MONTHS)


def test_files_are_looked_for_where_spark_keeps_none(
    spark: Any, table: HoodieTable, looked_for: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = read_all(table)
    key = "spark.sql.hive.manageFilesourcePartitions"
    kept = spark.conf.get(key)
    spark.conf.set(key, "false")
    try:
        assert read_all(table) == told
    finally:
        spark.conf.set(key, kept)
    assert len(looked_for) == len(MONTHS)


def test_a_file_whose_size_is_not_known_is_looked_for(spark: Any, table: HoodieTable, looked_for: list[Any]) -> None:
    """Spark leaves a file of 0 bytes out, and says nothing."""
    files = [Path(file.removeprefix("file:")) for file in map(unquote, list_files(table))]
    sizes = [file.stat().st_size for file in files]
    schema = T.StructType([T.StructField("id", T.StringType())])
    for known, looked in ((sizes, 0), ([0, *sizes[1:]], len(MONTHS)), ((), 2 * len(MONTHS))):
        assert read_files(spark, [str(file) for file in files], schema, sizes=known).count() == 2 * len(MONTHS)
        assert len(looked_for) == looked


def test_a_refresh_of_the_path_takes_no_rows_away(spark: Any, table: HoodieTable) -> None:
    rows = table.read().cache()
    try:
        assert rows.count() == 2 * len(MONTHS)
        spark.catalog.refreshByPath(table.path)
        assert rows.count() == 2 * len(MONTHS)
        spark.catalog.refreshByPath("/")
        assert rows.count() == 2 * len(MONTHS)
    finally:
        rows.unpersist()


@pytest.mark.parametrize("size", [0, 127, 128, 435_000, 5_000_000_000])
@pytest.mark.parametrize("address", ["file:/data/t/a b/100%/ü.parquet", "s3a://bucket/t/" + "deep/" * 60 + "f"])
def test_hadoop_reads_what_it_is_sent(spark: Any, address: str, size: int) -> None:
    jvm = spark._jvm
    status = jvm.org.apache.hadoop.fs.FileStatus()
    data = jvm.java.io.ByteArrayInputStream(encode_file_status(address, size))
    status.readFields(jvm.java.io.DataInputStream(data))
    assert (status.getPath().toString(), status.getLen(), status.isFile()) == (address, size, True)


def test_spark_is_told_many_folders_in_as_many_calls_as_few(
    create: Create, frame: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call to the JVM takes a tenth of a millisecond, and a table may have thousands of partitions."""
    sent: list[str] = []
    send = ClientServerConnection.send_command

    def note(self: Any, command: str) -> Any:
        if not command.startswith(_FREED):  # when Python lets go of what it had
            sent.append(command)
        return send(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", note)
    table, counts = create(), []
    for months in (range(3), range(3, 60)):
        table.upsert(frame([(f"k{month}", f"m{month}", 1, 1.0) for month in months]))
        table.read()
        sent.clear()
        rows = table.read()
        counts.append(len(sent))
        assert {row.month for row in rows.collect()} == {f"m{month}" for month in range(months.stop)}
    assert counts[0] == counts[1]


def test_of_no_folders_spark_is_told_none(spark: Any) -> None:
    assert FileIndexes(spark).place(None, []).isEmpty()
