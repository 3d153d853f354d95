"""The figures of the benchmark of Spark's own format, in a process of its own. Needs PySpark 4.

usage: python -m benchmarks.data_source_side FOLDER ROWS     prints thousands of rows per second, as JSON
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.lineitem_side import start_session
from hudi_locks.spark import HoodieTable, read, register_format, write

_ROUNDS = 3
_PARTITIONS = 4
_CHANGED = 10
"""One row in so many is in a log."""
_WRITTEN = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}


def make_rows(spark: SparkSession, rows: int, ts: int) -> DataFrame:
    ids = spark.range(0, rows, ts if ts == 1 else _CHANGED, 4).withColumnRenamed("id", "number")
    return ids.select(
        F.format_string("%012d", "number").alias("id"),
        (F.col("number") % _PARTITIONS).cast("string").alias("part"),
        F.lit(ts).cast("long").alias("ts"),
        F.rand(ts).alias("value"),
        F.concat(F.lit("text "), F.col("number") % 1000).alias("comment"),
    )


def make_table(spark: SparkSession, path: str, table_type: str, rows: int) -> HoodieTable:
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    names = {"name": "t", "record_key": "id", "partition_by": "part", "ordering": "ts"}
    table = HoodieTable.create(spark, path, table_type=table_type, options=options, **names)
    table.upsert(make_rows(spark, rows, 1))
    table.upsert(make_rows(spark, rows, 2))
    return table


def play(spark: SparkSession, folder: Path, rows: int) -> dict[str, float]:
    took: dict[str, list[float]] = {}
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = str(folder / table_type)
        table = make_table(spark, path, table_type, rows)
        sides: dict[str, Callable[[], DataFrame]] = {
            "format": partial(spark.read.format("hudi_locks").load, path),
            "function": partial(read, spark, path),
            "method": table.read,
        }
        jobs: dict[str, Callable[[DataFrame], None]] = {
            "all": lambda found: found.write.format("noop").mode("overwrite").save(),
            "sum": lambda found: _check_sum(found, rows),
        }
        for turn in range(_ROUNDS + 1):
            for job, run in jobs.items():
                for side, load in sides.items():
                    began_s = time.perf_counter()
                    run(load())
                    if turn:  # the first one warms
                        took.setdefault(f"{table_type}_{job}_{side}", []).append(time.perf_counter() - began_s)
    return {name: round(rows / statistics.median(values) / 1000, 1) for name, values in took.items()}


def play_writes(spark: SparkSession, folder: Path, rows: int) -> dict[str, float]:
    """Each side loads a table of its own, and then updates one row in ten of it."""
    took: dict[str, list[float]] = {}
    jobs = {"load": (1, rows), "update": (2, -(-rows // _CHANGED))}
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        options = {**_WRITTEN, "hoodie.datasource.write.table.type": table_type}
        for turn in range(_ROUNDS + 1):
            for side, save in (("format", _save), ("function", _write)):
                path = str(folder / f"{table_type}_{side}_{turn}")
                for job, (ts, _) in jobs.items():
                    began_s = time.perf_counter()
                    save(make_rows(spark, rows, ts), path, options)
                    if turn:  # the first one warms
                        took.setdefault(f"{table_type}_{job}_{side}", []).append(time.perf_counter() - began_s)
                shutil.rmtree(path)
    return {name: round(jobs[name.split("_")[-2]][1] / statistics.median(v) / 1000, 1) for name, v in took.items()}


def _save(rows: DataFrame, path: str, options: Mapping[str, str]) -> None:
    rows.write.format("hudi_locks").mode("append").options(**options).save(path)


def _write(rows: DataFrame, path: str, options: Mapping[str, str]) -> None:
    write(rows, path, options, "append")


def _check_sum(found: DataFrame, rows: int) -> None:
    [(total,)] = found.agg(F.sum("ts")).collect()
    if total != rows + -(-rows // _CHANGED):
        raise AssertionError(f"{total} is not the sum of ts")


def main(folder: str, rows: str) -> None:
    spark = start_session(None)
    register_format(spark)
    print(json.dumps(play(spark, Path(folder), int(rows)) | play_writes(spark, Path(folder), int(rows))))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
