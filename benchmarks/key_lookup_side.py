"""The figures of the benchmark of lookups of keys, in a process of its own.

usage: python -m benchmarks.key_lookup_side FOLDER ROWS JAR INDEX...     prints medians, as JSON
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.lineitem_side import HUDI_CONF, start_session
from benchmarks.record_index_side import make_rows, write_by_jvm
from hudi_locks.spark import HoodieTable

_PARTITIONS = 4
_ROUNDS = 3
_BATCH = 1_000
_OPTIONS = {
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.bulkinsert.shuffle.parallelism": "8",
}


def make_growing(ids: DataFrame, ts: int) -> DataFrame:
    """Keys that grow with time."""
    return make_rows(ids, ts, key="%012d-9f86d081884c7d65", partitions=_PARTITIONS)


def play(spark: SparkSession, folder: Path, rows: int, indexes: Sequence[str]) -> dict[str, float]:
    made = str(folder / "made")
    write_by_jvm(make_growing(spark.range(0, rows, 1, 8), 1), made, "bulk_insert", **_OPTIONS)
    took: dict[str, list[float]] = {}
    for index in indexes:
        asked = {"hoodie.index.type": index}
        ours, theirs = (str(folder / f"{index}_{side}") for side in ("ours", "jvm"))
        for path in (ours, theirs):
            shutil.copytree(made, path)
        lock = {"hoodie.write.lock.provider": "filesystem", "hoodie.clean.automatic": "false"}
        table = HoodieTable.load(spark, ours, options={**lock, **asked})
        for turn in range(_ROUNDS):
            for side in ("ours", "jvm"):
                newest = make_growing(spark.range(rows - _BATCH, rows, 1, 2), 2 + turn)
                began_s = time.perf_counter()
                if side == "ours":
                    table.upsert(newest)
                else:
                    write_by_jvm(newest, theirs, "upsert", **_OPTIONS, **asked)
                took.setdefault(f"{side}_{index}", []).append(time.perf_counter() - began_s)
        assert table.read().where(f"ts = {1 + _ROUNDS}").count() == _BATCH
    return {name: round(statistics.median(values), 2) for name, values in took.items()}


def main(folder: str, rows: str, jar: str, *indexes: str) -> None:
    given = {**HUDI_CONF, "spark.driver.extraClassPath": jar, "spark.ui.showConsoleProgress": "false"}
    spark = start_session(None, memory="6g", given=given)
    print(json.dumps(play(spark, Path(folder), int(rows), indexes)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
