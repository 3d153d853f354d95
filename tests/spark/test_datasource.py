"""`write` with the options of a Hudi datasource job, and Spark's save modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyspark
import pytest

from hudi_locks.errors import BadInput, ConfigError, ProviderLoadError, TableExists, UnsupportedTable
from hudi_locks.spark import HoodieTable, read, write
from hudi_locks.storage import LocalStorage, opening, register_storage

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.upsert.shuffle.parallelism": "2",
}
FIRST, SECOND = [("a", "1", 1, 1.0)], [("a", "1", 2, 2.0), ("b", "2", 1, 1.0)]


def test_the_save_modes(spark: Any, frame: Frame, rows_of: RowsOf, path: str) -> None:
    result = write(frame(FIRST), path, OPTIONS)
    assert result is not None
    assert result.rows_inserted == 1
    with pytest.raises(TableExists, match="use append"):
        write(frame(SECOND), path, OPTIONS, "error")
    assert write(frame(SECOND), path, OPTIONS, "ignore") is None
    table = HoodieTable.load(spark, path)
    assert rows_of(table) == FIRST
    write(frame(SECOND), path, OPTIONS, "Append")
    assert rows_of(table) == SECOND
    assert (Path(path) / "month=1").is_dir()
    write(frame(FIRST), path, {**OPTIONS, "hoodie.datasource.write.operation": "bulk_insert"}, "overwrite")
    assert rows_of(table) == FIRST
    assert not (Path(path) / "month=2").exists()


def test_the_operations_and_ordering(spark: Any, frame: Frame, rows_of: RowsOf, path: str) -> None:
    operation = "hoodie.datasource.write.operation"
    write(frame(SECOND), path, OPTIONS)
    write(frame([("a", "1", 1, 9.0)]), path, {**OPTIONS, operation: "UPSERT"}, "append")
    assert rows_of(HoodieTable.load(spark, path)) == SECOND
    write(frame([("a", "1", 1, 9.0)]), path, {**OPTIONS, operation: "delete"}, "append")
    assert rows_of(HoodieTable.load(spark, path)) == SECOND[1:]
    write(frame(SECOND), path, {**OPTIONS, operation: "insert"}, "append")
    assert rows_of(HoodieTable.load(spark, path)) == [SECOND[0], SECOND[1], SECOND[1]]


class WeakStorage(LocalStorage):
    """Of a scheme whose store keeps no tickets."""

    capabilities = replace(LocalStorage.capabilities, tickets=False)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_table_on_a_store_that_lacks_a_promise_is_read_and_left_as_it_is(
    spark: Any, frame: Frame, rows_of: RowsOf, path: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_registered", {})
    register_storage("weak", lambda address, _: WeakStorage(address.removeprefix("weak:"), base=address))
    write(frame(FIRST), path, OPTIONS)
    with pytest.raises(UnsupportedTable, match=f"weak:{path} is read only here.*tickets"):
        write(frame(SECOND), f"weak:{path}", OPTIONS, mode)
    assert rows_of(HoodieTable.load(spark, f"weak:{path}")) == FIRST


@pytest.mark.parametrize(
    ("change", "mode", "error", "match"),
    [
        ({"hoodie.datasource.write.operation": "bootstrap"}, "append", ConfigError, "is not offered"),
        (
            {"hoodie.datasource.write.operation": "bootstrap"},
            "append",
            ConfigError,
            "bootstrap the table with JVM Hudi",
        ),
        ({"hoodie.datasource.write.operation": "upset"}, "append", ConfigError, "hoodie.datasource.write.operation"),
        ({}, "replace", ConfigError, "'replace'"),
        ({"hoodie.table.name": None}, "append", ConfigError, "hoodie.table.name"),
        ({"hoodie.datasource.write.recordkey.field": None}, "append", ConfigError, "recordkey"),
        (
            {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
            "append",
            ConfigError,
            "CONSISTENT_HASHING is for MERGE_ON_READ tables alone",
        ),
        ({"hoodie.index.type": "INMEMORY"}, "append", ConfigError, "INMEMORY"),
        ({"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}, "append", ConfigError, "lock.provider"),
    ],
)
def test_options_that_cannot_be_used_leave_no_table(
    frame: Frame, path: str, change: dict[str, str | None], mode: str, error: type[Exception], match: str
) -> None:
    options = {key: value for key, value in {**OPTIONS, **change}.items() if value is not None}
    with pytest.raises(error, match=match):
        write(frame(FIRST), path, options, mode)
    assert not Path(path).exists()


def test_an_overwrite_that_cannot_be_done_removes_nothing(
    frame: Frame, path: str, files_of: Callable[[], dict[str, bytes]]
) -> None:
    write(frame(FIRST), path, OPTIONS)
    before = files_of()
    slips = {
        "hoodie.index.type": "INMEMORY",
        "hoodie.table.name": "",
        "hoodie.datasource.write.table.type": "SIDEWAYS",
    }
    for key, value in slips.items():
        with pytest.raises(ConfigError, match=value or key):
            write(frame(SECOND), path, {**OPTIONS, key: value}, "overwrite")
        assert files_of() == before


def test_other_keys_than_the_tables_are_refused(
    frame: Frame, path: str, files_of: Callable[[], dict[str, bytes]]
) -> None:
    write(frame(FIRST), path, OPTIONS)
    before = files_of()
    for key in ("hoodie.datasource.write.recordkey.field", "hoodie.datasource.write.partitionpath.field"):
        with pytest.raises(BadInput, match="was made with") as caught:
            write(frame(SECOND), path, {**OPTIONS, key: "ts"}, "append")
        assert (caught.value.key, caught.value.asked) == (key, "ts")
    assert files_of() == before


def test_what_a_machine_gives_to_all_jobs_counts_where_a_job_gives_none(
    spark: Any, frame: Frame, rows_of: RowsOf, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**OPTIONS, "hoodie.datasource.query.type": "incremental", "hoodie.datasource.write.operation": "delete"}
    (tmp_path / "hudi-defaults.conf").write_text("".join(f"{key}  {value}\n" for key, value in given.items()))
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    write(frame(SECOND), path, {"hoodie.datasource.write.operation": "upsert"})
    table = HoodieTable.load(spark, path)
    assert table.options["hoodie.upsert.shuffle.parallelism"] == "2"
    assert (Path(path) / "month=1").is_dir()
    assert rows_of(table) == SECOND
    assert read(spark, path, {"hoodie.datasource.read.begin.instanttime": "20990101000000000"}).count() == 0
    write(frame(SECOND[:1]), path, {}, "append")
    assert rows_of(table) == SECOND[1:]
    made = HoodieTable.create(spark, f"{path}2", name="u", record_key="id")
    assert made.table.config.hive_style


def test_the_format_of_spark_4_is_told_from_what_3_5_has() -> None:
    import hudi_locks.spark

    if pyspark.__version__.startswith("3."):
        with pytest.raises(ProviderLoadError, match=r"needs PySpark 4\.0.*hudi_locks\.spark\.read\(spark, path"):
            _ = hudi_locks.spark.HudiLocksDataSource
    else:
        assert hudi_locks.spark.HudiLocksDataSource.name() == "hudi_locks"
