"""Tasks on batches of rows, in PySpark's worker processes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING
from zipimport import zipimporter

import pyarrow as pa

from hudi_locks.spark.worker_connection import acknowledge_early

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import types as T  # noqa: N812

__all__ = ["WorkerTask", "run_in_workers"]

WorkerTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def run_in_workers(rows: DataFrame, task: WorkerTask, columns: T.StructType | str) -> DataFrame:
    """What `task` makes of each partition of `rows`, when the DataFrame is used.

    Args:
        rows: Its input.
        task: Picklable; made on the driver, called on executors.
        columns: Of the batches that it gives.
    """
    return rows.mapInArrow(lambda batches: run_task(task, batches), columns)


def run_task(task: WorkerTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a task, and leave the process so that the next one begins sooner. Runs on executors."""
    acknowledge_early()
    try:
        yield from task(batches)
    finally:
        _forget_archives()
        freeze_imported()


@cache
def freeze_imported() -> None:
    """Once in a process: PySpark collects garbage between tasks, through all that was ever imported.

    To ask Python whether it was done takes longer than the rest of an empty task.
    """
    gc.freeze()


def _forget_archives() -> None:
    """PySpark has every archive that something was imported from read anew for each task: that is most of an empty one.

    Whatever is imported next finds them again.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)
