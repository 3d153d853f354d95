"""A Spark session with a connector for S3 reads a table: `python connector_reader.py PATH`.

Its input is JSON: `options` of the table, and `spark`, the settings of the session. It writes JSON: the files that
Spark itself read and the rows, before and after the session is told the right secret.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from table_lives import collect

from hudi_locks.spark import HoodieTable
from hudi_locks.spark.reading import files

_SECRET = "fs.s3a.secret.key"


def start_session(settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.log.level", "OFF")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def look(spark: SparkSession, path: str, options: Mapping[str, str]) -> dict[str, Any]:
    found = HoodieTable.load(spark, path, options=options).read()
    return {"files": sorted(found.inputFiles()), "rows": collect(found)}


def main(path: str) -> None:
    given = json.load(sys.stdin)
    settings = given["spark"]
    settings["spark.jars"] = settings.pop("jars")
    secret = settings[f"spark.hadoop.{_SECRET}"]
    spark = start_session({**settings, f"spark.hadoop.{_SECRET}": "wrong"})
    files._LARGE_BYTES = 1  # type: ignore[misc]
    wrong = look(spark, path, given["options"])
    spark._jsc.hadoopConfiguration().set(_SECRET, secret)
    json.dump({"wrong": wrong, "right": look(spark, path, given["options"])}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
