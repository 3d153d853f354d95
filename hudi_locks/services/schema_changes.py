"""ALTER TABLE: the columns of a table change for its readers, and no file is written anew (Hudi's schema on read)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from hudi_locks.config import write_keys
from hudi_locks.errors import BadInput, TableError, UnsupportedTable
from hudi_locks.format import ALTER_SCHEMA, CommitMetadata, avro_schema
from hudi_locks.format.column_versions import ColumnVersion
from hudi_locks.table import (
    NEWEST_COLUMNS,
    SchemaHistory,
    Table,
    check_altered,
    choose_history,
    list_key_columns,
    read_schema_history,
)
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Outcome, PublishResult, Transactions, list_pending_writes, store_history

__all__ = ["Change", "SchemaChanger"]

Change: TypeAlias = Callable[[ColumnVersion], ColumnVersion]
"""Makes of the columns of a table those that it is to have."""
_PLANS: Final = ("clustering", "compaction", "logcompaction")
_RETRIES: Final = write_keys.NUM_RETRIES_ON_CONFLICT_FAILURES.name
_RETRY_MS: Final = 100


@dataclass(frozen=True)
class SchemaChanger:
    """Changes the columns of one table. Runs on the driver.

    Each change is a commit of its own, without files, as Spark SQL's ALTER TABLE makes one with
    `hoodie.schema.on.read.enable`. A write that is completed beside it is met by another attempt, and one that is
    completed later meets it: its rows have the columns from before.

    Attributes:
        table: The table.
        transactions: Of its writer.
        retries: How often a change may be tried again.
    """

    table: Table
    transactions: Transactions
    retries: int

    def run(self, change: Change, *, touched: Sequence[str]) -> tuple[PublishResult, CommitMetadata]:
        """Make one change.

        Args:
            change: What it makes of the columns.
            touched: Columns that it renames, retypes or takes away.

        Raises:
            BadInput: The columns cannot be changed so; nothing was written.
            TableError: A write of JVM Hudi, or a plan of a table service, is under way.
            UnsupportedTable: The table could not be written or read rightly afterwards; nothing was written.
            WriteAborted: Other writes were completed beside every attempt.
        """
        self._plan(self.table.timeline(), change, touched)
        for attempt in range(self.retries + 1):
            published, metadata = self._attempt(change, touched)
            if published.outcome is not Outcome.ABORTED or attempt == self.retries:
                break
            self.transactions.coordinator.clock.sleep((attempt + 1) * _RETRY_MS / 1000)
        return published.raise_unless_committed(), metadata

    def _attempt(self, change: Change, touched: Sequence[str]) -> tuple[PublishResult, CommitMetadata]:
        action = "deltacommit" if self.table.is_merge_on_read else "commit"
        with self.transactions.begin(action, ALTER_SCHEMA) as transaction:
            before = transaction.timeline
            planned = self._plan(before, change, touched)
            newest = planned.newest.at(int(transaction.instant))
            history = SchemaHistory("", (newest, *planned.versions[1:]))
            schema = avro_schema(newest.schema, self.table.config.name)
            told = {NEWEST_COLUMNS: newest.text}
            metadata = CommitMetadata.of((), ALTER_SCHEMA, schema=schema, extra=told)
            store_history(self.table.storage, history, instant=transaction.instant, layout=self.table.layout)
            unless = self._refuse_beside(before, transaction.instant)
            return transaction.publish(metadata, unless=unless, key_logs=()), metadata

    def _plan(self, timeline: Timeline, change: Change, touched: Sequence[str]) -> SchemaHistory:
        """The history with the change; refused if it cannot be."""
        self._refuse_pending(timeline)
        schema, config = self.table.schema(timeline), self.table.config
        if schema is None:
            message = f"{self.table.storage.base} has no columns yet: write rows with those that it is to have"
            raise BadInput(message, path=self.table.storage.base)
        if keys := [name for name in touched if name in list_key_columns(config)]:
            message = f"{keys[0]} is a record key, partition or ordering column, which decides where a row is and"
            raise BadInput(f"{message} which one wins: it stays as it is; copy the table to a new one", column=keys[0])
        found = read_schema_history(self.table.storage, timeline)
        if found is not None:
            check_altered(self.table.storage, config, found, schema)
            found = choose_history(config, found, schema)
        known = (ColumnVersion.of(schema, table_version=config.version),) if found is None else found.versions
        newest = change(known[0]).at(known[0].number + 1)  # until its time is known
        history = SchemaHistory(timeline.layout.folder, (newest, *known))
        check_altered(self.table.storage, config, history, self._read_schema(newest))
        return history

    def _read_schema(self, newest: ColumnVersion) -> pa.Schema:
        try:
            return newest.schema
        except ValueError as error:
            path = self.table.storage.base
            raise UnsupportedTable(f"{path}: {error} here; change them with JVM Hudi", path=path) from error

    def _refuse_pending(self, timeline: Timeline) -> None:
        """What is written for a plan has its time, which is before the change."""
        path = self.table.storage.base
        actions = (*_PLANS, "replacecommit") if timeline.layout.is_version_6 else _PLANS
        if pending := timeline.pending(actions):
            first = pending[0]
            message = f"{first.action} {first.requested} of {path} is planned, and its files would be read by the new"
            message += " columns: run it, or take it back, before the columns are changed"
            raise TableError(message, path=path, instant=first.requested)

    def _refuse_beside(self, before: Timeline, instant: str) -> Callable[[Timeline], str]:
        """What must not happen beside the change: a write that was completed, or one of the JVM, which asks nobody."""
        coordinator, storage = self.transactions.coordinator, self.table.storage

        def find(now: Timeline) -> str:
            if came := now.completed_since(before):
                return f"{came[0].action} {came[0].requested} was completed beside it; try again"
            if not coordinator.expects_foreign_writers():
                return ""
            writes = list_pending_writes(storage, coordinator.load_timeline())
            other = next((one.requested for one in writes if one.requested != instant), None)
            told = f"the write {other} is under way, and may be one of JVM Hudi, which would not see that the columns"
            return f"{told} changed: change them when it has ended, or set {_RETRIES}" if other else ""

        return find
