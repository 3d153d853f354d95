"""The format `hudi_locks` of `df.write` and `df.writeStream`: tasks stage their rows, and the driver commits them.

PySpark calls these in processes without a session. What a task of Spark's tells once it counts is the whole list of
files that are read again, so that repeated, speculative and late tasks add nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.errors import ConfigError
from hudi_locks.spark._python_sources import (
    WRITES_STREAMS,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from hudi_locks.spark.writing.driver_calls import ask_driver
from hudi_locks.table import StagedInput, StagedRows

__all__ = ["open_stream_writer", "open_writer"]

_NO_DRIVER: Final = (
    "format('hudi_locks') writes only where the driver's process has registered it by"
    " hudi_locks.spark.register_format(spark): PySpark gives it no session in which to commit"
)


@dataclass(frozen=True)
class _Staged(WriterCommitMessage):
    """What one task staged.

    Attributes:
        staged: The input of the write.
        files: Those of the task.
    """

    staged: StagedInput
    files: tuple[StagedRows, ...]


def _list_files(messages: Sequence[_Staged | None]) -> list[StagedRows]:
    return [file for message in messages if message is not None for file in message.files]


@dataclass(frozen=True)
class _Writer(DataSourceArrowWriter):
    """Of `df.write`. Executors get it too, so it knows no options: some are secrets.

    Attributes:
        driver: Where it answers.
        staged: The input of the write.
    """

    driver: str
    staged: StagedInput

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of a task."""
        return _Staged(self.staged, self.staged.write(iterator))

    def commit(self, messages: Sequence[_Staged | None]) -> None:
        """Have the driver write them."""
        ask_driver(self.driver, "commit", name=self.staged.name, files=_list_files(messages))

    def abort(self, messages: Sequence[_Staged | None]) -> None:
        """Have the driver remove them."""
        del messages
        ask_driver(self.driver, "abort", name=self.staged.name)


class _StreamWriter(DataSourceStreamArrowWriter):
    """Of `df.writeStream`: one for the tasks of a micro-batch, and another one for its commit."""

    def __init__(self, driver: str, options: Mapping[str, str], schema: T.StructType, staged: StagedInput) -> None:
        self._driver = driver
        self._options = options
        self._schema = schema
        self._staged = staged

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of a task."""
        return _Staged(self._staged, self._staged.write(iterator))

    def commit(self, messages: Sequence[_Staged | None], batchId: int) -> None:  # noqa: N803  # PySpark's name
        """Have the driver write them, unless the table has the micro-batch."""
        call = {"options": self._options, "schema": self._schema, "files": _list_files(messages), "batch": batchId}
        ask_driver(self._driver, "commit_stream", staged=_find_input(messages, self._staged), **call)

    def abort(self, messages: Sequence[_Staged | None], batchId: int) -> None:  # noqa: N803  # PySpark's name
        """Have the driver remove them."""
        del batchId
        ask_driver(self._driver, "abort_stream", staged=_find_input(messages, self._staged))

    def __getstate__(self) -> dict[str, Any]:
        """Executors need no options, of which some are secrets."""
        return vars(self) | {"_options": {}}


def _find_input(messages: Sequence[_Staged | None], own: StagedInput) -> StagedInput:
    """The input of the micro-batch, which another process began."""
    return next((message.staged for message in messages if message is not None), own)


def open_writer(
    driver: str, options: Mapping[str, str], schema: T.StructType, *, overwrites: bool
) -> DataSourceArrowWriter:
    """The writer of one `df.write`, once the driver finds nothing wrong with it.

    Args:
        driver: Where it answers; "" where it did not register the format for writes.
        options: As the user gave them, with the path.
        schema: Of the rows.
        overwrites: Whether the save mode is overwrite.

    Raises:
        ConfigError: Nobody commits, or an option cannot be used.
        HudiLocksError: What else `hudi_locks.spark.write` would refuse.
    """
    _refuse_alone(driver, "hudi_locks.spark.write(df, path, options, mode)")
    staged = ask_driver(driver, "begin", options=options, schema=schema, overwrites=overwrites)
    return _Writer(driver, staged)


def open_stream_writer(
    driver: str, options: Mapping[str, str], schema: T.StructType, *, overwrites: bool
) -> DataSourceStreamArrowWriter:
    """The writer of a micro-batch; see `open_writer`.

    Raises:
        ConfigError: PySpark is older than 4.1, the output mode is complete, or nobody commits.
        HudiLocksError: What else is refused.
    """
    sink = (
        "df.writeStream.foreachBatch(table.stream_sink(...)), with table = hudi_locks.spark.HoodieTable.load(spark,"
        " path, options=options)"
    )
    _refuse_alone(driver, sink)
    if not WRITES_STREAMS:
        message = (
            f"format('hudi_locks') writes streams from PySpark 4.1 on, which hands their rows over as Arrow; use {sink}"
        )
        raise ConfigError(message)
    if overwrites:
        message = (
            "outputMode('complete') is not written by format('hudi_locks'): each micro-batch would replace the table;"
            f" use append, or {sink} with Operation.INSERT_OVERWRITE_TABLE"
        )
        raise ConfigError(message)
    return _StreamWriter(driver, options, schema, ask_driver(driver, "begin_stream", options=options, schema=schema))


def _refuse_alone(driver: str, way_out: str) -> None:
    if not driver:
        raise ConfigError(f"{_NO_DRIVER}; register it so, or write by {way_out}", format="hudi_locks")
