"""Work of the processor, spread over the cores that it may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pyarrow as pa

from hudi_locks.storage import map_in_threads

__all__ = ["map_on_cores"]

T = TypeVar("T")
R = TypeVar("R")


def map_on_cores(call: Callable[[T], R], arguments: Iterable[T]) -> list[R]:
    """As `map_in_threads`, in as many threads as Arrow may use cores: more would only wait for each other.

    In PySpark's workers that is one unless `spark.task.cpus` says otherwise: beside it run other tasks.
    """
    return map_in_threads(call, arguments, threads=pa.cpu_count())
