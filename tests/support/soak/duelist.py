"""One of two writers that meet on a table: a Spark application, told on standard input what to do.

Run as `python -m soak.duelist`. Each line in and out is a JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession

from hudi_locks.errors import HudiLocksError
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.writing.writer import Writer
from hudi_locks.transaction import Conflict

__all__ = ["COLUMNS"]

COLUMNS = "id string, month string, ts long, value double"
_PATIENCE_S = 240.0
_go = threading.Event()
_telling = threading.Lock()


def tell(event: str, **facts: Any) -> None:
    """A line for the process that started this one."""
    with _telling:
        sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()


def open_session() -> SparkSession:
    """As small as Spark is."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[1]").appName("duelist")
    settings = {
        "spark.driver.memory": "768m",
        "spark.log.level": "OFF",
        "spark.pyspark.python": sys.executable,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


class Duelist:
    """Does what it is told, each write on a thread of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._thread: threading.Thread | None = None

    def make(self, path: str, options: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> None:
        """A table with its first rows."""
        given: dict[str, Any] = {"record_key": "id", "partition_by": "month", "ordering": "ts", "options": options}
        table = HoodieTable.create(self._spark, path, name="duel", **given)
        table.bulk_insert(self._frame(rows))
        table.close()
        tell("made")

    def read(self, path: str, options: Mapping[str, str]) -> None:
        """All rows."""
        rows = HoodieTable.load(self._spark, path, options=options).read(meta_columns=False).collect()
        tell("rows", rows=sorted(list(row) for row in rows))

    def write(self, path: str, options: Mapping[str, str], rows: Sequence[Sequence[Any]], holds: bool) -> None:
        """Upsert; one that holds waits before its publish until it is told to go on."""
        _go.clear()
        self._thread = threading.Thread(target=self._upsert, args=(path, options, rows, holds))
        self._thread.start()

    def go(self) -> None:
        """Let the write that holds go on."""
        _go.set()

    def settle(self) -> None:
        """Let it go on, and wait for its end."""
        _go.set()
        if self._thread is not None:
            self._thread.join()
        tell("settled")

    def _upsert(self, path: str, options: Mapping[str, str], rows: Sequence[Sequence[Any]], holds: bool) -> None:
        table = HoodieTable.load(self._spark, path, options=options)
        try:
            with watched(holds=holds):
                result = table.upsert(self._frame(rows))
        except HudiLocksError as error:
            facts = {name: str(value) for name, value in error.facts.items()}
            tell("stopped", error=type(error).__name__, facts=facts, why=str(error))
        else:
            early = [conflict.other for conflict in result.conflicts if conflict.is_early]
            tell("committed", instant=result.instant, retries=result.retries, early=early)
        finally:
            table.close()

    def _frame(self, rows: Sequence[Sequence[Any]]) -> Any:
        return self._spark.createDataFrame([tuple(row) for row in rows], COLUMNS).coalesce(1)


def watched(*, holds: bool) -> Any:
    """Tells what the driver of a write sees; with `holds` it stops when its files are made and not yet published."""
    run_job, pause = Writer._run_job, Writer._pause

    def run_and_tell(self: Writer, task: Any, *args: Any) -> Any:
        stats = run_job(self, task, *args)
        if holds:
            tell("written", instant=task.files.requested)
            assert _go.wait(_PATIENCE_S)
        return stats

    def tell_and_pause(self: Writer, conflict: Conflict, attempts: int) -> None:
        tell("met", other=conflict.other, early=conflict.is_early)
        pause(self, conflict, attempts)

    return mock.patch.multiple(Writer, _run_job=run_and_tell, _pause=tell_and_pause)


def main() -> None:
    """Until there is nothing more to do."""
    spark = open_session()
    duelist = Duelist(spark)
    tell("ready")
    for line in sys.stdin:
        command = json.loads(line)
        getattr(duelist, command.pop("do"))(**command)
    spark.stop()


if __name__ == "__main__":
    main()
