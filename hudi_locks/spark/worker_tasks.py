"""Tasks on batches of rows, in PySpark's worker processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from hudi_locks.spark._compat import acknowledge_early, forget_archives, freeze_imported, is_on

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import types as T  # noqa: N812

__all__ = ["WorkerTask", "run_in_workers"]

_QUICKENING: Final = ("connection", "archives", "freeze")
WorkerTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def run_in_workers(rows: DataFrame, task: WorkerTask, columns: T.StructType | str) -> DataFrame:
    """What `task` makes of each partition of `rows`, when the DataFrame is used.

    Args:
        rows: Its input.
        task: Picklable; made on the driver, called on executors.
        columns: Of the batches that it gives.
    """
    spark = rows.sparkSession
    quick = frozenset(name for name in _QUICKENING if is_on(spark, name))
    return rows.mapInArrow(lambda batches: run_task(task, batches, quick=quick), columns)


def run_task(
    task: WorkerTask, batches: Iterable[pa.RecordBatch], *, quick: Collection[str] = _QUICKENING
) -> Iterator[pa.RecordBatch]:
    """Run a task, and leave the process so that the next one begins sooner. Runs on executors.

    Args:
        task: See `run_in_workers`.
        batches: Its input.
        quick: Which of connection, archives and freeze are quickened; see `hudi_locks.spark._compat`.
    """
    if "connection" in quick:
        acknowledge_early()
    try:
        yield from task(batches)
    finally:
        if "archives" in quick:
            forget_archives()
        if "freeze" in quick:
            freeze_imported()
