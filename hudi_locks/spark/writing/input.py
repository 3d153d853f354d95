"""Prepares what is to be written: keys, columns and checks, before the first attempt. Runs on the driver."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from hudi_locks.errors import BadInput, TableError
from hudi_locks.spark.index.index import Index
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.session import typed_task_errors
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.keys import make_key_columns
from hudi_locks.spark.writing.placement import MOVED
from hudi_locks.spark.writing.rows import (
    CountedRows,
    KeyedRows,
    add_missing_columns,
    check_ordering,
    count_rows,
    select_user_columns,
    user_schema,
)
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, Table
from hudi_locks.timeline import Timeline

__all__ = ["InputPreparer"]


@dataclass(frozen=True)
class InputPreparer:
    """Prepares what is to be written to one table.

    Attributes:
        table: The table.
        index: Of the table.
        recalled: Its timeline as it was known lately; None if it is to be looked at.
        takes_out: Whether rows may have MOVED.
    """

    table: Table
    index: Index
    recalled: Timeline | None = None
    takes_out: bool = False

    def prepare(self, operation: Operation, rows: DataFrame) -> AbstractContextManager[KeyedRows]:
        """Keyed rows that every attempt and every task computed again sees alike, for the length of the block.

        Raises:
            BadInput: The rows are refused.
        """
        return self.index.keep(self._key(operation, rows), operation, count=self._count)

    def _count(self, frame: DataFrame, most_keys: int) -> CountedRows:
        with typed_task_errors(reading_into=self.table.storage.address("")):
            return count_rows(frame, self.table.config, most_keys=most_keys)

    def _key(self, operation: Operation, rows: DataFrame) -> KeyedRows:
        """By the columns as they are known; what they refuse is looked at anew, since others may have changed them.

        Commits that are known may even be gone: a restore takes them away.
        """
        known, fills = self.recalled, self.index.settings.fills_columns
        if known is not None and not fills and self.table.config.prefixes_keys is not None:
            with suppress(BadInput, TableError):
                return self._key_for(Snapshot(self.table, known), operation, rows)
        return self._key_for(Snapshot.load(self.table), operation, rows)

    def _key_for(self, snapshot: Snapshot, operation: Operation, rows: DataFrame) -> KeyedRows:
        settings, user = self.index.settings, select_user_columns(rows, kept=[MOVED] if self.takes_out else [])
        self._refuse_keyless(operation)
        if settings.fills_columns and operation is not Operation.DELETE and snapshot.schema is not None:
            user = add_missing_columns(user, snapshot.schema)
        composite = snapshot.prefixes_keys(value_only=settings.bare_keys)
        columns = make_key_columns(
            user, self.table.config, settings.times, composite=composite, as_text=settings.writes_times
        )
        frame, dropped = columns.add_to(user), self.table.config.dropped_fields
        schema = pa.schema([column for column in user_schema(user.drop(MOVED)) if column.name not in dropped])
        if (virtual_keys := self.table.config.virtual_keys) is not None:
            virtual_keys.check(schema)
        if operation is Operation.DELETE:
            return KeyedRows(frame.select(RECORD_KEY, PARTITION_PATH), schema, None)
        check_ordering(user, self.table.config)
        snapshot.merge_schema(schema)
        return KeyedRows(frame, schema, columns)

    def _refuse_keyless(self, operation: Operation) -> None:
        """A row that is inserted gets a key that nobody knows, where no column of the table is one."""
        if self.table.config.record_key_fields or not self.index.settings.looks_up(operation):
            return
        path = self.table.storage.base
        message = (
            f"{operation.value} looks for rows by their record key here, and the table at {path} names no column for"
            " it: each row gets a key of its own; use insert, bulk_insert or insert_overwrite, and drop no duplicates"
        )
        raise BadInput(message, operation=operation.value, path=path)
