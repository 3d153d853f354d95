"""The format `hudi_locks` of `df.write` and `df.writeStream`, which PySpark has from release 4 on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException, StreamingQueryException

from hudi_locks.errors import BadInput, ConfigError, SessionRefused, StorageError, WriteError
from hudi_locks.spark import HoodieTable, register_format, write
from hudi_locks.table import StagedInput

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        pyspark.__version__.startswith("3."), reason="unsupported: PySpark 3.5 has no Python data sources"
    ),
]
needs_arrow_streams = pytest.mark.skipif(
    pyspark.__version__.startswith("4.0."), reason="unsupported: PySpark 4.0 gives a stream's rows as Python objects"
)

Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
OPTIONS = {
    "hoodie.table.name": "t",
    "primaryKey": "id",
    "preCombineField": "ts",
    "hoodie.datasource.write.partitionpath.field": "month",
}
FIRST = [("a", "1", 1, 1.0), ("b", "2", 1, 1.0)]
SECOND = [("a", "1", 2, 2.0), ("c", "2", 1, 1.0)]
BOTH = [("a", "1", 2, 2.0), ("b", "2", 1, 1.0), ("c", "2", 1, 1.0)]


@pytest.fixture
def registered(spark: Any) -> Any:
    register_format(spark)
    return spark


@pytest.fixture
def driver(registered: Any) -> str:
    from hudi_locks.spark.commit_server import _servers

    return _servers[registered].address


def save(rows: Any, path: str, mode: str = "append", **options: str) -> None:
    rows.write.format("hudi_locks").mode(mode).options(**OPTIONS, **options).save(path)


def list_staged(path: str) -> list[Path]:
    return [file for file in Path(path).rglob("*") if "/.hudi_locks/input/" in str(file)]


def list_commits(path: str) -> list[str]:
    return [file.name for file in (Path(path) / ".hoodie/timeline").glob("*_*")]


def test_appended_rows_are_upserted_as_by_the_function(
    registered: Any, frame: Frame, path: str, rows_of: RowsOf, load: Callable[..., HoodieTable]
) -> None:
    save(frame(FIRST), path)
    save(frame(SECOND).repartition(3), path)
    assert rows_of(load().read()) == BOTH
    assert rows_of(registered.read.format("hudi_locks").load(path)) == BOTH
    assert len(list_commits(path)) == 2
    assert list_staged(path) == []


def test_the_operation_and_other_options_reach_the_write(
    registered: Any, frame: Frame, path: str, rows_of: RowsOf, load: Callable[..., HoodieTable]
) -> None:
    save(frame(FIRST), path, type="mor")
    assert load().table.config.table_type == "MERGE_ON_READ"
    save(frame(FIRST[:1]), path, **{"hoodie.datasource.write.operation": "delete"})
    assert rows_of(load().read()) == FIRST[1:]


def test_times_and_nested_columns_come_as_by_the_function(registered: Any, path: str, tmp_path: Path) -> None:
    rows = registered.sql(
        "select 'a' id, '1' month, 1L ts, timestamp'2026-01-01 10:00:00' at, timestamp_ntz'2026-01-01 10:00:00' local,"
        " date'2026-01-01' day, 1.20BD price, X'00FF' raw, array(struct('x' as s, 1 as n)) list, map('k', 2L) pairs"
    )
    save(rows, path)
    write(rows, other := str(tmp_path / "other"), OPTIONS)
    found, expected = (HoodieTable.load(registered, place).read().drop(*META) for place in (path, other))
    assert found.schema == expected.schema
    assert found.collect() == expected.collect()


META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")


def test_overwrite_replaces_the_table_once_all_rows_are_staged(
    registered: Any, frame: Frame, path: str, rows_of: RowsOf, load: Callable[..., HoodieTable]
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    save(frame(FIRST), path)
    failing = frame(SECOND).withColumn("value", F.expr("if(ts > 0, raise_error('no rows'), value)"))
    with pytest.raises(PySparkException, match="no rows"):
        save(failing, path, "overwrite")
    assert rows_of(load().read()) == FIRST
    assert list_staged(path) == []
    save(frame(SECOND), path, "overwrite")
    assert rows_of(load().read()) == SECOND
    assert len(list_commits(path)) == 1


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_spark_refuses_other_save_modes_by_name(
    registered: Any, frame: Frame, path: str, mode: str, files_of: Callable[[], dict[str, bytes]]
) -> None:
    save(frame(FIRST), path)
    before = files_of()
    with pytest.raises(AnalysisException, match=r"UNSUPPORTED_DATA_SOURCE_SAVE_MODE.*hudi_locks"):
        save(frame(SECOND), path, mode)
    assert files_of() == before


def test_what_the_function_refuses_is_refused_before_a_task_runs(registered: Any, frame: Frame, path: str) -> None:
    operation = {"hoodie.datasource.write.operation": "bootstrap"}
    with pytest.raises(AnalysisException, match=r"ConfigError.*operation=bootstrap is not offered"):
        save(frame(FIRST), path, **operation)
    with pytest.raises(AnalysisException, match="ts"):
        save(frame(FIRST).drop("ts"), path)
    with pytest.raises(IllegalArgumentException, match=r"partitioning or clustering columns"):
        frame(FIRST).write.format("hudi_locks").partitionBy("month").mode("append").options(**OPTIONS).save(path)
    assert not Path(path).exists()


def test_rows_that_the_commit_refuses_leave_the_table_as_it_was(
    registered: Any, frame: Frame, path: str, rows_of: RowsOf, load: Callable[..., HoodieTable]
) -> None:
    save(frame(FIRST), path)
    with pytest.raises(AnalysisException, match="BadInput"):
        save(frame([(None, "1", 1, 1.0)]), path)
    assert rows_of(load().read()) == FIRST
    assert list_staged(path) == []


def test_only_the_attempts_that_spark_counts_are_written(
    registered: Any, driver: str, frame: Frame, path: str, rows_of: RowsOf, load: Callable[..., HoodieTable]
) -> None:
    from hudi_locks.spark.writing.data_source_writers import open_writer

    rows = frame(SECOND)
    writer = open_writer(driver, {"path": path, **OPTIONS}, rows.schema, overwrites=False)
    batches = rows.toArrow().to_batches()
    counted, _repeated = writer.write(iter(batches)), writer.write(iter(batches))
    late = writer.write(iter(frame([("z", "9", 9, 9.0)]).toArrow().to_batches()))
    assert len(list_staged(path)) == 4
    writer.commit([counted, None])
    assert rows_of(load().read()) == SECOND
    assert list_staged(path) == []
    with pytest.raises(WriteError, match="committed or given up before"):
        writer.commit([late])
    assert rows_of(load().read()) == SECOND
    writer.abort([late])


def test_staged_rows_that_are_gone_are_missed(registered: Any, driver: str, frame: Frame, path: str) -> None:
    from hudi_locks.spark.writing.data_source_writers import open_writer

    rows = frame(FIRST)
    writer = open_writer(driver, {"path": path, **OPTIONS}, rows.schema, overwrites=False)
    told = writer.write(iter(rows.toArrow().to_batches()))
    for file in list_staged(path):
        if file.is_file():
            file.unlink()
    with pytest.raises(StorageError):
        writer.commit([told])
    assert list_commits(path) == []


def test_a_task_that_fails_takes_its_rows_with_it(create: Callable[..., HoodieTable], frame: Frame, path: str) -> None:
    batch = frame(FIRST).toArrow().to_batches()[0]

    def give() -> Any:
        yield batch
        raise BadInput("no more")

    create()
    with pytest.raises(BadInput, match="no more"):
        StagedInput.begin(create_storage(path)).write(give())
    assert [file for file in list_staged(path) if file.is_file()] == []


def create_storage(path: str) -> Any:
    from hudi_locks.storage import open_storage

    return open_storage(path)


def test_a_format_that_nobody_commits_is_refused_with_the_way_to_write(
    spark: Any, frame: Frame, path: str, files_of: Callable[[], dict[str, bytes]], create: Callable[..., HoodieTable]
) -> None:
    from hudi_locks.spark import HudiLocksDataSource

    create().upsert(frame(FIRST))
    before = files_of()
    spark.dataSource.register(HudiLocksDataSource)
    with pytest.raises(AnalysisException, match=r"register_format\(spark\).*hudi_locks\.spark\.write\(df, path"):
        save(frame(SECOND), path)
    assert files_of() == before


def test_a_driver_that_is_gone_is_named(frame: Frame, path: str, tmp_path: Path) -> None:
    from hudi_locks.spark.writing.data_source_writers import open_writer

    with pytest.raises(SessionRefused, match=r"does not answer at .*gone.*hudi-locks timeline"):
        open_writer(str(tmp_path / "gone"), {"path": path}, frame(FIRST).schema, overwrites=False)


@needs_arrow_streams
def test_a_stream_writes_each_micro_batch_once_over_restarts(
    registered: Any, frame: Frame, path: str, tmp_path: Path, rows_of: RowsOf, load: Callable[..., HoodieTable]
) -> None:
    source, checkpoint = str(tmp_path / "source"), tmp_path / "checkpoint"

    def run() -> None:
        rows = registered.readStream.schema(frame(FIRST).schema).parquet(source)
        writing = rows.writeStream.format("hudi_locks").options(**OPTIONS, **{INSERT: "insert"})
        writing = writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writing.start(path).awaitTermination()

    frame(FIRST).write.parquet(source)
    run()
    frame([("c", "2", 1, 1.0)]).write.mode("append").parquet(source)
    run()
    (checkpoint / "commits/1").unlink()
    (checkpoint / "commits/.1.crc").unlink(missing_ok=True)
    run()  # repeats the micro-batch
    assert rows_of(load().read()) == [*FIRST, ("c", "2", 1, 1.0)]
    assert len(list_commits(path)) == 2
    assert [file for file in list_staged(path) if file.is_file()] == []


INSERT = "hoodie.datasource.write.operation"


@needs_arrow_streams
def test_another_query_under_the_same_identifier_is_refused(
    registered: Any, frame: Frame, path: str, tmp_path: Path, rows_of: RowsOf, load: Callable[..., HoodieTable]
) -> None:
    source = str(tmp_path / "source")
    frame(FIRST).write.parquet(source)

    def run(checkpoint: str, mode: str = "append") -> None:
        rows = registered.readStream.schema(frame(FIRST).schema).parquet(source)
        rows = rows.groupBy("id", "month", "ts").sum("value") if mode == "complete" else rows
        writing = rows.writeStream.format("hudi_locks").options(**OPTIONS).outputMode(mode)
        writing = writing.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True)
        writing.start(path).awaitTermination()

    run("one")
    with pytest.raises(StreamingQueryException, match=r"belongs to query .*an identifier of its own"):
        run("two")
    with pytest.raises(StreamingQueryException, match=r"outputMode\('complete'\) is not written"):
        run("three", "complete")
    assert rows_of(load().read()) == FIRST


def test_a_stream_whose_checkpoint_is_not_told_is_refused(
    registered: Any, driver: str, frame: Frame, path: str
) -> None:
    from hudi_locks.spark.writing.data_source_writers import open_stream_writer

    match = "checkpointLocation" if not pyspark.__version__.startswith("4.0.") else "from PySpark 4.1 on"
    with pytest.raises(ConfigError, match=match):
        open_stream_writer(driver, {"path": path, **OPTIONS}, frame(FIRST).schema, overwrites=False)
