"""The figures of the benchmark of lookups of keys, in a process of its own.

usage: python -m benchmarks.key_lookup_side FOLDER ROWS JAR INDEX...     prints medians, as JSON
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.lineitem_side import HUDI_CONF, start_session
from hudi_locks.spark import HoodieTable

_PARTITIONS = 4
_ROUNDS = 3
_BATCH = 1_000
_OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "8",
}


def make_rows(ids: DataFrame, ts: int) -> DataFrame:
    """Keys that grow with time, each in a partition of its own for good."""
    return ids.select(
        F.format_string("%012d-9f86d081884c7d65", "id").alias("key"),
        F.format_string("p%02d", F.col("id") % _PARTITIONS).alias("part"),
        F.lit(ts).cast("long").alias("ts"),
        (F.col("id") * 1.5).alias("value"),
    )


def write_by_jvm(rows: DataFrame, path: str, operation: str, index: str) -> None:
    options = {**_OPTIONS, "hoodie.datasource.write.operation": operation, "hoodie.index.type": index}
    rows.write.format("hudi").options(**options).mode("append").save(path)


def play(spark: SparkSession, folder: Path, rows: int, indexes: Sequence[str]) -> dict[str, float]:
    made = str(folder / "made")
    write_by_jvm(make_rows(spark.range(0, rows, 1, 8), 1), made, "bulk_insert", indexes[0])
    took: dict[str, list[float]] = {}
    for index in indexes:
        ours, theirs = (str(folder / f"{index}_{side}") for side in ("ours", "jvm"))
        for path in (ours, theirs):
            shutil.copytree(made, path)
        lock = {"hoodie.write.lock.provider": "filesystem", "hoodie.clean.automatic": "false"}
        table = HoodieTable.load(spark, ours, options={**lock, "hoodie.index.type": index})
        for turn in range(_ROUNDS):
            for side in ("ours", "jvm"):
                newest = make_rows(spark.range(rows - _BATCH, rows, 1, 2), 2 + turn)
                began_s = time.perf_counter()
                table.upsert(newest) if side == "ours" else write_by_jvm(newest, theirs, "upsert", index)
                took.setdefault(f"{side}_{index}", []).append(time.perf_counter() - began_s)
        assert table.read().where(f"ts = {1 + _ROUNDS}").count() == _BATCH
    return {name: round(statistics.median(values), 2) for name, values in took.items()}


def main(folder: str, rows: str, jar: str, *indexes: str) -> None:
    given = {**HUDI_CONF, "spark.driver.extraClassPath": jar, "spark.ui.showConsoleProgress": "false"}
    spark = start_session(None, memory="6g", given=given)
    print(json.dumps(play(spark, Path(folder), int(rows), indexes)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
