"""A table service that is planned, then run: on demand, after a commit, or beside the writes. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession

from hudi_locks.clock import Clock
from hudi_locks.format import CommitMetadata, WriteStat
from hudi_locks.observe import Metrics, SpanName
from hudi_locks.services import Plan, PlannedService
from hudi_locks.services.met_conflicts import describe_conflict, leave_conflicts
from hudi_locks.spark._compat import run_in_workers
from hudi_locks.spark._worker import WorkerTask
from hudi_locks.spark.operation import STAT, TOLD_KEYS, Attempt, WriteResult, decode_stat
from hudi_locks.spark.services.background import SERVICE_ERRORS, BackgroundThread
from hudi_locks.spark.session import cancel_on_abort, raise_if_rolled_back, show_progress, typed_task_errors
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.writing.key_changes import KeyLogs
from hudi_locks.table import Table
from hudi_locks.transaction import Outcome, Transaction

__all__ = ["Cadence", "PlanJob", "ScheduledService"]

P = TypeVar("P", bound=Plan)
_Report = Callable[[str], None]


@dataclass(frozen=True)
class PlanJob(ABC, Generic[P]):
    """Writes what the plans of a service ask for, each as one Spark job.

    Attributes:
        spark: Session of the jobs.
        table: The table.
        settings: How files are encoded.
    """

    spark: SparkSession
    table: Table
    settings: PipelineSettings

    name: ClassVar[str]
    """Of the service."""
    doing: ClassVar[str]
    """What it does to file groups, for a person: `compacting`."""

    @abstractmethod
    def write(self, transaction: Transaction, plan: P, logs: KeyLogs | None) -> CommitMetadata:
        """Write the files of a plan; the metadata of its commit. Keys go to `logs`, if there are such."""

    def _collect_stats(self, rows: DataFrame, task: WorkerTask, logs: KeyLogs | None = None) -> list[WriteStat]:
        """What a task that yields batches of stats, and of keys where they are told, made of the rows."""
        if logs is not None:
            return list(map(decode_stat, logs.take(run_in_workers(rows, task, f"{STAT} string, {TOLD_KEYS}"))))
        return [decode_stat(row[STAT]) for row in run_in_workers(rows, task, f"{STAT} string").collect()]


@dataclass(frozen=True)
class Cadence:
    """After how many commits a service is due by itself.

    Attributes:
        inline_commits: So many since the last time make it due after a write; 0 if it never is.
        async_commits: The same for the thread beside the writes.
        is_only_scheduled: Whether what is due after a write is planned, and left to others to run.
    """

    inline_commits: int = 0
    async_commits: int = 0
    is_only_scheduled: bool = False

    @property
    def follows_writes(self) -> bool:
        """Whether anything is due by itself."""
        return bool(self.inline_commits or self.async_commits)


class ScheduledService(Generic[P]):
    """Plans of one service of one table: made, run, taken back. Thread-safe. Lives on the driver.

    The table lock is taken to schedule and to publish, and not while files are written. A plan of this package that
    waits is run first; one whose process died is rolled back, and planned anew. Plans of JVM writers are theirs.

    Every method but `wait` raises AcquireTimeout if the table lock could not be had, and StorageError if the store
    failed: a later call, of anybody, goes on.

    Args:
        planning: Makes plans and publishes.
        job: Runs them.
        clock: Its source of time.
        cadence: When it is due by itself.
    """

    def __init__(self, planning: PlannedService[P], job: PlanJob[P], clock: Clock, *, cadence: Cadence) -> None:
        self._planning = planning
        self._job = job
        self._clock = clock
        self.cadence = cadence
        self._beside = BackgroundThread(job.name, lambda: self._run_if_due(cadence.async_commits))

    def run(self) -> WriteResult | None:
        """Run the plan that waits, or make one and run it.

        Returns:
            What was done; None if there is nothing to do.

        Raises:
            UnsupportedTable: The table is of a kind that the service is not for.
            WriteAborted: It was rolled back meanwhile.
            WriteConflict: Another write changed, or replaced, one of the file groups first; the plan is taken back.
            OutcomeUnknown: The store did not say; `HoodieTable.resolve` finds out.
        """
        return self._run_or_plan(self._planning.schedule)

    def schedule(self) -> str | None:
        """Put a plan on the timeline, to be run here or elsewhere; its instant, or None if there is nothing to do.

        Raises:
            UnsupportedTable: See `run`.
        """
        return self._planning.schedule()

    def execute(self, instant: str | None = None) -> WriteResult | None:
        """Run the plan `instant`, or the oldest of this package that waits; None if none waits.

        Raises:
            WriteAborted: `instant` is no plan of this package that waits, or was rolled back meanwhile.
            WriteConflict: See `run`.
            OutcomeUnknown: See `run`.
        """
        with show_progress(self._title) as report:
            return self._execute(instant, report)

    def abort(self, instant: str) -> Outcome:
        """Take a plan back, with every file that was written for it; COMMITTED if it is done already.

        Raises:
            WriteAborted: There is no such plan of this package.
        """
        return self._planning.abort(instant)

    def wait(self) -> tuple[WriteResult, ...]:
        """Wait for the thread beside the writes; what it has done so far. Raises nothing."""
        self._beside.wait()
        return tuple(self._beside.results)

    def follow(self, result: WriteResult) -> WriteResult:
        """Do what is due after a commit, here or beside; the commit stands, and what failed is one of its warnings."""
        if self.cadence.async_commits:
            self._beside.ask()
        if not self.cadence.inline_commits:
            return result
        try:
            self._do_inline(self.cadence.inline_commits)
        except SERVICE_ERRORS as error:
            return replace(result, warnings=(*result.warnings, f"inline {self._job.name} failed: {error}"))
        return result

    @property
    def _metrics(self) -> Metrics:
        return self._planning.transactions.metrics

    @property
    def _title(self) -> str:
        return f"{self._job.name} of {self._planning.table.storage.base}"

    def _do_inline(self, commits: int) -> None:
        if not self.cadence.is_only_scheduled:
            self._run_if_due(commits)
        elif self._is_due(commits):
            self.schedule()

    def _is_due(self, commits: int) -> bool:
        return self._planning.count_commits(self._planning.table.timeline()) >= commits

    def _run_if_due(self, commits: int) -> WriteResult | None:
        return self.run() if self._is_due(commits) else self.execute()

    def _run_or_plan(self, schedule: Callable[[], str | None]) -> WriteResult | None:
        with show_progress(self._title) as report:
            done = self._execute(None, report)
            if done is None and (scheduled := schedule()):
                return self._execute(scheduled, report)
        return done

    def _execute(self, instant: str | None, report: _Report) -> WriteResult | None:
        taken = self._planning.take(instant)
        if taken is None:
            return None
        transaction, plan = taken
        name, groups = SpanName(f"hudi.{self._planning.action}"), len(plan.file_groups)
        with self._metrics.span(name, instant=transaction.instant, file_groups_planned=groups) as span:
            result = self._execute_plan(transaction, plan, report)
            span.note(**result.describe())
        return result

    def _execute_plan(self, transaction: Transaction, plan: P, report: _Report) -> WriteResult:
        began_ms = self._clock.wall_ms()
        taken, vain = raise_if_rolled_back(transaction), cancel_on_abort(transaction, self._job.spark)
        with transaction, taken, vain, typed_task_errors():
            report(f"{self._job.doing} {len(plan.file_groups)} file groups")
            indexed, logs = transaction.indexed, None
            if indexed and indexed.key_groups:
                logs = KeyLogs.of(transaction, self._job.table)
            unless = self._planning.refuse_publish(transaction, plan)
            with self._metrics.span(SpanName.WRITE_FILES):
                metadata = self._job.write(transaction, plan, logs)
            report("publishing")
            published = transaction.publish(metadata, unless=unless, key_logs=None if logs is None else logs.staged)
        attempt = Attempt(
            transaction.instant, began_ms, self._clock.wall_ms(), published.outcome, conflict=published.conflict
        )
        self._leave_conflict(attempt)
        return WriteResult.of(published.raise_unless_committed(), metadata, attempts=[attempt])

    def _leave_conflict(self, attempt: Attempt) -> None:
        """Where `conflicts` finds what a run met that gives way."""
        if (conflict := attempt.conflict) is not None:
            lost_ms, owner = attempt.ended_ms - attempt.began_ms, self._planning.transactions.coordinator.owner
            met = [describe_conflict(conflict, lost_ms=lost_ms, met_ms=attempt.ended_ms)]
            leave_conflicts(self._job.table.storage, attempt.instant, met=met, writer=owner, service=self._job.name)
