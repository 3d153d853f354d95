"""The figures of the benchmark of the record index, in a process of its own.

usage: python -m benchmarks.record_index_side FOLDER ROWS BATCH BATCH JAR     prints medians, as JSON
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.lineitem_side import HUDI_CONF, start_session
from hudi_locks.spark import HoodieTable

_PARTITIONS = 100
_ROUNDS = 3
_QUIET = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
}
_INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


def make_rows(ids: DataFrame, ts: int, *, key: str = "user-%012d", partitions: int = _PARTITIONS) -> DataFrame:
    """Each key in a partition of its own for good."""
    return ids.select(
        F.format_string(key, "id").alias("key"),
        F.format_string("p%02d", F.col("id") % partitions).alias("part"),
        F.lit(ts).cast("long").alias("ts"),
        (F.col("id") * 1.5).alias("value"),
    )


def write_by_jvm(rows: DataFrame, path: str, operation: str, **more: str) -> None:
    options = {**_QUIET, "hoodie.datasource.write.operation": operation, **more}
    rows.write.format("hudi").options(**options).mode("append").save(path)


def make_table(spark: SparkSession, path: str, rows: int) -> None:
    """Its index has base files, since it was made when the rows were there."""
    write_by_jvm(make_rows(spark.range(0, rows, 1, 8), 1), path, "bulk_insert")
    write_by_jvm(make_rows(spark.range(0, 1), 2), path, "upsert", **_INDEXED)


def draw(spark: SparkSession, rows: int, batch: int, turn: int) -> DataFrame:
    """Keys of one partition, spread over all of its rows."""
    within = rows // _PARTITIONS
    picked = spark.range(0, min(batch, within), 1, 2)
    return make_rows(picked.selectExpr(f"(id * 7919 % {within}) * {_PARTITIONS} + {turn} AS id"), 3 + turn)


def play(spark: SparkSession, folder: Path, rows: int, batches: tuple[int, ...]) -> dict[str, float]:
    paths = {name: str(folder / name) for name in ("record", "simple", "jvm")}
    make_table(spark, paths["record"], rows)
    for name in ("simple", "jvm"):
        shutil.copytree(paths["record"], paths[name])
    lock = {"hoodie.write.lock.provider": "filesystem", "hoodie.clean.automatic": "false"}
    ours = {
        name: HoodieTable.load(spark, paths[name], options={**lock, "hoodie.index.type": kind})
        for name, kind in (("record", "RECORD_INDEX"), ("simple", "GLOBAL_SIMPLE"))
    }
    writers: dict[str, Callable[[DataFrame], object]] = {
        "record": ours["record"].upsert,
        "simple": ours["simple"].upsert,
        "jvm": lambda frame: write_by_jvm(frame, paths["jvm"], "upsert", **_INDEXED),
    }
    took: dict[str, list[float]] = {}
    for batch in batches:
        for turn in range(_ROUNDS):
            for name, write in writers.items():
                began_s = time.perf_counter()
                write(draw(spark, rows, batch, turn))
                took.setdefault(f"{name}_{batch}", []).append(time.perf_counter() - began_s)
    for table in ours.values():
        assert table.read().count() == rows
    return {name: round(statistics.median(values), 2) for name, values in took.items()}


def main(folder: str, rows: str, first: str, second: str, jar: str) -> None:
    given = {**HUDI_CONF, "spark.driver.extraClassPath": jar, "spark.ui.showConsoleProgress": "false"}
    spark = start_session(None, memory="6g", given=given)
    print(json.dumps(play(spark, Path(folder), int(rows), (int(first), int(second)))))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
