"""One side of the benchmark of merge-on-read tables, in a process of its own: this package, JVM Hudi, or plain Parquet.

usage: python -m benchmarks.nbcc_peers_side SIDE write|read DATA FOLDER [JAR]    prints what was measured, as JSON
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.lineitem_side import (
    BUCKETS,
    HUDI_OPTIONS,
    KEY,
    drain,
    read_hudi,
    read_lines,
    read_ours,
    read_plain,
    start_session,
)
from benchmarks.nbcc_tables import PEER_LOGS, READS, create_table, make_upsert, measure, take_medians

_HUDI_OPTIONS = {
    **HUDI_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.clean.automatic": "false",
}


def write_ours(lines: DataFrame, path: str) -> dict[str, float]:
    table = create_table(lines.sparkSession, path, table_type="MERGE_ON_READ")
    table.insert(lines)
    table.compaction.run()
    return _time_upserts(lambda number: table.upsert(make_upsert(lines, number)))


def write_hudi(lines: DataFrame, path: str) -> dict[str, float]:
    def write(rows: DataFrame, operation: str) -> None:
        writer = rows.write.format("hudi").options(**_HUDI_OPTIONS)
        writer.option("hoodie.datasource.write.operation", operation).mode("append").save(path)

    write(lines, "bulk_insert")
    return _time_upserts(lambda number: write(make_upsert(lines, number), "upsert"))


def write_plain(lines: DataFrame, path: str) -> dict[str, float]:
    """The rows as they are after the last upsert."""
    unchanged = lines.where(F.pmod(F.xxhash64(*KEY), F.lit(10)) != 0)
    whole = unchanged.unionByName(make_upsert(lines, PEER_LOGS))
    whole.repartition(7 * BUCKETS, "l_shipmode", F.pmod("l_orderkey", F.lit(BUCKETS))).write.parquet(path)
    return {}


def _time_upserts(upsert: Callable[[int], object]) -> dict[str, float]:
    """The medians; the first of a session compiles."""
    return _name("upsert", take_medians([measure(partial(upsert, n)) for n in range(1, PEER_LOGS + 1)]))


def _name(job: str, found: dict[str, float]) -> dict[str, float]:
    return {f"{job} {what}": value for what, value in found.items()}


SIDES = {"plain": (write_plain, read_plain), "ours": (write_ours, read_ours), "hudi": (write_hudi, read_hudi)}


def read(spark: SparkSession, side: str, path: str) -> dict[str, float]:
    """How long a snapshot takes; then what is in it, for a comparison of the sides."""
    made = SIDES[side][1]
    took = take_medians([measure(lambda: drain(made(spark, path))) for _ in range(READS)])
    [row] = made(spark, path).agg(F.count("*").alias("rows"), F.sum("version").alias("versions")).collect()
    return {**_name("read", took), "rows": row.rows, "versions": row.versions}


def main(side: str, job: str, data: str, folder: str, jar: str | None = None) -> None:
    spark = start_session(jar)
    lines = read_lines(spark, data)
    drain(lines)  # warms the session: every side pays Spark's first job here
    path = str(Path(folder) / side)
    print(json.dumps(SIDES[side][0](lines, path) if job == "write" else read(spark, side, path)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
