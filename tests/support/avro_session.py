"""Ingest jobs in a process whose Spark has its package for Avro, which the session that tests share has not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from hudi_locks_conformance.servers.cache import fetch_maven
from waiting import until

__all__ = ["MESSAGES", "AvroSession", "JobWords", "fetch_packages", "follow_job", "open_avro_session", "write_messages"]

MESSAGES: Final = "topic string, partition int, offset long, value binary"
"""Of what Spark's Kafka source gives, the columns that ingest jobs read."""
_DEADLINE_S: Final = 600.0


def fetch_packages(*names: str) -> str:
    """Packages of the Spark that runs, such as spark-avro, and what they need and it has not; with commas.

    Raises:
        ServerUnavailable: Maven is missing, or could not get them.
    """
    import pyspark

    own = {jar.name for jar in Path(pyspark.__file__).parent.joinpath("jars").glob("*.jar")}
    scala = next(match[1] for name in own if (match := re.match(r"spark-core_([\d.]+)-", name)))
    wanted = [f"org.apache.spark:{name}_{scala}:{pyspark.__version__}" for name in names]
    folder = fetch_maven("-".join(names), wanted)
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")) if jar.name not in own)


def write_messages(folder: Path, topic: str, values: Mapping[int, bytes | None]) -> None:
    """Add messages of partition 3 of a topic, by their offsets, in place of a broker's."""
    folder.mkdir(exist_ok=True)
    rows = [{"topic": topic, "partition": 3, "offset": offset, "value": value} for offset, value in values.items()]
    schema = pa.schema(
        [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{min(values)}.parquet")


@dataclass(frozen=True)
class JobWords:
    """What a job of these tests is made of.

    Attributes:
        path: Base path of the table.
        messages: Folder of `write_messages`; None where the options name a source of files.
        options: Hudi's keys.
        settings: Fields of `IngestSettings`.
        batches: With how many a continuous job is stopped.
    """

    path: str
    messages: Path | None
    options: Mapping[str, str]
    settings: Mapping[str, Any]
    batches: int = 0


class AvroSession:
    """Runs jobs, one after the other; errors come back as what they were."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def start(self, run: Callable[[Any, JobWords], Any], words: JobWords) -> Future[Any]:
        return self._pool.submit(_call, run, words)

    def run(self, words: JobWords) -> Any:
        """The report of a job that ends with what is there."""
        return self.start(run_job, words).result(_DEADLINE_S)


@contextmanager
def open_avro_session() -> Iterator[AvroSession]:
    """A session of its own, for the length of the block.

    Raises:
        ServerUnavailable: See `fetch_packages`.
    """
    jars = fetch_packages("spark-avro")
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_open, initargs=(jars,))
    try:
        yield AvroSession(pool)
    finally:
        for process in (pool._processes or {}).values():
            process.kill()  # a job that hangs must not keep the run
        pool.shutdown()


def run_job(spark: Any, words: JobWords) -> Any:
    """Read what is there, and end. Runs in the process of the session."""
    with _open_job(spark, words) as job:
        return job.run()


def follow_job(spark: Any, words: JobWords) -> Any:
    """Go on until so many batches are written. Runs in the process of the session."""
    with _open_job(spark, words) as job, ThreadPoolExecutor(1) as threads:
        running = threads.submit(job.run)
        assert until(lambda: running.done() or job.report().batches >= words.batches, _DEADLINE_S, every_s=0.1)
        for query in spark.streams.active:
            query.stop()
        return running.result(_DEADLINE_S)


@contextmanager
def _open_job(spark: Any, words: JobWords) -> Iterator[Any]:
    from hudi_locks.config import Options
    from hudi_locks.ingest import IngestJob, IngestSettings, find_schema, open_source
    from hudi_locks.ingest.messages import decode_avro
    from hudi_locks.spark.datasource import open_table

    options = Options(dict(words.options))

    def open_rows() -> Any:
        if words.messages is None:
            return open_source(spark, "avro", options, schema=find_schema(options))
        reader = spark.readStream.schema(MESSAGES).option("maxFilesPerTrigger", 1)
        return decode_avro(reader.parquet(str(words.messages)), options)

    with open_table(spark, words.path, options) as table:
        yield IngestJob(table, open_rows(), IngestSettings(**words.settings), reopen=open_rows)


_opened: list[Any] = []
"""The session of the process that this module is imported in for jobs."""


def _open(jars: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("hudi-locks ingest tests").config("spark.jars", jars)
    for name, value in {"driver.memory": "1g", "log.level": "OFF", "sql.shuffle.partitions": "2"}.items():
        builder = builder.config(f"spark.{name}", value)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    _opened.append(builder.getOrCreate())


def _call(run: Callable[[Any, JobWords], Any], words: JobWords) -> Any:
    return run(_opened[0], words)
