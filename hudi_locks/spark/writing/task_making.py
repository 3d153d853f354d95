"""Making the task of a write: what its executors get. Runs on the driver."""

from __future__ import annotations

import pyarrow as pa

from hudi_locks.format import avro_schema
from hudi_locks.markers import FinalFiles
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.writing.log_task import LogTask
from hudi_locks.spark.writing.placement import Groups
from hudi_locks.spark.writing.task import WriteTask
from hudi_locks.table import MergeRule, Table, add_meta_schema

__all__ = ["TaskMaker"]


class TaskMaker:
    """Makes the tasks of one table.

    Args:
        table: The table.
        settings: How to write.
    """

    def __init__(self, table: Table, settings: PipelineSettings) -> None:
        self._table = table
        self._settings = settings

    def make(self, files: FinalFiles, operation: Operation, schema: pa.Schema, groups: Groups) -> WriteTask | LogTask:
        """A task that writes base files, or logs where the table has them.

        Args:
            files: Gives its files their names.
            operation: What is done with the rows.
            schema: Of the user's columns after the write.
            groups: Resolves the GROUP column.
        """
        avro = avro_schema(schema, self._table.config.name, with_meta_columns=True)
        make = self._make_log_task if self._table.is_merge_on_read else self._make_write_task
        return make(files, operation, add_meta_schema(schema), groups, avro)

    def _make_write_task(
        self, files: FinalFiles, operation: Operation, schema: pa.Schema, groups: Groups, avro: str
    ) -> WriteTask:
        return WriteTask(
            files=files,
            schema=schema,
            form=self._settings.base_file_format(avro),
            groups=groups,
            operation=operation,
            rule=self._settings.merge_rule(operation, self._table.config),
            combine=self._settings.combines(operation),
            key_fields=self._table.config.record_key_fields,
            memory_bytes=self._settings.memory_bytes,
        )

    def _make_log_task(
        self, files: FinalFiles, operation: Operation, schema: pa.Schema, groups: Groups, avro: str
    ) -> LogTask:
        settings, config = self._settings, self._table.config
        return LogTask(
            files=files,
            schema=schema,
            form=settings.log_format(avro),
            groups=groups,
            operation=operation,
            rule=MergeRule() if operation is Operation.DELETE else settings.merge_rule(operation, config),
            key_fields=config.record_key_fields,
            memory_bytes=settings.memory_bytes,
        )
