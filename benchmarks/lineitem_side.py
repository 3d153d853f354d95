"""One side of the lineitem benchmark, in a process of its own: plain Parquet, this package, or JVM Hudi.

usage: python -m benchmarks.lineitem_side SIDE write|read DATA FOLDER JARS ENDPOINT

It prints one JSON object: seconds by job. JARS are what Spark needs besides, with commas between, or "". With ENDPOINT,
an S3 service, the table lies in its bucket and not below FOLDER; else it is "".
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.commits_side import Place
from hudi_locks.spark import HoodieTable

COLUMNS = (
    "l_orderkey", "l_linenumber", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount",
    "l_shipdate", "l_shipmode", "l_comment",
)  # fmt: skip
KEY = ("l_orderkey", "l_linenumber")
BUCKETS = 2
HUDI_OPTIONS = {
    "hoodie.table.name": "lineitem",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.recordkey.field": ",".join(KEY),
    "hoodie.datasource.write.partitionpath.field": "l_shipmode",
    "hoodie.datasource.write.precombine.field": "version",
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.bucket.index.hash.field": ",".join(KEY),
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.table.timeline.timezone": "UTC",
}
HUDI_CONF = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


def start_session(
    jars: str | None, *, master: str = "local[2]", memory: str = "6g", given: Mapping[str, str] | None = None
) -> SparkSession:
    """A session of plain Spark, or with jars, of which JVM Hudi's come first."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    is_hudi = "hudi" in (jars or "").partition(",")[0].rpartition("/")[2]
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **({"spark.jars": jars} if jars else {}),
        **(HUDI_CONF if is_hudi else {}),
        **(given or {}),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def read_lines(spark: SparkSession, data: str) -> DataFrame:
    return spark.read.parquet(data).select(*COLUMNS).withColumn("version", F.lit(1).cast("long"))


def choose_tenth(lines: DataFrame) -> DataFrame:
    """One row in ten, from every file group."""
    changed = lines.where(F.pmod(F.xxhash64(*KEY), F.lit(10)) == 0)
    return changed.withColumn("version", F.lit(2).cast("long")).withColumn("l_comment", F.lit("changed"))


def time_job(job: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    job()
    return round(time.perf_counter() - start_s, 2)


def time_read(read: Callable[[], DataFrame]) -> float:
    """The median of nine: the first reads of a session still compile."""
    return statistics.median(time_job(lambda: drain(read())) for _ in range(9))


def drain(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def write_plain(lines: DataFrame, path: str) -> dict[str, float]:
    spread = lines.repartition(7 * BUCKETS, "l_shipmode", F.pmod("l_orderkey", F.lit(BUCKETS)))
    return {"load": time_job(lambda: spread.write.parquet(path))}


def write_ours(lines: DataFrame, path: str) -> dict[str, float]:
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": BUCKETS}
    table = HoodieTable.create(
        lines.sparkSession,
        path,
        name="lineitem",
        record_key=KEY,
        partition_by="l_shipmode",
        ordering="version",
        options=options,
    )
    load = time_job(lambda: table.bulk_insert(lines))
    return {"load": load, "upsert": time_job(lambda: table.upsert(choose_tenth(lines)))}


def write_hudi(lines: DataFrame, path: str) -> dict[str, float]:
    def write(rows: DataFrame, operation: str) -> None:
        writer = rows.write.format("hudi").options(**HUDI_OPTIONS)
        writer.option("hoodie.datasource.write.operation", operation).mode("append").save(path)

    load = time_job(lambda: write(lines, "bulk_insert"))
    return {"load": load, "upsert": time_job(lambda: write(choose_tenth(lines), "upsert"))}


def read_plain(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.parquet(path)


def read_ours(spark: SparkSession, path: str) -> DataFrame:
    return HoodieTable.load(spark, path).read()


def read_hudi(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("hudi").load(path)


SIDES = {"plain": (write_plain, read_plain), "ours": (write_ours, read_ours), "hudi": (write_hudi, read_hudi)}


def find_base(side: str, place: Place) -> str:
    """The address of a side's table, in the scheme by which that side opens it."""
    return place.base if side == "ours" else place.base.replace("s3://", "s3a://")


def main(side: str, job: str, data: str, folder: str, jars: str = "", endpoint: str = "") -> None:
    place = Place(Path(folder), endpoint)
    spark = start_session(jars, given=place.spark_conf)
    lines = read_lines(spark, data)
    drain(lines)  # warms the session: every side pays Spark's first job here
    write, read = SIDES[side]
    path = find_base(side, place)
    found = write(lines, path) if job == "write" else {"read": time_read(lambda: read(spark, path))}
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
