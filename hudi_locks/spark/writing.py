"""A write from DataFrame to commit. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from hudi_locks.clock import Clock
from hudi_locks.format import CommitMetadata, WriteStat, avro_schema
from hudi_locks.spark.failures import typed_task_errors
from hudi_locks.spark.intake import Intake, KeyedRows, spread_rows
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.placement import Placement
from hudi_locks.spark.placing import Placer
from hudi_locks.spark.result import Attempt, WriteResult
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.task import STAT, WriteTask, decode_stat
from hudi_locks.table import BaseFileFormat, Table, add_meta_schema
from hudi_locks.transaction import PublishResult, Transaction, Transactions

__all__ = ["Report", "Writer"]

Report = Callable[[str], None]

_ACTION = "commit"
_RETRY_MS = 100


@dataclass(frozen=True)
class Writer:
    """Writes DataFrames to one table.

    Attributes:
        table: The table.
        transactions: Begins and publishes its instants.
        settings: How to write.
        clock: Its source of time.
    """

    table: Table
    transactions: Transactions
    settings: PipelineSettings
    clock: Clock

    def write(self, operation: Operation, rows: DataFrame, *, report: Report) -> WriteResult:
        """Write `rows`, and begin anew after a conflict as often as the options allow.

        Raises:
            BadInput: The rows are refused.
            WriteConflict: Another writer was first, and no retry is left.
            WriteAborted: The instant was rolled back.
            OutcomeUnknown: The store did not say.
        """
        attempts: list[Attempt] = []
        report("reading the input")
        with Intake(self.table, self.settings).take(operation, rows) as keyed:
            while True:
                published, stats = self._attempt(operation, keyed, report, attempts)
                if published.conflict is None or len(attempts) > self.settings.conflict_retries:
                    return WriteResult.of(published.raise_unless_committed(), stats, attempts=attempts)
                report(f"met a conflict, beginning anew ({len(attempts)} of {self.settings.conflict_retries})")
                self.clock.sleep(len(attempts) * _RETRY_MS / 1000)

    def _attempt(
        self, operation: Operation, keyed: KeyedRows, report: Report, attempts: list[Attempt]
    ) -> tuple[PublishResult, list[WriteStat]]:
        began_ms = self.clock.wall_ms()
        with (
            self.transactions.begin(_ACTION, operation.value.upper()) as transaction,
            typed_task_errors(),
            self._place(transaction, operation, keyed, report) as (placement, schema),
        ):
            stats = self._run_job(self._make_task(transaction, operation, schema, placement), placement, keyed, report)
            report("publishing")
            metadata = CommitMetadata.of(stats, transaction.operation, schema=self._recorded(schema))
            published = transaction.publish(metadata, new_keys=placement.new_keys)
        ended_ms = self.clock.wall_ms()
        attempts.append(Attempt(transaction.instant, began_ms, ended_ms, published.outcome, published.conflict))
        return published, stats

    @contextmanager
    def _place(
        self, transaction: Transaction, operation: Operation, keyed: KeyedRows, report: Report
    ) -> Iterator[tuple[Placement, pa.Schema]]:
        snapshot = Snapshot(self.table, transaction.timeline)
        is_delete = operation is Operation.DELETE
        schema = (snapshot.schema or pa.schema([])) if is_delete else snapshot.merge_schema(keyed.schema)
        report("finding file groups")
        placer = Placer(self.settings, snapshot, transaction.instant)
        with placer.place(operation, keyed.frame, keyed.counts) as placement:
            yield placement, schema

    def _recorded(self, schema: pa.Schema) -> str | None:
        """What a commit says of the columns; nothing where a delete came before any rows."""
        return avro_schema(schema, self.table.config.name) if schema.names else None

    def _run_job(self, task: WriteTask, placement: Placement, keyed: KeyedRows, report: Report) -> list[WriteStat]:
        report("writing base files")
        reported = self._spread(placement, keyed).mapInArrow(lambda batches: task(batches), f"{STAT} string").collect()
        return [decode_stat(row[STAT]) for row in reported]

    def _spread(self, placement: Placement, keyed: KeyedRows) -> DataFrame:
        if placement.expected_groups is None:
            return placement.rows
        tasks = self.settings.count_tasks(placement.rows.sparkSession, placement.expected_groups)
        return spread_rows(placement.rows, keyed.columns, tasks=tasks)

    def _make_task(
        self, transaction: Transaction, operation: Operation, schema: pa.Schema, placement: Placement
    ) -> WriteTask:
        config = self.table.config
        avro = avro_schema(schema, config.name, with_meta_columns=True)
        return WriteTask(
            files=transaction.files,
            schema=add_meta_schema(schema),
            form=BaseFileFormat(avro, self.settings.codec),
            groups=placement.groups,
            operation=operation,
            rule=self.settings.merge_rule(operation, config),
            combine=self.settings.combines(operation),
            key_fields=config.record_key_fields,
            memory_bytes=self.settings.memory_bytes,
        )
