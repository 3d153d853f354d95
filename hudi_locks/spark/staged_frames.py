"""Staged rows as a DataFrame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.spark._compat import run_in_workers
from hudi_locks.table import StagedInput, StagedRows

__all__ = ["read_staged"]

_TASK_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class _ReadStaged:
    """Reads the packs of files whose numbers it is given. Runs on executors.

    Attributes:
        staged: The input.
        packs: Its files, by the task that reads them.
    """

    staged: StagedInput
    packs: Sequence[Sequence[StagedRows]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of these packs."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for file in self.packs[number]:
                    yield from self.staged.read(file)


def read_staged(
    spark: SparkSession, staged: StagedInput, files: Sequence[StagedRows], schema: T.StructType
) -> DataFrame:
    """The rows of these files and no others. Reads when they are used.

    Args:
        spark: The session.
        staged: The input.
        files: Those that the tasks told of which Spark counts.
        schema: Of the rows.
    """
    if not files:
        return spark.createDataFrame([], schema)
    packs = _pack(files, cores=spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, len(packs), 1, len(packs))
    return run_in_workers(numbers, _ReadStaged(staged, packs), schema)


def _pack(files: Sequence[StagedRows], *, cores: int) -> list[list[StagedRows]]:
    """Packs of about one size: one for each core, more where there is more to read."""
    count = min(len(files), max(cores, math.ceil(sum(file.size for file in files) / _TASK_BYTES)))
    ordered = sorted(files, key=lambda file: file.size, reverse=True)
    return [ordered[number::count] for number in range(count)]
