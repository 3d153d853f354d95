"""How a write makes its files: the two types of table. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from hudi_locks.config import datasource_keys, index_keys
from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.format import avro_schema
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import StagedFiles
from hudi_locks.spark.index.index import Index
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.writing.log_task import LoggingWriteTask, LogTask
from hudi_locks.spark.writing.placement import Groups, Placement
from hudi_locks.spark.writing.rows import KeyedRows, spread_rows
from hudi_locks.spark.writing.task import WriteTask
from hudi_locks.table import ChangeFormat, MergeRule, TableConfig, add_meta_schema
from hudi_locks.transaction import ReadSet

__all__ = ["CopyOnWrite", "LookedUpMergeOnRead", "MergeOnRead", "WriteStrategy", "open_strategy"]

_OLD: Final = 6
_ENDED: Final = "readers would hide the file groups of these partitions for good, and what is written there later too"
_REFUSED: Final[Mapping[Operation, str]] = {
    Operation.INSERT_OVERWRITE: f"{_ENDED}; delete the rows that are to go, and insert the others",
    Operation.INSERT_OVERWRITE_TABLE: f"{_ENDED}; make a new table, or delete the rows",
    Operation.DELETE_PARTITION: f"{_ENDED}; delete the rows",
}


@dataclass(frozen=True)
class WriteStrategy(ABC):
    """What differs between the types of table when rows are written. Lives on the driver.

    Attributes:
        config: Of the table.
        index: Of the table.
    """

    config: TableConfig
    index: Index

    doing: ClassVar[str]
    """For a person: `writing logs`."""

    @property
    def settings(self) -> PipelineSettings:
        """How to write."""
        return self.index.settings

    @abstractmethod
    def refuse(self, operation: Operation) -> None:
        """Refuse an operation that such a table cannot have.

        Raises:
            ConfigError: The message says why, and the way out.
        """

    def refuse_record_index(self) -> None:
        """Refuse a table whose metadata table has a record index, where this index cannot say what to tell it.

        A base file has keys that a log took out again. By another index they may have come back in another file group.

        Raises:
            ConfigError: It is a merge-on-read table, and keys are looked for in base files or buckets alone.
            UnsupportedTable: It is one, and did not have the record index when it was loaded.
        """
        if self.config.table_type != "MERGE_ON_READ":
            return
        if not self.config.has_record_index:
            message = f"the record index of table {self.config.name} was made since it was loaded: load the table again"
            raise UnsupportedTable(message, table=self.config.name)
        named = self.settings.index_type
        if named in ("SIMPLE", "BLOOM", "BUCKET"):
            key = index_keys.INDEX_TYPE.name
            message = (
                f"{key}={named} does not keep the record index of a merge-on-read table, since keys that a log took out"
                f" are found by it in base files: set {key} to the kind of the record index, RECORD_INDEX, or"
                " RECORD_LEVEL_INDEX where a key may be in several partitions, or drop the record index"
                " with hudi-locks metadata drop --part record_index"
            )
            raise ConfigError(message, key=key, value=named)

    @abstractmethod
    def action(self, operation: Operation) -> str:
        """Action of the write's instant."""

    @abstractmethod
    def make_task(
        self, files: StagedFiles, operation: Operation, schema: pa.Schema, groups: Groups
    ) -> WriteTask | LogTask:
        """What executors get.

        Args:
            files: Gives its files their names.
            operation: What is done with the rows.
            schema: Of the user's columns after the write.
            groups: Resolves the GROUP column.
        """

    @abstractmethod
    def spread(self, placement: Placement, keyed: KeyedRows, operation: Operation) -> DataFrame:
        """The rows in as many tasks as are to write them, those of a file group in one."""

    @abstractmethod
    def list_reads(
        self, operation: Operation, keyed: KeyedRows, placement: Placement, left: frozenset[FileGroupId]
    ) -> ReadSet:
        """What the write rests on beside what it wrote.

        Args:
            operation: What was done with the rows.
            keyed: All of them.
            placement: Where they went.
            left: File groups that tasks looked at and left as they are.
        """

    @abstractmethod
    def may_go_on(self, operation: Operation) -> bool:
        """Whether a write that met a conflict may write again only what others touched."""

    @abstractmethod
    def may_move(self, operation: Operation) -> bool:
        """Whether rows whose file group others changed may go to a new one."""

    def _make_write_task(
        self, files: StagedFiles, operation: Operation, schema: pa.Schema, groups: Groups
    ) -> WriteTask:
        written, avro = self._meta_schema(schema)
        return WriteTask(
            files=files,
            schema=written,
            form=self.settings.base_file_format(avro, self.config),
            groups=groups,
            operation=operation,
            rule=self.settings.merge_rule(operation, self.config),
            combine=self.settings.combines(operation),
            key_fields=self.config.record_key_fields,
            memory_bytes=self.settings.memory_bytes,
            changes=None if self.config.change_log_mode is None else ChangeFormat(self.config.change_log_mode, avro),
        )

    def _make_log_task(self, files: StagedFiles, operation: Operation, schema: pa.Schema, groups: Groups) -> LogTask:
        written, avro = self._meta_schema(schema)
        rule = self.settings.merge_rule(operation, self.config)
        return LogTask(
            files=files,
            schema=written,
            form=self.settings.log_format(written, avro, self.config),
            groups=groups,
            operation=operation,
            rule=MergeRule() if operation is Operation.DELETE else rule,
            key_fields=self.config.record_key_fields,
            memory_bytes=self.settings.memory_bytes,
        )

    def _meta_schema(self, schema: pa.Schema) -> tuple[pa.Schema, str]:
        """With meta columns, as Arrow's schema and as Avro's."""
        return add_meta_schema(schema), avro_schema(schema, self.config.name, with_meta_columns=True)


class CopyOnWrite(WriteStrategy):
    """Writes base files, those that take changes anew."""

    doing = "writing base files"

    def refuse(self, operation: Operation) -> None:
        """See `WriteStrategy.refuse`: it can have all."""

    def action(self, operation: Operation) -> str:
        """See `WriteStrategy.action`."""
        return operation.action

    def make_task(self, files: StagedFiles, operation: Operation, schema: pa.Schema, groups: Groups) -> WriteTask:
        """See `WriteStrategy.make_task`."""
        return self._make_write_task(files, operation, schema, groups)

    def spread(self, placement: Placement, keyed: KeyedRows, operation: Operation) -> DataFrame:
        """See `WriteStrategy.spread`."""
        groups, rows = placement.expected_groups, placement.rows
        if groups is None:
            return rows
        if groups == 1 and keyed.keys is not None:
            return rows.coalesce(1)  # few rows: a shuffle takes longer than they take
        tasks = self.settings.count_tasks(rows.sparkSession, groups, operation=operation)
        return spread_rows(rows, None if placement.has_own_paths else keyed.columns, tasks=tasks)

    def list_reads(
        self, operation: Operation, keyed: KeyedRows, placement: Placement, left: frozenset[FileGroupId]
    ) -> ReadSet:
        """See `WriteStrategy.list_reads`."""
        if not self.settings.looks_up(operation):
            return ReadSet(groups=placement.read_groups | left)
        partitions = frozenset(keyed.counts) | {group.partition for group in placement.read_groups}
        return ReadSet(partitions, placement.read_groups | left, placement.absent_keys)

    def may_go_on(self, operation: Operation) -> bool:
        """See `WriteStrategy.may_go_on`."""
        return self.index.can_replan and self.index.tells_places(operation) and not operation.replaces

    def may_move(self, operation: Operation) -> bool:
        """See `WriteStrategy.may_move`: rows that are only added may lie anywhere, if no index looks for them."""
        return operation is Operation.INSERT and not self.index.tells_places(operation)


class MergeOnRead(WriteStrategy):
    """Appends rows to logs, whatever others log meanwhile: a bucket index says where a row goes.

    A bulk insert gives base files to buckets that have no file group yet. Nothing may be logged to one of them before
    that, since it would lie below the base file: so it meets whoever did so since its snapshot.
    """

    doing = "writing logs"

    def refuse(self, operation: Operation) -> None:
        """See `WriteStrategy.refuse`."""
        key = datasource_keys.OPERATION.name
        if operation in _REFUSED and not (operation.replaces and self.index.may_replace):
            message = f"{key}={operation.value} is not offered on a merge-on-read table: {_REFUSED[operation]}"
            raise ConfigError(message, key=key, value=operation.value)
        if operation is Operation.BULK_INSERT and self.config.version == _OLD:
            message = (
                f"{key}={operation.value} is not offered on a merge-on-read table of version {_OLD} with buckets, whose"
                " logs are named by the base file below them; use insert, which goes to logs, or upgrade the table"
            )
            raise ConfigError(message, key=key, value=operation.value)
        if operation in (Operation.INSERT, Operation.BULK_INSERT) and self.settings.drop_duplicates:
            name = datasource_keys.INSERT_DROP_DUPLICATES.name
            message = (
                f"{name}=true would have every append look up its keys; a key is there once anyway, so leave it out"
            )
            raise ConfigError(message, key=name)

    def action(self, operation: Operation) -> str:
        """See `WriteStrategy.action`."""
        return operation.action if operation.replaces else "deltacommit"

    def make_task(
        self, files: StagedFiles, operation: Operation, schema: pa.Schema, groups: Groups
    ) -> WriteTask | LogTask:
        """See `WriteStrategy.make_task`: what overwrites a partition makes base files, as in JVM Hudi.

        So does a bulk insert for new buckets, otherwise as an insert does: with one row for each key, as logs have.
        """
        if operation is Operation.BULK_INSERT:
            task = replace(self._make_write_task(files, Operation.INSERT, schema, groups), combine=True)
            return LoggingWriteTask(**vars(task), logs=self._make_log_task(files, Operation.INSERT, schema, groups))
        make = self._make_write_task if operation.replaces else self._make_log_task
        return make(files, operation, schema, groups)

    def spread(self, placement: Placement, keyed: KeyedRows, operation: Operation) -> DataFrame:
        """See `WriteStrategy.spread`: the index has brought the rows of a file group together."""
        session, rows = placement.rows.sparkSession, sum(keyed.counts.values())
        return placement.rows.coalesce(self.settings.count_log_tasks(session, rows, operation=operation))

    def list_reads(
        self, operation: Operation, keyed: KeyedRows, placement: Placement, left: frozenset[FileGroupId]
    ) -> ReadSet:
        """See `WriteStrategy.list_reads`: it rests on nothing."""
        del operation, keyed, placement, left
        return ReadSet()

    def may_go_on(self, operation: Operation) -> bool:
        """See `WriteStrategy.may_go_on`."""
        del operation
        return False

    def may_move(self, operation: Operation) -> bool:
        """See `WriteStrategy.may_move`: a row goes where the bucket of its key says."""
        del operation
        return False


class LookedUpMergeOnRead(CopyOnWrite):
    """Logs rows whose keys the index found, and writes new ones to base files, as JVM Hudi does."""

    doing = "writing logs and base files"

    def action(self, operation: Operation) -> str:
        """See `WriteStrategy.action`."""
        return operation.action if operation.replaces else "deltacommit"

    def make_task(
        self, files: StagedFiles, operation: Operation, schema: pa.Schema, groups: Groups
    ) -> LoggingWriteTask:
        """See `WriteStrategy.make_task`."""
        task = self._make_write_task(files, operation, schema, groups)
        return LoggingWriteTask(**vars(task), logs=self._make_log_task(files, operation, schema, groups))

    def may_move(self, operation: Operation) -> bool:
        """See `WriteStrategy.may_move`."""
        del operation
        return False


def open_strategy(config: TableConfig, index: Index) -> WriteStrategy:
    """The strategy of a table's type and index."""
    if config.table_type != "MERGE_ON_READ":
        return CopyOnWrite(config, index)
    return MergeOnRead(config, index) if index.settings.index_type == "BUCKET" else LookedUpMergeOnRead(config, index)
