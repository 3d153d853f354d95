"""The figures of the benchmark of metadata tables, in a process of its own.

usage: python -m benchmarks.metadata_table_side FOLDER FILES COMMITS JAR     prints medians, as JSON
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.lineitem_side import HUDI_CONF, start_session
from hudi_locks.services import drop_metadata_table
from hudi_locks.spark import HoodieTable

_PER_FILE = 500
_LOCK = {"hoodie.write.lock.provider": "filesystem", "hoodie.clean.automatic": "false"}
_ROUNDS = 5


def make_table(spark: SparkSession, path: str, files: int) -> None:
    """With JVM Hudi's defaults, each file with a range of `id` of its own; it makes the metadata table."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.recordkey.field": "key",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.precombine.field": "id",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.bulkinsert.sort.mode": "NONE",
        "hoodie.metadata.enable": "true",
    }
    rows = spark.range(0, files * _PER_FILE, 1, files).selectExpr("cast(id as string) key", "id", "id * 1.5D value")
    rows.write.format("hudi").options(**options).mode("overwrite").save(path)


def commit_in_turns(spark: SparkSession, tables: Mapping[str, HoodieTable], commits: int) -> dict[str, float]:
    took: dict[str, list[float]] = {f"{name}_{unit}": [] for name in tables for unit in ("s", "ms")}
    for number in range(commits):
        rows = spark.range(0, 10).selectExpr("cast(id as string) key", f"id + {number}L id", "1.0D value")
        for name, table in tables.items():
            began_s = time.perf_counter()
            result = table.upsert(rows)
            took[f"{name}_s"].append(time.perf_counter() - began_s)
            took[f"{name}_ms"].append(result.lock_held_ms)
    return {name: round(statistics.median(values[len(values) // 3 :]), 3) for name, values in took.items()}


def read_in_turns(counts: Mapping[str, Callable[[], int]], expected: int) -> dict[str, float]:
    took: dict[str, list[float]] = {name: [] for name in counts}
    for _ in range(_ROUNDS):
        for name, count in counts.items():
            began_s = time.perf_counter()
            assert count() == expected, name
            took[name].append(time.perf_counter() - began_s)
    return {f"{name}_s": round(statistics.median(values[1:]), 3) for name, values in took.items()}


def play(spark: SparkSession, folder: Path, files: int, commits: int) -> dict[str, float]:
    kept, dropped = str(folder / "kept"), str(folder / "dropped")
    make_table(spark, kept, files)
    shutil.copytree(kept, dropped)
    drop_metadata_table(dropped, _LOCK)
    first = files // 2 * _PER_FILE
    where = f"id between {first + 5} and {first + 104}"
    plain = HoodieTable.load(spark, kept, options={**_LOCK, "hoodie.enable.data.skipping": "false"})
    skipping = HoodieTable.load(spark, kept, options=_LOCK)
    theirs = spark.read.format("hudi").option("hoodie.metadata.enable", "true")
    counts: dict[str, Callable[[], int]] = {
        "plain": lambda: plain.read(where=where).count(),
        "skipping": lambda: skipping.read(where=where).count(),
        "jvm": lambda: theirs.load(kept).where(where).count(),
    }
    opened = {"opened": skipping.read(where=where), "all": plain.read(where=where)}
    tables = {"kept": skipping, "dropped": HoodieTable.load(spark, dropped, options=_LOCK)}
    return {
        **{name: len(rows.inputFiles()) for name, rows in opened.items()},
        **read_in_turns(counts, 100),
        **commit_in_turns(spark, tables, commits),
    }


def main(folder: str, files: str, commits: str, jar: str) -> None:
    spark = start_session(None, memory="3g", given={**HUDI_CONF, "spark.driver.extraClassPath": jar})
    print(json.dumps(play(spark, Path(folder), int(files), int(commits))))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
