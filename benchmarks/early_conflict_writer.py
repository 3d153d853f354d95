"""One of the two writers of the benchmark of early conflict detection: a Spark application of its own.

usage: python -m benchmarks.early_conflict_writer load TABLE DATA    makes the table, prints the order of its buckets
       python -m benchmarks.early_conflict_writer write TABLE        prints `ready`; then, for each job that is a line
                                                                     of JSON, what became of it
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.commits_side import LOCK
from benchmarks.lineitem_side import COLUMNS, KEY, choose_tenth, read_lines, start_session
from hudi_locks.observe import EARLY_CONFLICT_CHECK, Timing
from hudi_locks.spark import HoodieTable, WriteResult

__all__ = ["BUCKETS", "Done", "Job"]

BUCKETS = 100
_TASKS = 10
"""Of a write: a task costs PySpark's worker a tenth of a second and more, whatever it does."""
_DETECTION = "hoodie.write.concurrency.early.conflict.detection.enable"
_OPTIONS = {
    **LOCK,
    "hoodie.upsert.shuffle.parallelism": str(_TASKS),
    "hoodie.write.num.retries.on.conflict.failures": "5",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


@dataclass(frozen=True)
class Job:
    """An upsert of one row in ten of some buckets.

    Attributes:
        buckets: Which.
        detects: Whether conflicts are looked for early.
    """

    buckets: list[int]
    detects: bool


@dataclass(frozen=True)
class Done:
    """What became of a job; all times in seconds.

    Attributes:
        took_s: From the call to the commit, retries included.
        write_s: Of that the attempt that was committed, from begin to outcome.
        wasted_s: Of that the attempts that met a conflict.
        wasted_task_s: How long tasks of these attempts ran.
        task_s: How long tasks of the committed one ran.
        check_s: How long tasks looked at other writes; those that found one do not tell.
        early: Conflicts that were met before anything was written.
        late: Conflicts that were met at the publish.
    """

    took_s: float
    write_s: float
    wasted_s: float
    wasted_task_s: float
    task_s: float
    check_s: float
    early: int
    late: int


def load(path: str, data: str) -> None:
    spark = start_session(None)
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": BUCKETS, **_OPTIONS}
    table = HoodieTable.create(spark, path, name="lineitem", record_key=KEY, ordering="version", options=options)
    table.bulk_insert(read_lines(spark, data))
    print(json.dumps(_order_buckets(spark)), flush=True)
    spark.stop()


def _order_buckets(spark: SparkSession) -> list[int]:
    """As the tasks of a write on one core come to them: by the place to which Spark's hash sends them."""
    place = F.pmod(F.hash(F.lit(""), F.col("id").cast("int")), F.lit(_TASKS))
    return [int(row.id) for row in spark.range(BUCKETS).orderBy(place, "id").collect()]


class Application:
    """A Spark application on one core, with the table as a writer with detection and one without have it."""

    def __init__(self, path: str) -> None:
        self.spark = start_session(None, master="local[1]", memory="2g")
        self.spark.sparkContext.setLogLevel("OFF")  # a task that gives up is an error to Spark
        self._rows = {int(file.name[:8]): str(file) for file in Path(path).glob("*.parquet")}
        self._tables = {
            detects: HoodieTable.load(self.spark, path, options={**_OPTIONS, _DETECTION: detects})
            for detects in (True, False)
        }

    def warm(self) -> None:
        """Have Spark compile what every upsert needs, without a commit that others would meet."""
        self._choose([0]).write.format("noop").mode("overwrite").save()

    def run(self, job: Job) -> Done:
        table, rows = self._tables[job.detects], self._choose(job.buckets)
        checked_s, began_s = _read_checks(table), time.perf_counter()
        result = table.upsert(rows)
        took_s = time.perf_counter() - began_s
        *vain, whole = result.attempts
        return Done(
            took_s=took_s,
            write_s=whole.duration_s,
            wasted_s=result.wasted_s,
            wasted_task_s=sum(self._sum_tasks(attempt.instant) for attempt in vain),
            task_s=self._sum_tasks(whole.instant),
            check_s=_read_checks(table) - checked_s,
            **_count_conflicts(result),
        )

    def _choose(self, buckets: list[int]) -> DataFrame:
        """From the files that the load made."""
        rows = self.spark.read.parquet(*(self._rows[bucket] for bucket in buckets)).select(*COLUMNS, "version")
        return choose_tenth(rows)

    def _sum_tasks(self, instant: str) -> float:
        """What Spark's own record says of the jobs of an attempt, which carry its instant as a tag."""
        context: Any = self.spark.sparkContext._jsc.sc()  # noqa: SLF001  # PySpark tells no run times
        context.listenerBus().waitUntilEmpty()
        store = context.statusStore()
        jobs = _listed(store.jobsList(None))
        own = [job for job in jobs if f"hudi_locks-{instant}" in str(job.jobTags())]
        stages = {stage for job in own for stage in _listed(job.stageIds())}
        return float(sum(store.lastStageAttempt(stage).executorRunTime() for stage in stages)) / 1000


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _read_checks(table: HoodieTable) -> float:
    timing = table.metrics.snapshot().get(EARLY_CONFLICT_CHECK)
    return timing.total_s if isinstance(timing, Timing) else 0.0


def _count_conflicts(result: WriteResult) -> dict[str, int]:
    early = sum(conflict.is_early for conflict in result.conflicts)
    return {"early": early, "late": len(result.conflicts) - early}


def write(path: str) -> None:
    application = Application(path)
    application.warm()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(asdict(application.run(Job(**json.loads(line))))), flush=True)


def main(what: str, path: str, *data: str) -> None:
    if what == "load":
        load(path, *data)
    else:
        write(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
