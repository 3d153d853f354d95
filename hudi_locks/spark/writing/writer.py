"""A write from DataFrame to commit. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hudi_locks.clock import Clock
from hudi_locks.format import CommitMetadata, WriteStat, avro_schema
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import StagedFiles
from hudi_locks.metadata_table import StagedLog, list_indexed
from hudi_locks.observe import EARLY_CONFLICT_CHECK, EARLY_CONFLICT_SAVED, SpanName
from hudi_locks.services.met_conflicts import describe_conflict, leave_conflicts, note_conflicts
from hudi_locks.spark._compat import run_in_workers
from hudi_locks.spark.operation import STAT, TOLD_KEYS, Attempt, Operation, WriteResult, decode_report
from hudi_locks.spark.partitions import check_partitions
from hudi_locks.spark.session import EarlyConflictMet, cancel_on_abort, raise_if_rolled_back, typed_task_errors
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.input import InputPreparer
from hudi_locks.spark.writing.key_changes import KeyLogs
from hudi_locks.spark.writing.log_task import LogTask
from hudi_locks.spark.writing.partial_rewrite import PartialRewrite, WrittenFiles, write_around
from hudi_locks.spark.writing.placement import Placement
from hudi_locks.spark.writing.rows import KeyedRows
from hudi_locks.spark.writing.strategy import WriteStrategy
from hudi_locks.spark.writing.task import WriteTask
from hudi_locks.table import Table
from hudi_locks.timeline_server import MarkerHost
from hudi_locks.transaction import Conflict, Outcome, PublishResult, ReadSet, Transaction, Transactions, Unless

__all__ = ["CommitTerms", "Report", "Writer"]

Report = Callable[[str], None]

_RETRY_MS = 100


@dataclass(frozen=True)
class CommitTerms:
    """What a caller adds to a commit.

    Attributes:
        extra: Texts that are kept in the commit's extra metadata, where any reader of the timeline finds them.
        unless: Asked inside the table lock, with the timeline on which is decided, for a reason not to publish; "" to
            go on. May be asked several times.
    """

    extra: Mapping[str, str] = field(default_factory=dict)
    unless: Unless | None = None


@dataclass(frozen=True)
class _Draft:
    """What one attempt wants to publish, as `Transaction.publish` takes it, and the conflicts that it avoided."""

    metadata: CommitMetadata
    reads: ReadSet = field(default_factory=ReadSet)
    unless: Unless | None = None
    avoided: tuple[Conflict, ...] = ()
    rewritten: int = 0
    logs: KeyLogs | None = None

    @property
    def key_logs(self) -> tuple[StagedLog, ...] | None:
        """What it tells the record index; None where there is none."""
        return None if self.logs is None else self.logs.staged

    @property
    def published(self) -> tuple[CommitMetadata, ReadSet]:
        """What conflicts are looked for with."""
        return self.metadata, self.reads


@dataclass(frozen=True)
class _Asked:
    """What a caller wants to have written."""

    operation: Operation
    keyed: KeyedRows
    report: Report
    terms: CommitTerms


_Run = Callable[[Placement], list[WriteStat]]
_Work = Callable[[Transaction, int], AbstractContextManager[_Draft]]
"""Given how many conflicts it may still answer."""


@dataclass(frozen=True)
class Writer:
    """Writes to one table.

    Attributes:
        table: The table.
        transactions: Begins and publishes its instants.
        strategy: Of the table's type.
        clock: Its source of time.
        host: Gives tasks what makes their markers; None for those that the transaction makes by itself.
    """

    table: Table
    transactions: Transactions
    strategy: WriteStrategy
    clock: Clock
    host: MarkerHost | None = None

    @property
    def settings(self) -> PipelineSettings:
        """How to write."""
        return self.strategy.settings

    def write(
        self, operation: Operation, rows: DataFrame, *, report: Report, terms: CommitTerms | None = None
    ) -> WriteResult:
        """Write `rows`, and begin anew after a conflict as often as the options allow.

        Raises:
            BadInput: The rows are refused.
            WriteConflict: Another writer was first, and no retry is left; found early, it is a
                HoodieEarlyConflictDetectionException.
            WriteAborted: The instant was rolled back.
            OutcomeUnknown: The store did not say.
        """
        self.strategy.refuse(operation)
        report("reading the input")
        preparer = InputPreparer(self.table, self.strategy.index, self.transactions.recall_timeline())
        with preparer.prepare(operation, rows) as keyed:
            asked = _Asked(operation, keyed, report, terms or CommitTerms())
            return self._repeat(operation, lambda tx, turns: self._write_rows(tx, asked, turns), report)

    def write_derived(self, derive: Callable[[Snapshot], DataFrame], *, report: Report) -> WriteResult:
        """Upsert what `derive` makes of the table as each attempt finds it; otherwise as `write`.

        Rows with MOVED take out the row that has their key. A conflict with what the table had is met by another
        attempt, which derives anew.
        """
        self.strategy.refuse(Operation.UPSERT)
        return self._repeat(Operation.UPSERT, lambda tx, _: self._write_derived(tx, derive, report), report)

    def delete_partitions(self, spark: SparkSession, partitions: str | Iterable[str], *, report: Report) -> WriteResult:
        """End every file group of these partitions; otherwise as `write`."""
        self.strategy.refuse(Operation.DELETE_PARTITION)
        named = check_partitions(self.table, [partitions] if isinstance(partitions, str) else partitions)
        return self._repeat(Operation.DELETE_PARTITION, lambda tx, _: self._end_partitions(tx, spark, named), report)

    def _repeat(self, operation: Operation, work: _Work, report: Report) -> WriteResult:
        if self.table.config.has_record_index:
            self.strategy.refuse_record_index()
        attempts: list[Attempt] = []
        try:
            while True:
                with self.transactions.metrics.span(SpanName.ATTEMPT, attempt=len(attempts) + 1) as span:
                    published, metadata = self._attempt(operation, work, report, attempts)
                    span.note(**attempts[-1].describe())
                if published.conflict is None or len(attempts) > self.settings.conflict_retries:
                    result = WriteResult.of(published.raise_unless_committed(), metadata, attempts=attempts)
                    self._report_saved(attempts)
                    return result
                report(f"met a conflict, beginning anew ({len(attempts)} of {self.settings.conflict_retries})")
                self._pause(published.conflict, len(attempts))
        except Exception:
            self._leave_conflicts(attempts)
            raise

    def _report_saved(self, attempts: Sequence[Attempt]) -> None:
        """What those that were given up early would have taken longer, had they been as long as the last one."""
        whole_s = attempts[-1].duration_s
        for attempt in attempts:
            if attempt.conflict is not None and attempt.conflict.is_early:
                saved_s = max(0.0, whole_s - attempt.duration_s)
                self.transactions.metrics.report(EARLY_CONFLICT_SAVED, saved_s)

    def _pause(self, conflict: Conflict, attempts: int) -> None:
        """Until another try is worth while: an earlier write that is still at work would only be met again."""
        if conflict.is_early:
            self.transactions.early.await_end(conflict.other, self.settings.early_wait_s)
        self.clock.sleep(attempts * _RETRY_MS / 1000)

    def _attempt(
        self, operation: Operation, work: _Work, report: Report, attempts: list[Attempt]
    ) -> tuple[PublishResult, CommitMetadata]:
        began_ms, draft = self.clock.wall_ms(), _Draft(CommitMetadata.of((), operation.value.upper(), schema=None))
        transaction = self.transactions.begin(self.strategy.action(operation), operation.value.upper())
        try:
            left = self.settings.conflict_retries - len(attempts)
            taken = raise_if_rolled_back(transaction)
            with transaction, taken, typed_task_errors(), work(transaction, left) as draft:
                report("publishing")
                metadata = self._note_conflicts(draft, attempts)
                published = transaction.publish(
                    metadata, reads=draft.reads, unless=draft.unless, key_logs=draft.key_logs
                )
        except EarlyConflictMet as met:
            published = PublishResult(transaction.instant, Outcome.ABORTED, conflict=met.conflict, reason=str(met))
        ended_ms = self.clock.wall_ms()
        what = (published.outcome, published.conflict, draft.avoided, draft.rewritten)
        attempts.append(Attempt(transaction.instant, began_ms, ended_ms, *what))
        return published, draft.metadata

    def _note_conflicts(self, draft: _Draft, attempts: Sequence[Attempt]) -> CommitMetadata:
        """Those that this write met until now, kept with its commit."""
        avoided = [*(conflict for one in attempts for conflict in one.avoided), *draft.avoided]
        met = _describe_lost(attempts) + [describe_conflict(conflict, lost_ms=None) for conflict in avoided]
        return (
            note_conflicts(draft.metadata, met, writer=self.transactions.coordinator.owner) if met else draft.metadata
        )

    def _leave_conflicts(self, attempts: Sequence[Attempt]) -> None:
        """Those that a write met which gave up."""
        if met := _describe_lost(attempts):
            owner = self.transactions.coordinator.owner
            leave_conflicts(self.table.storage, attempts[-1].instant, met=met, writer=owner)

    @contextmanager
    def _write_derived(
        self, transaction: Transaction, derive: Callable[[Snapshot], DataFrame], report: Report
    ) -> Iterator[_Draft]:
        report("reading the table")
        timeline, operation = transaction.timeline, Operation.UPSERT
        preparer = InputPreparer(self.table, self.strategy.index, timeline, takes_out=True)
        with preparer.prepare(operation, derive(Snapshot(self.table, timeline))) as keyed:
            asked = _Asked(operation, keyed, report, CommitTerms())
            with self._write_rows(transaction, asked, 0) as draft:
                yield draft

    @contextmanager
    def _write_rows(self, transaction: Transaction, asked: _Asked, turns: int) -> Iterator[_Draft]:
        operation, keyed = asked.operation, asked.keyed
        snapshot = Snapshot(self.table, transaction.timeline)
        schema = self._choose_schema(snapshot, operation, keyed)
        snapshot.tell_columns(schema, instant=transaction.instant)  # refuses before any work
        if indexed := transaction.indexed:  # refuse a column before any work
            list_indexed(indexed.columns, schema, version=self.table.config.version)
        asked.report("finding file groups")
        index = self.strategy.index
        logs = self._open_logs(transaction, snapshot, asked) if indexed and indexed.key_groups else None

        def run(placement: Placement) -> list[WriteStat]:
            with self._open_files(transaction) as files:
                made = self.strategy.make_task(snapshot.place_logs(files), operation, schema, placement.groups)
                task = replace(made, rule=replace(made.rule, history=snapshot.history))
                return self._run_job(task, self.strategy.spread(placement, keyed, operation), asked.report, logs)

        def draft(made: WrittenFiles) -> _Draft:
            return replace(self._draft(transaction, asked, made, schema), logs=logs)

        with (
            cancel_on_abort(transaction, keyed.frame.sparkSession),
            self._place(asked, snapshot, transaction.instant) as placement,
        ):
            made = WrittenFiles(snapshot, placement, *self._run_around(transaction, placement, run, asked, logs))
            if logs is not None or not turns or not self.strategy.may_go_on(operation):
                yield draft(made)
                return
            going = PartialRewrite(transaction, operation, keyed, index, run, lambda made: draft(made).published)
            with going.finish(made, most=turns) as made:
                yield draft(made)

    @contextmanager
    def _place(self, asked: _Asked, snapshot: Snapshot, instant: str) -> Iterator[Placement]:
        """What the index assigns; only how long that takes to find is measured."""
        metrics, found = self.transactions.metrics, ExitStack()
        with found:
            with metrics.measure(SpanName.PLACE, "index", self.clock, duration="lookup.duration", instant=instant):
                assigned = self.strategy.index.assign(asked.operation, asked.keyed, snapshot, instant=instant)
                placement = found.enter_context(assigned)
            yield placement

    def _open_files(self, transaction: Transaction) -> AbstractContextManager[StagedFiles]:
        return nullcontext(transaction.files) if self.host is None else self.host.open(transaction)

    def _draft(self, transaction: Transaction, asked: _Asked, made: WrittenFiles, schema: pa.Schema) -> _Draft:
        metadata = CommitMetadata.of(
            [stat for stat in made.stats if stat.path],
            transaction.operation,
            schema=self._recorded(schema),
            extra={**asked.terms.extra, **made.snapshot.tell_columns(schema, instant=transaction.instant)},
            replaced_file_ids=made.snapshot.find_replaced(asked.operation, asked.keyed.counts),
        )
        left = frozenset(FileGroupId(stat.partition_path, stat.file_id) for stat in made.stats if not stat.path)
        reads = self.strategy.list_reads(asked.operation, asked.keyed, made.placement, left)
        return _Draft(metadata, reads, asked.terms.unless, made.avoided, made.rewritten)

    def _open_logs(self, transaction: Transaction, snapshot: Snapshot, asked: _Asked) -> KeyLogs:
        self.strategy.refuse_record_index()
        ended = snapshot.list_ended(asked.operation, asked.keyed.counts)
        return KeyLogs.of(transaction, self.table).take_out(snapshot, ended, asked.keyed.frame.sparkSession)

    @contextmanager
    def _end_partitions(
        self, transaction: Transaction, spark: SparkSession, partitions: Sequence[str]
    ) -> Iterator[_Draft]:
        snapshot = Snapshot(self.table, transaction.timeline)
        replaced = snapshot.find_replaced(Operation.DELETE_PARTITION, partitions)
        known = snapshot.schema if snapshot.schema is not None else pa.schema([])
        schema, told = self._recorded(known), snapshot.tell_columns(known, instant=transaction.instant)
        logs = None
        if transaction.indexed and transaction.indexed.key_groups:
            ended = snapshot.list_ended(Operation.DELETE_PARTITION, partitions)
            logs = KeyLogs.of(transaction, self.table).take_out(snapshot, ended, spark)
            logs.take_lost()
        metadata = CommitMetadata.of((), transaction.operation, schema=schema, extra=told, replaced_file_ids=replaced)
        yield _Draft(metadata, logs=logs)

    def _choose_schema(self, snapshot: Snapshot, operation: Operation, keyed: KeyedRows) -> pa.Schema:
        if operation is Operation.DELETE:
            return snapshot.schema or pa.schema([])
        return snapshot.merge_schema(keyed.schema)

    def _recorded(self, schema: pa.Schema) -> str | None:
        """What a commit says of the columns; nothing where a delete came before any rows."""
        return avro_schema(schema, self.table.config.name) if schema.names else None

    def _run_around(
        self, transaction: Transaction, placement: Placement, run: _Run, asked: _Asked, logs: KeyLogs | None
    ) -> tuple[tuple[WriteStat, ...], tuple[Conflict, ...]]:
        """Once where keys are told: what was told of file groups that are written again could not be taken back."""
        if logs is not None or not self.strategy.may_move(asked.operation):
            return tuple(run(placement)), ()
        stats, avoided = write_around(transaction, placement, run=run)
        return tuple(stats), avoided

    def _run_job(
        self, task: WriteTask | LogTask, rows: DataFrame, report: Report, logs: KeyLogs | None
    ) -> list[WriteStat]:
        report(self.strategy.doing)
        with self.transactions.metrics.span(SpanName.WRITE_FILES) as span:
            if logs is None:
                texts = [row[STAT] for row in run_in_workers(rows, task, f"{STAT} string").collect()]
            else:
                texts = logs.take(run_in_workers(rows, task, f"{STAT} string, {TOLD_KEYS}"))
            stats, checks_s = decode_report(texts)
            span.note(files=len(stats), rows_written=sum(stat.num_writes for stat in stats))
        for check_s in checks_s:
            self.transactions.metrics.report(EARLY_CONFLICT_CHECK, check_s)
        return stats


def _describe_lost(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """The conflicts for which attempts were thrown away."""
    lost = [(one.conflict, one) for one in attempts if one.conflict]
    return [describe_conflict(met, lost_ms=one.ended_ms - one.began_ms, met_ms=one.ended_ms) for met, one in lost]
