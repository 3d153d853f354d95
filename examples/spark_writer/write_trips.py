"""Upsert a few trips into a Hudi table that other writers may use at the same time.

usage: write_trips.py TABLE_PATH
"""

import os
import sys

from pyspark.sql import SparkSession

from hudi_locks.errors import NotATable
from hudi_locks.spark import HoodieTable

SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.write.num.retries.on.conflict.failures": 3,
}


def open_table(spark: SparkSession, path: str) -> HoodieTable:
    try:
        return HoodieTable.load(spark, path, options=SHARED)
    except NotATable:
        return HoodieTable.create(
            spark, path, name="trips", record_key="id", partition_by="city", ordering="ts", options=SHARED
        )


def main(path: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # executors run the interpreter that has the packages
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    trips = spark.createDataFrame(
        [(1, "Berlin", 10, 7.5), (2, "Lagos", 11, 4.0), (3, "Lima", 12, 9.25)],
        "id long, city string, ts long, fare double",
    )
    with open_table(spark, path) as table:
        result = table.upsert(trips)
        print(f"{result.rows_inserted} inserted, {result.rows_updated} updated, {table.read().count()} rows in all")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
