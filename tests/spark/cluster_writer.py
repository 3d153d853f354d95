"""A writer on a cluster, as a process of its own: one process has one Spark.

    python cluster_writer.py MASTER FOLDER WHAT

Prints what it found as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import hudi_locks
from hudi_locks import SystemClock
from hudi_locks.errors import HudiLocksError, SessionRefused
from hudi_locks.spark import HoodieTable, executors, register_format
from hudi_locks.storage import LocalStorage, StagedFile, register_storage

COLUMNS = "id string, month string, ts long, value double"
OPTIONS = {
    "hoodie.upsert.shuffle.parallelism": "4",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
    "hoodie.parquet.small.file.limit": "0",
}
NAMES = {"name": "t", "record_key": "id", "partition_by": "month", "ordering": "ts"}
IMPATIENT = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}
ELASTIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
    "spark.executor.cores": "2",
}
SETTINGS = {"stand-still": IMPATIENT, "elastic": ELASTIC}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
FIRST = [(f"k{number}", str(number % 3), 1, 1.0) for number in range(30)]
SECOND = [(f"k{number}", str(number % 3), 2, 2.0) for number in range(0, 60, 2)]


def rows_of(table: HoodieTable) -> list[list[Any]]:
    return sorted(list(row) for row in table.read(meta_columns=False).select("id", "month", "ts", "value").collect())


def expected() -> list[list[Any]]:
    newest = {row[0]: list(row) for row in (*FIRST, *SECOND)}
    return sorted(newest.values())


def write(spark: SparkSession, folder: Path, *, table_type: str) -> dict[str, Any]:
    """Both kinds of table: made, written twice, served, read."""
    options = {**OPTIONS, **(BUCKETS if table_type == "MERGE_ON_READ" else {})}
    table = HoodieTable.create(spark, folder / table_type, options=options, table_type=table_type, **NAMES)
    table.insert(spark.createDataFrame(FIRST, COLUMNS).repartition(4))
    table.upsert(spark.createDataFrame(SECOND, COLUMNS).repartition(4))
    service = table.compaction if table_type == "MERGE_ON_READ" else table.clustering
    served = service.run()
    found = {"rows": rows_of(table) == expected(), "served": bool(served), "executors": len(executors_of(spark))}
    return {**found, "unseen": look(spark, folder / table_type), "path": table.path}


def executors_of(spark: SparkSession) -> set[int]:
    """The executors, by the parents of their Python workers."""
    found = spark.sparkContext.parallelize(range(8), 8).mapPartitions(lambda _: [os.getppid()]).collect()
    return set(found)


class Elsewhere(LocalStorage):
    """What a folder that is not shared looks like: whoever unpickles it sees another one."""

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStorage, ("/nowhere/at/all",)


def look(spark: SparkSession, path: Path) -> str:
    """What is said of a table that the executors do not see."""
    executors._looked.clear()
    try:
        executors.check_executors(spark, Elsewhere(str(path)))
    except SessionRefused as error:
        return str(error)
    return "nothing"


def make(spark: SparkSession, path: Path | str) -> HoodieTable:
    table = HoodieTable.create(spark, path, options=OPTIONS, **NAMES)
    table.insert(spark.createDataFrame(FIRST, COLUMNS).repartition(4))
    return table


def upsert(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Two writes, and from where the executors have this package."""
    table = make(spark, folder / "t")
    table.upsert(spark.createDataFrame(SECOND, COLUMNS).repartition(4))
    found = spark.sparkContext.parallelize(range(4), 4).mapPartitions(lambda _: [hudi_locks.__file__]).distinct()
    return {"rows": rows_of(table) == expected(), "sources": found.collect()}


def write_by_format(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Both kinds of table, written twice and read by the format of Spark 4."""
    register_format(spark)
    options = {**OPTIONS, "hoodie.table.name": "t", "primaryKey": "id", "preCombineField": "ts"}
    options["hoodie.datasource.write.partitionpath.field"] = "month"
    found = {}
    for kind in ("cow", "mor"):
        path = str(folder / kind)
        for part in (FIRST, SECOND):
            rows = spark.createDataFrame(part, COLUMNS).repartition(4)
            rows.write.format("hudi_locks").mode("append").options(**options, type=kind).save(path)
        shown = spark.read.format("hudi_locks").load(path).select("id", "month", "ts", "value").collect()
        found[kind] = sorted(map(list, shown)) == rows_of(HoodieTable.load(spark, path)) == expected()
    return {"rows": found, "executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1}


def refuse(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Executors that cannot run our tasks."""
    try:
        HoodieTable.create(spark, folder / "t", name="t", record_key="id", options=OPTIONS)
    except HudiLocksError as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"error": None}


def survive(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """An executor dies while it reads the input, and one while it writes: Spark runs their tasks again elsewhere."""
    table = make(spark, folder / "t")
    mark = folder / "killed"

    def die_once(batches: Iterable[Any]) -> Iterator[Any]:
        if is_first(mark):
            executor = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)
            signal.pause()
        yield from batches

    rows = spark.createDataFrame(SECOND, COLUMNS).repartition(4).mapInArrow(die_once, COLUMNS)
    table.upsert(rows)
    return {"rows": rows_of(table) == expected(), "killed": mark.exists(), "files": count_of_names(folder / "t")}


@dataclass(frozen=True)
class Standing(StagedFile):
    """A file whose first writer stands still when all of it is written; who tries again does not."""

    file: StagedFile
    mark: Path

    @property
    def target(self) -> str:  # type: ignore[override]
        return self.file.target

    def open(self) -> pa.NativeFile:
        return self.file.open()

    def seal(self) -> str:
        if is_first(self.mark):
            signal.pause()
        return self.file.seal()

    def discard(self) -> None:
        self.file.discard()


class SlowOnce(LocalStorage):
    """Where a mark lies beside the table, a data file has such a writer."""

    def stage(self, target: str, *, instant: str) -> StagedFile:
        staged, folder = super().stage(target, instant=instant), Path(self.base).parent
        return Standing(staged, folder / "stood") if (folder / "armed").exists() else staged


def stand_still(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """A task stands still with its file written; Spark tries it again elsewhere, and kills it."""
    path = folder / "t"
    register_storage("slow", lambda _, __: SlowOnce(str(path)))
    table = make(spark, f"slow://{path}")
    (folder / "armed").touch()
    table.upsert(spark.createDataFrame(SECOND, COLUMNS).repartition(4))
    left = len(table.table.storage.list_staged())
    table.services.sweep()
    found = {"rows": rows_of(table) == expected(), "files": count_of_names(path), "stood": (folder / "stood").exists()}
    return {**found, "left": left, "swept": not table.table.storage.list_staged()}


def elastic(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """All executors are given back between two writes, with the shuffles that they keep."""
    table = make(spark, folder / "t")
    status, clock = spark.sparkContext._jsc.sc().getExecutorMemoryStatus, SystemClock()
    ends_s = clock.monotonic() + 120
    while status().size() > 1 and clock.monotonic() < ends_s:  # the driver is one
        clock.sleep(0.1)
    left = status().size() - 1
    table.upsert(spark.createDataFrame(SECOND, COLUMNS).repartition(4))
    return {"rows": rows_of(table) == expected(), "left": left, "files": count_of_names(folder / "t")}


def is_first(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def count_of_names(folder: Path) -> dict[str, int]:
    """How many base files there are of each instant; an attempt that was given up leaves none."""
    instants = [path.stem.rpartition("_")[2] for path in folder.glob("*/*.parquet")]
    return {instant: instants.count(instant) for instant in set(instants)}


def main(master: str, folder: Path, what: str) -> None:
    builder = SparkSession.builder.master(master).appName(what)
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4", "spark.executor.memory": "512m"}
    for key, value in {**settings, "spark.sql.adaptive.enabled": "false", "spark.cores.max": "4"}.items():
        builder = builder.config(key, value)
    for key, value in SETTINGS.get(what, {}).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    works = {
        "copy-on-write": lambda: write(spark, folder, table_type="COPY_ON_WRITE"),
        "merge-on-read": lambda: write(spark, folder, table_type="MERGE_ON_READ"),
        "refuse": lambda: refuse(spark, folder),
        "survive": lambda: survive(spark, folder),
        "stand-still": lambda: stand_still(spark, folder),
        "elastic": lambda: elastic(spark, folder),
        "upsert": lambda: upsert(spark, folder),
        "format": lambda: write_by_format(spark, folder),
    }
    sys.stdout.write(json.dumps(works[what]()) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
