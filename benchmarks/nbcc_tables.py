"""Merge-on-read tables of lineitem rows for benchmarks, and what jobs on them take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.lineitem_side import BUCKETS, KEY, choose_tenth
from benchmarks.processor import read_cpu
from hudi_locks.spark import HoodieTable

__all__ = [
    "LOGS",
    "PEER_LOGS",
    "READS",
    "create_table",
    "make_small_upsert",
    "make_upsert",
    "measure",
    "take_medians",
]

LOGS: Final = (1, 3, 10)
"""So many upserts lie above the base files when reads are measured."""
PEER_LOGS: Final = 3
"""The same where JVM Hudi does it too, which takes its time."""
READS: Final = 5
_OPTIONS: Final = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": BUCKETS,
    "hoodie.clean.automatic": "false",
}


def create_table(spark: SparkSession, path: str, *, table_type: str, one_slice: bool = False) -> HoodieTable:
    """An empty table of lineitem rows, in two file groups of each ship mode or all in one."""
    return HoodieTable.create(
        spark,
        path,
        name="lineitem",
        record_key=KEY,
        partition_by=() if one_slice else "l_shipmode",
        ordering="version",
        table_type=table_type,
        options=_OPTIONS | ({"hoodie.bucket.index.num.buckets": 1} if one_slice else {}),
    )


def make_upsert(lines: DataFrame, number: int) -> DataFrame:
    """One row in ten, newer than those before."""
    return choose_tenth(lines).withColumn("version", F.lit(number + 1).cast("long"))


def make_small_upsert(lines: DataFrame, number: int) -> DataFrame:
    """One row in a hundred, newer than those before, and for each number another."""
    changed = lines.where(F.pmod(F.xxhash64(*KEY), F.lit(100)) == number)
    newer = changed.withColumn("version", F.lit(number + 1).cast("long"))
    return newer.withColumn("l_comment", F.lit("changed"))


def measure(job: Callable[[], object]) -> dict[str, float]:
    """Time and processor time of this process, its JVM and its workers, in seconds."""
    cpu_s, began_s = read_cpu(), time.perf_counter()
    job()
    return {"took_s": time.perf_counter() - began_s, "cpu_s": read_cpu() - cpu_s}


def take_medians(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(statistics.median(one[name] for one in found), 3) for name in found[0]}
