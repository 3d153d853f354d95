"""A job of PySpark 4 that knows the format `hudi_locks` alone.

    python data_source_job.py PATH OPTIONS [ROWS]

Appends the rows, if there are any, and prints those of the table; all three but the path as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

from hudi_locks.spark import register_format

_SCHEMA = "id string, region string, ts long, value double, label string"


def run(path: str, options: dict[str, str], rows: list[Any]) -> list[list[Any]]:
    """The rows of the table after the write."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    register_format(spark)
    if rows:
        frame = spark.createDataFrame([tuple(row) for row in rows], _SCHEMA).repartition(2)
        frame.write.format("hudi_locks").mode("append").options(**options).save(path)
    columns = [column.split()[0] for column in _SCHEMA.split(", ")]
    shown = spark.read.format("hudi_locks").options(**options).load(path).select(*columns).collect()
    return sorted(list(row) for row in shown)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]))) + "\n")
