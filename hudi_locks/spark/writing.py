"""A write from DataFrame to commit. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from hudi_locks.clock import Clock
from hudi_locks.format import CommitMetadata, WriteStat, avro_schema
from hudi_locks.spark.failures import typed_task_errors
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.placement import GROUP, Placement
from hudi_locks.spark.placing import Placer
from hudi_locks.spark.result import Attempt, WriteResult
from hudi_locks.spark.rows import (
    KeyColumns,
    check_ordering,
    count_rows,
    make_key_columns,
    select_user_columns,
    user_schema,
)
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.task import STAT, WriteTask, decode_stat
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFileFormat, Table, add_meta_schema
from hudi_locks.transaction import PublishResult, Transaction, Transactions

__all__ = ["Report", "Writer"]

Report = Callable[[str], None]

_ACTION = "commit"
_TASKS_PER_CORE = 4
_MOST_TASKS = 2000
_RETRY_MS = 100


@dataclass(frozen=True)
class KeyedRows:
    """The input with keys.

    Attributes:
        frame: The rows.
        schema: Of the user's columns.
        columns: How the keys are made, to make them again; None where the user's columns are left out.
        counts: How many rows each partition gets; None if they were not counted.
    """

    frame: DataFrame
    schema: pa.Schema
    columns: KeyColumns | None
    counts: Mapping[str, int] | None = None


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
        with self._prepare(operation, rows, report) as keyed:
            while True:
                published, stats = self._attempt(operation, keyed, report, attempts)
                if published.conflict is None or len(attempts) > self.settings.conflict_retries:
                    return WriteResult.of(published.raise_unless_committed(), stats, attempts=attempts)
                report(f"met a conflict, beginning anew ({len(attempts)} of {self.settings.conflict_retries})")
                self.clock.sleep(len(attempts) * _RETRY_MS / 1000)

    @contextmanager
    def _prepare(self, operation: Operation, rows: DataFrame, report: Report) -> Iterator[KeyedRows]:
        """Key the rows and look at them before anything is written.

        They are persisted, so that retries and recomputed stages see the same rows. A bulk insert into buckets, which
        needs its input once, looks at them on the way instead.
        """
        keyed = self._key(operation, rows)
        if operation is Operation.BULK_INSERT and self.settings.index_type == "BUCKET":
            yield keyed
            return
        report("reading the input")
        frame = keyed.frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            with typed_task_errors():
                counts = count_rows(frame, self.table.config)
            yield replace(keyed, frame=frame, counts=counts)
        finally:
            frame.unpersist()

    def _key(self, operation: Operation, rows: DataFrame) -> KeyedRows:
        snapshot = Snapshot.load(self.table)
        user = select_user_columns(rows)
        columns = make_key_columns(user, self.table.config, composite=snapshot.has_composite_keys())
        frame, schema = columns.add_to(user), user_schema(user)
        if operation is Operation.DELETE:
            return KeyedRows(frame.select(RECORD_KEY, PARTITION_PATH), schema, None)
        check_ordering(user, self.table.config)
        snapshot.merge_schema(schema)
        return KeyedRows(frame, schema, columns)

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
        spread = self._spread(placement, keyed.columns)
        reported = spread.mapInArrow(lambda batches: task(batches), f"{STAT} string").collect()
        return [decode_stat(row[STAT]) for row in reported]

    def _spread(self, placement: Placement, columns: KeyColumns | None) -> DataFrame:
        """Bring the rows of a file group together. Key and path are cheaper to make again than to carry along."""
        tasks = self._count_tasks(placement)
        if columns is None:
            return placement.rows.repartition(tasks, PARTITION_PATH, GROUP)
        carried = placement.rows.drop(RECORD_KEY, PARTITION_PATH)
        return columns.add_to(carried.repartition(tasks, columns.path, GROUP))

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

    def _count_tasks(self, placement: Placement) -> int:
        cores = placement.rows.sparkSession.sparkContext.defaultParallelism
        wanted = max(cores * _TASKS_PER_CORE, placement.expected_groups)
        return self.settings.tasks or min(wanted, _MOST_TASKS)
