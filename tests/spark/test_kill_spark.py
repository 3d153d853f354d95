"""A whole Spark writer that is killed; test_kill.py has every point, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

WRITER = """
import sys
from pyspark.sql import SparkSession
from hudi_locks.spark import HoodieTable
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = builder.config("spark.pyspark.python", sys.executable).config("spark.sql.shuffle.partitions", "1").getOrCreate()
rows = spark.createDataFrame([("a", "1", 2, 2.0), ("k", "1", 2, 2.0)], "id string, month string, ts long, value double")
HoodieTable.load(spark, sys.argv[1], options={"hoodie.upsert.shuffle.parallelism": "1"}).upsert(rows)
"""


def test_the_next_write_finishes_what_a_killed_spark_writer_claimed(
    spark: Any,
    create: Callable[..., HoodieTable],
    frame: Callable[..., Any],
    rows_of: Callable[..., list[tuple[Any, ...]]],
) -> None:
    table = create()
    table.upsert(frame([("a", "1", 1, 1.0)]))
    writer = subprocess.run(
        [sys.executable, "-c", WRITER, table.path],
        env={**os.environ, "HUDI_LOCKS_STOP_AT": "publish:claimed"},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert writer.returncode == -9, writer.stderr
    assert rows_of(table, "id", "ts") == [("a", 1)]
    for file in Path(table.path, ".hoodie/.heartbeat").iterdir():
        os.utime(file, (1_600_000_000, 1_600_000_000))  # as if an hour had passed
    table.upsert(frame([("b", "1", 1, 1.0)]))
    assert rows_of(table, "id", "ts") == [("a", 2), ("b", 1), ("k", 2)]
