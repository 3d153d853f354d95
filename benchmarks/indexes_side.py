"""One side of the benchmark of indexes, in a process of its own: this package or JVM Hudi.

usage: python -m benchmarks.indexes_side ours|hudi INDEX DATA PATH JARS

It loads lineitem, upserts one row in ten, and prints the seconds of the upsert.
"""

from __future__ import annotations

import shutil
import sys

from pyspark.sql import DataFrame

from benchmarks.lineitem_side import (
    HUDI_OPTIONS,
    KEY,
    choose_tenth,
    drain,
    read_hudi,
    read_lines,
    read_ours,
    start_session,
    time_job,
)
from hudi_locks.spark import HoodieTable

INDEX = "hoodie.index.type"
TABLE_TYPE = "hoodie.datasource.write.table.type"
WITH_METADATA = {"hoodie.metadata.enable": "true"}
BUCKETS = {INDEX: "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
INDEXES: dict[str, dict[str, str]] = {
    "SIMPLE": {INDEX: "SIMPLE"},
    "BLOOM": {INDEX: "BLOOM"},
    "GLOBAL_SIMPLE": {INDEX: "GLOBAL_SIMPLE"},
    "GLOBAL_BLOOM": {INDEX: "GLOBAL_BLOOM"},
    "RECORD_INDEX": {
        **WITH_METADATA,
        INDEX: "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
    "RECORD_LEVEL_INDEX": {
        **WITH_METADATA,
        INDEX: "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.write.table.version": "9",  # earlier ones do not have it
        "hoodie.embed.timeline.server": "true",  # JVM Hudi 1.2.0 fails without it
    },
    "BUCKET": BUCKETS,
    "CONSISTENT_HASHING": {
        **BUCKETS,
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        TABLE_TYPE: "MERGE_ON_READ",  # JVM Hudi has it nowhere else
    },
}


def write_ours(lines: DataFrame, path: str, index: str) -> float:
    options = dict(INDEXES[index])
    table = HoodieTable.create(
        lines.sparkSession,
        path,
        name="lineitem",
        table_type=options.pop(TABLE_TYPE, "COPY_ON_WRITE"),
        record_key=KEY,
        partition_by="l_shipmode",
        ordering="version",
        options=options,
    )
    table.bulk_insert(lines)
    return time_job(lambda: table.upsert(choose_tenth(lines)))


def write_hudi(lines: DataFrame, path: str, index: str) -> float:
    plain = {key: value for key, value in HUDI_OPTIONS.items() if "index" not in key}
    given = {**plain, **INDEXES[index]}

    def write(rows: DataFrame, operation: str) -> None:
        writer = rows.write.format("hudi").options(**given)
        writer.option("hoodie.datasource.write.operation", operation).mode("append").save(path)

    write(lines, "bulk_insert")
    return time_job(lambda: write(choose_tenth(lines), "upsert"))


def main(side: str, index: str, data: str, path: str, jars: str = "") -> None:
    spark = start_session(jars)
    lines = read_lines(spark, data)
    drain(lines)  # warms the session: both sides pay Spark's first job here
    write, read = (write_ours, read_ours) if side == "ours" else (write_hudi, read_hudi)
    seconds = write(lines, path, index)
    wanted = [lines.count(), choose_tenth(lines).count()]
    if [rows.count() for rows in (read(spark, path), read(spark, path).where("version = 2"))] != wanted:
        raise AssertionError(f"{side} by {index} has other rows than were written")
    print(seconds)
    spark.stop()
    shutil.rmtree(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
