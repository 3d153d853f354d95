"""One application of the benchmark of non-blocking writers: a process pinned to a core that upserts or compacts.

usage: python -m benchmarks.nbcc_writer load FOLDER DATA          makes one table for each mode
       python -m benchmarks.nbcc_writer write FOLDER DATA CORE NUMBER
       python -m benchmarks.nbcc_writer compact FOLDER CORE

Once it works it prints `ready`; then, for each turn that is a line of JSON, what became of it.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from pyspark.sql import functions as F  # noqa: N812

from benchmarks.commits_side import LOCK
from benchmarks.lineitem_side import BUCKETS, KEY, read_lines, start_session
from benchmarks.processor import read_cpu
from hudi_locks import HudiLocksError
from hudi_locks.spark import HoodieTable, WriteResult

__all__ = ["MODES", "Done", "Turn"]

MODES = ("NON_BLOCKING_CONCURRENCY_CONTROL", "optimistic_concurrency_control")
SHARE = 50
"""An upsert has one row in so many, from every file group."""
_OPTIONS = {
    **LOCK,
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.write.num.retries.on.conflict.failures": "20",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


@dataclass(frozen=True)
class Turn:
    """What an application is to do.

    Attributes:
        mode: Under which concurrency mode, each of which has a table of its own.
        seconds: For how long work is begun.
    """

    mode: str
    seconds: float


@dataclass(frozen=True)
class Done:
    """What became of a turn.

    Attributes:
        took_s: Until the end of the last write.
        cpu_s: Processor time of the application, JVM and Python workers together, in seconds.
        commits: Writes that were committed.
        rows: Rows that they brought.
        retries: Attempts that met a conflict, and were made again.
        failed: Writes that were given up, all retries being used up.
        wasted_s: What the attempts that met a conflict took, in seconds.
    """

    took_s: float
    cpu_s: float
    commits: int = 0
    rows: int = 0
    retries: int = 0
    failed: int = 0
    wasted_s: float = 0.0


def _name(folder: str, mode: str) -> str:
    return f"{folder}/{mode.split('_')[0].lower()}"


def load(folder: str, data: str) -> None:
    spark = start_session(None)
    for mode in MODES:
        options = {**_OPTIONS, "hoodie.write.concurrency.mode": mode}
        table = HoodieTable.create(
            spark,
            _name(folder, mode),
            name="lineitem",
            record_key=KEY,
            partition_by="l_shipmode",
            ordering="version",
            table_type="MERGE_ON_READ",
            options=options,
        )
        table.insert(read_lines(spark, data))
        table.compaction.run()
    spark.stop()


class Application:
    """A Spark application on one core, with a table for each mode."""

    def __init__(self, folder: str, core: str) -> None:
        os.sched_setaffinity(0, {int(core)})  # before the JVM and its workers, which inherit it
        self.spark = start_session(None, master="local[1]", memory="1500m")
        self.spark.sparkContext.setLogLevel("OFF")
        self.tables = {
            mode: HoodieTable.load(
                self.spark, _name(folder, mode), options={**_OPTIONS, "hoodie.write.concurrency.mode": mode}
            )
            for mode in MODES
        }

    def work(self, turn: Turn, write: Callable[[HoodieTable], WriteResult | None]) -> Done:
        """Write again and again."""
        results: list[WriteResult] = []
        failed, wasted_s, began_s = 0, 0.0, time.perf_counter()
        cpu_s = read_cpu()
        while time.perf_counter() - began_s < turn.seconds:
            tried_s = time.perf_counter()
            try:
                results.extend(filter(None, [write(self.tables[turn.mode])]))
            except HudiLocksError:
                failed, wasted_s = failed + 1, wasted_s + time.perf_counter() - tried_s
        return Done(
            took_s=time.perf_counter() - began_s,
            cpu_s=read_cpu() - cpu_s,
            commits=len(results),
            rows=sum(result.rows_written for result in results),
            retries=sum(result.retries for result in results),
            failed=failed,
            wasted_s=wasted_s + sum(result.wasted_s for result in results),
        )

    def serve(self, write: Callable[[HoodieTable], WriteResult | None]) -> None:
        """Take turns from the standard input."""
        for mode in MODES:
            write(self.tables[mode])  # the first write of an application compiles
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(asdict(self.work(Turn(**json.loads(line)), write))), flush=True)


def write(folder: str, data: str, core: str, number: str) -> None:
    application, versions = Application(folder, core), itertools.count(2)
    chosen = F.pmod(F.xxhash64(*KEY), F.lit(SHARE)) == int(number)
    rows = read_lines(application.spark, data).where(chosen).drop("version").coalesce(1).persist()
    rows.count()
    application.serve(lambda table: table.upsert(rows.withColumn("version", F.lit(next(versions)).cast("long"))))


def compact(folder: str, core: str) -> None:
    Application(folder, core).serve(HoodieTable.compact)


def main(what: str, *words: str) -> None:
    jobs: dict[str, Callable[..., None]] = {"load": load, "write": write, "compact": compact}
    jobs[what](*words)


if __name__ == "__main__":
    main(*sys.argv[1:])
