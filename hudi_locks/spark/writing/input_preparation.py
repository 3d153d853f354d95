"""The input of a write: keyed, kept for every attempt, and looked at before anything is written. Runs on the driver."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql import DataFrame

from hudi_locks.spark.failures import typed_task_errors
from hudi_locks.spark.index.index import Index
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.keyed_rows import KeyedRows
from hudi_locks.spark.writing.rows import (
    add_missing_columns,
    check_ordering,
    count_rows,
    make_key_columns,
    select_user_columns,
    user_schema,
)
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, Table

__all__ = ["InputPreparer"]


@dataclass(frozen=True)
class InputPreparer:
    """Prepares what is to be written to one table.

    Attributes:
        table: The table.
        index: Of the table.
    """

    table: Table
    index: Index

    def prepare(self, operation: Operation, rows: DataFrame) -> AbstractContextManager[KeyedRows]:
        """Keyed rows that every attempt and every task computed again sees alike, for the length of the block.

        Raises:
            BadInput: The rows are refused.
        """
        return self.index.keep(self._key(operation, rows), operation, count=self._count)

    def _count(self, frame: DataFrame) -> dict[str, int]:
        with typed_task_errors():
            return count_rows(frame, self.table.config)

    def _key(self, operation: Operation, rows: DataFrame) -> KeyedRows:
        snapshot, settings = Snapshot.load(self.table), self.index.settings
        user = select_user_columns(rows)
        if settings.fills_columns and operation is not Operation.DELETE and snapshot.schema is not None:
            user = add_missing_columns(user, snapshot.schema)
        columns = make_key_columns(
            user, self.table.config, composite=snapshot.prefixes_keys(value_only=settings.bare_keys)
        )
        frame, schema = columns.add_to(user), user_schema(user)
        if operation is Operation.DELETE:
            return KeyedRows(frame.select(RECORD_KEY, PARTITION_PATH), schema, None)
        check_ordering(user, self.table.config)
        snapshot.merge_schema(schema)
        return KeyedRows(frame, schema, columns)
