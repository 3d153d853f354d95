"""Tasks that fail and are tried again leave no stray file and no double row."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import functions as F  # noqa: N812
from shared_table import BY_INDEX

from hudi_locks.errors import BadInput, WriteAborted
from hudi_locks.spark import HoodieTable, _compat
from hudi_locks.spark.writing import strategy
from hudi_locks.spark.writing.task import WriteTask
from hudi_locks.timeline.heartbeat import WriterHeartbeat

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
ROWS = [(f"k{number}", str(number % 2), 1, 1.0) for number in range(10)]


def data_files(path: str) -> list[str]:
    return sorted(file.name for file in Path(path).rglob("*.parquet"))


@pytest.fixture
def fail_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], int]:
    """Every task fails once after it has made its files and before it answers; returns how many did so."""
    folder = str(tmp_path / "attempts")
    Path(folder).mkdir()

    class FailingTask(WriteTask):
        def __call__(self, batches: Any) -> Any:
            answers = list(super().__call__(batches))
            context = pyspark.TaskContext.get()
            Path(folder, f"{context.partitionId()}-{context.attemptNumber()}").touch()
            if context.attemptNumber() == 0:
                raise RuntimeError("the executor is lost")
            yield from answers

    monkeypatch.setattr(strategy, "WriteTask", FailingTask)
    return lambda: len(list(Path(folder).glob("*-0")))


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_a_task_that_is_tried_again_leaves_one_file(
    create: Create, frame: Frame, rows_of: RowsOf, path: str, fail_once: Callable[[], int], index: str
) -> None:
    table = create(options=BY_INDEX[index])
    first = table.upsert(frame(ROWS))
    assert fail_once() == 2
    assert first.rows_inserted == len(ROWS)
    assert len(data_files(path)) == 2
    newer = [(*row[:2], 2, 2.0) for row in ROWS]
    second = table.upsert(frame(newer))
    assert (second.rows_updated, second.rows_inserted) == (len(ROWS), 0)
    assert rows_of(table) == sorted(newer)
    assert len(data_files(path)) == 4


def test_a_write_whose_tasks_fail_for_good_is_rolled_back(
    create: Create, frame: Frame, rows_of: RowsOf, path: str, spark: Any
) -> None:
    table = create()
    table.upsert(frame(ROWS[:1]))
    fails = F.expr("cast(raise_error('the source broke') as double)")
    with pytest.raises(Exception, match="the source broke"):
        table.upsert(frame(ROWS).withColumn("value", fails))
    assert rows_of(table) == ROWS[:1]
    assert len(data_files(path)) == 1


def test_errors_of_tasks_arrive_as_what_they_were(
    create: Create, frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    class RefusingTask(WriteTask):
        def __call__(self, batches: Any) -> Any:
            raise BadInput("1 rows have no record key")

    table = create()
    monkeypatch.setattr(strategy, "WriteTask", RefusingTask)
    with pytest.raises(BadInput, match="1 rows have no record key") as caught:
        table.insert(frame(ROWS))
    assert caught.value.__cause__ is not None


def test_a_write_that_lost_its_heartbeat_is_cancelled_at_once(
    create: Create, frame: Frame, rows_of: RowsOf, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its tasks would go on for a minute; the file is removed as a JVM cleaner does that takes it for dead."""
    began = tmp_path / "began"

    class EndlessTask(WriteTask):
        def __call__(self, batches: Any) -> Any:
            began.touch()
            threading.Event().wait(60)
            return super().__call__(batches)

    def bury(heartbeat: WriterHeartbeat) -> None:
        if began.exists():
            shutil.rmtree(Path(path, ".hoodie/.heartbeat"))
        beat(heartbeat)

    beat = WriterHeartbeat._beat
    table = create(options={"hoodie.client.heartbeat.interval_in_ms": "1000"})
    table.upsert(frame(ROWS[:1]))
    with monkeypatch.context() as patch:
        patch.setattr(strategy, "WriteTask", EndlessTask)
        patch.setattr(WriterHeartbeat, "_beat", bury)
        with pytest.raises(WriteAborted, match=r"its jobs are cancelled: .* was removed"):
            table.upsert(frame(ROWS))
    assert rows_of(table) == ROWS[:1]
    table.upsert(frame(ROWS[1:]))
    assert rows_of(table) == sorted(ROWS)


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_every_attempt_sees_the_rows_that_the_first_one_read(
    create: Create, frame: Frame, rows_of: RowsOf, fail_once: Callable[[], int], tmp_path: Path, operation: str
) -> None:
    """The source gives other rows each time it is read."""
    reads = str(tmp_path / "reads")
    Path(reads).mkdir()

    def stamp(batches: Any) -> Any:
        Path(reads, uuid.uuid4().hex).touch()
        number = float(len(list(Path(reads).iterdir())))
        for batch in batches:
            yield batch.set_column(3, "value", pa.array([number] * batch.num_rows))

    rows = frame(ROWS[:1]).coalesce(1)
    table = create(options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    getattr(table, operation)(rows.mapInArrow(stamp, rows.schema))
    assert fail_once() >= 1
    assert [row[-1] for row in rows_of(table)] == [1.0]


def test_a_spark_without_the_way_from_an_rdd_keeps_its_input_too(
    create: Create, frame: Frame, rows_of: RowsOf, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Session:
        def internalCreateDataFrame(self, *_: Any) -> Any:  # noqa: N802
            raise Py4JError("Method internalCreateDataFrame([...]) does not exist")

    table = create(options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    rows = frame(ROWS)
    with monkeypatch.context() as without:
        without.setattr(_compat, "_java_session", lambda _: Session())
        table.bulk_insert(rows)
    assert rows_of(table) == sorted(ROWS)
