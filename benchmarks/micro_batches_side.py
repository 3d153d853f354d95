"""One side of the benchmark of micro-batches, in a process of its own: this package or JVM Hudi.

usage: python -m benchmarks.micro_batches_side SIDE KIND BATCHES FOLDER [JAR]     prints medians in seconds, as JSON
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from benchmarks.lineitem_side import HUDI_OPTIONS, drain, read_hudi, read_ours, start_session
from benchmarks.nbcc_tables import measure
from hudi_locks.spark import HoodieTable

_ROWS = 100
_BUCKETS = 2
_WARM = 3
"""The first third of the batches lets the JVM compile."""


def open_ours(spark: SparkSession, path: str, kind: str) -> Callable[[DataFrame], object]:
    options = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": _BUCKETS,
        "hoodie.clean.automatic": "false",
    }
    table = HoodieTable.create(
        spark, path, name="events", record_key="id", ordering="version", table_type=kind, options=options
    )
    return table.upsert


def open_hudi(_: SparkSession, path: str, kind: str) -> Callable[[DataFrame], object]:
    options = {
        **HUDI_OPTIONS,
        "hoodie.table.name": "events",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.bucket.index.hash.field": "id",
        "hoodie.bucket.index.num.buckets": str(_BUCKETS),
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
    }
    return lambda rows: rows.write.format("hudi").options(**options).mode("append").save(path)


SIDES = {"ours": (open_ours, read_ours), "hudi": (open_hudi, read_hudi)}


def play(spark: SparkSession, side: str, kind: str, batches: int, path: str) -> dict[str, float]:
    """A batch, then a snapshot, and so on."""
    open_table, read = SIDES[side]
    upsert = open_table(spark, path, kind)
    took: dict[str, list[float]] = {"upsert": [], "snapshot": []}
    for number in range(batches):
        rows = spark.range(0, _ROWS, 1, _BUCKETS).selectExpr("id", f"{number}L version", "cast(rand() as string) label")
        took["upsert"].append(measure(partial(upsert, rows))["took_s"])
        took["snapshot"].append(measure(lambda: drain(read(spark, path)))["took_s"])
    medians = {job: round(statistics.median(times[len(times) // _WARM :]), 3) for job, times in took.items()}
    return {**medians, "rows": read(spark, path).where(f"version = {batches - 1}").count()}


def main(side: str, kind: str, batches: str, folder: str, jar: str | None = None) -> None:
    spark = start_session(jar, memory="2g")
    print(json.dumps(play(spark, side, kind, int(batches), f"{folder}/{side}")))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
