"""Micro-batches that Spark's own format has staged, each written once."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.config import Options
from hudi_locks.errors import ConfigError
from hudi_locks.spark.datasource import PATH, leave_out_path, open_table, prepare_write, read_operation
from hudi_locks.spark.staged_frames import read_staged
from hudi_locks.spark.streaming import StreamSink
from hudi_locks.storage import Storage
from hudi_locks.table import StagedInput, StagedRows

__all__ = ["StagedStreams"]

_CHECKPOINT: Final = "checkpointlocation"
_OF_SPARK: Final = (_CHECKPOINT, "queryname")
_Given = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class _Stream:
    """A stream in this session.

    Attributes:
        sink: Which writes its micro-batches.
        writing: Held while one is written.
    """

    sink: StreamSink
    writing: threading.Lock = field(default_factory=threading.Lock)


class StagedStreams:
    """The streams that a session writes by the format. Lives on the driver."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._opening = threading.Lock()
        self._opened: dict[_Given, _Stream] = {}
        self._prepared: dict[tuple[_Given, str], Storage] = {}

    def begin(self, options: Mapping[str, str], schema: T.StructType) -> StagedInput:
        """Where the tasks of a micro-batch stage their rows; the table is made if there is none.

        Raises:
            HudiLocksError: What `hudi_locks.spark.write` would refuse.
        """
        _find_checkpoint(options)
        known = (frozenset(options.items()), schema.json())
        with self._opening:
            if known not in self._prepared:
                empty = self._spark.createDataFrame([], schema)
                self._prepared[known] = prepare_write(empty, _leave_out(options), overwrites=False)
            return StagedInput.begin(self._prepared[known])

    def commit(
        self,
        options: Mapping[str, str],
        schema: T.StructType,
        staged: StagedInput,
        files: Sequence[StagedRows],
        batch: int,
    ) -> None:
        """Write a micro-batch unless the table has it, and remove what was staged.

        Raises:
            HudiLocksError: See `StreamSink.write`.
        """
        stream = self._open(options)
        query = self._read_query(_find_checkpoint(options))
        with stream.writing:
            stream.sink.write(read_staged(self._spark, staged, files, schema), batch, query=query)
        staged.remove_all()

    def abort(self, staged: StagedInput) -> None:
        """Remove what was staged."""
        staged.remove_all()

    def _open(self, options: Mapping[str, str]) -> _Stream:
        known = frozenset(options.items())
        with self._opening:
            if known not in self._opened:
                given = Options(leave_out_path(_leave_out(options)))
                table = open_table(self._spark, options[PATH], given)
                self._opened[known] = _Stream(table.stream_sink(read_operation(given)))
            return self._opened[known]

    def _read_query(self, checkpoint: str) -> str:
        """Id of the query, by which its micro-batches are told from another's."""
        try:
            [told] = self._spark.read.text(f"{checkpoint.rstrip('/')}/metadata").collect()
            return str(json.loads(told[0])["id"])
        except (PySparkException, ValueError, KeyError) as error:
            message = f"checkpointLocation={checkpoint} does not tell the id of the query ({error}); give another one"
            raise ConfigError(message, key=_CHECKPOINT) from error


def _leave_out(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name not in _OF_SPARK}


def _find_checkpoint(options: Mapping[str, str]) -> str:
    if not options.get(_CHECKPOINT):
        message = (
            "a stream written by format('hudi_locks') needs option checkpointLocation of the query itself: its"
            " micro-batches are known by it. A setting of the session does not reach the format"
        )
        raise ConfigError(message, key="checkpointLocation")
    return options[_CHECKPOINT]
