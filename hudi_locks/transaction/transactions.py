"""The public face of the transaction core."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.config import Options, table_keys
from hudi_locks.deprecation import RenamedMember
from hudi_locks.errors import ConfigError
from hudi_locks.lock import Owner
from hudi_locks.metadata_table import Indexed
from hudi_locks.observe import COMPACTION_REQUESTED, Metrics, SpanName
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.claims import ClaimLog
from hudi_locks.timeline.heartbeat import find_expired
from hudi_locks.transaction.abort import resolve_instant
from hudi_locks.transaction.begin import Begin
from hudi_locks.transaction.concurrent_writes import EarlyConflictDriver
from hudi_locks.transaction.conflicts import ConflictResolutionStrategy, NonBlocking, load_strategy
from hudi_locks.transaction.coordinator import Locks, TableCoordinator
from hudi_locks.transaction.foreign_writers import Notices
from hudi_locks.transaction.hooks import CommitParticipant, Tracer, tracer_from
from hudi_locks.transaction.operations import find_plan
from hudi_locks.transaction.planning import (
    ClusteringPlanning,
    CompactionPlanning,
    LogCompactionPlanning,
    MakeCompactionPlan,
    MakePlan,
)
from hudi_locks.transaction.settings import TransactionTable, WriterSettings, name_this_process, refuse_unusable
from hudi_locks.transaction.transaction import Transaction
from hudi_locks.transaction.write_state import Outcome, WriteState

__all__ = ["Transactions"]

_ACTIONS = ("commit", "deltacommit", "replacecommit")


class Transactions:
    """Writes to one table that never lose an update, with or without a working lock. Thread-safe. Runs on the driver.

    Safety comes from the claim log; the table lock saves conflict checks that would be wasted. What is promised where
    JVM writers share the table, which know nothing of claims, stands in docs/commit-protocol.md.

    Args:
        table: Its storage, layout and properties.
        locks: Of the table; None only for a single writer.
        options: Hudi's keys, as the writer was given them.
        clock: Source of time.
        owner: Who writes, for the others to read; by default this process.
        trace: Called at every stop point; a seam for tests.
        metrics: Gets the ages of heartbeats, and how conflict resolution went.
        participants: What is to be durable before a claim publishes a write, beside its data files.

    Attributes:
        coordinator: What table services share with the writes of this process.
        early: Detection of conflicts before files are written.
        is_merge_on_read: Whether writes append to logs.

    Raises:
        ConfigError: Several writers without a lock provider, or an option that cannot be used.
        UnsupportedTable: The store does not keep what writers rest on.
    """

    def __init__(
        self,
        table: TransactionTable,
        locks: Locks | None,
        *,
        options: Mapping[str, object] | None = None,
        clock: Clock | None = None,
        owner: Owner | None = None,
        trace: Tracer | None = None,
        metrics: Metrics | None = None,
        participants: Iterable[CommitParticipant] = (),
    ) -> None:
        settings = WriterSettings.of(options or {}, table.config.extra)
        refuse_unusable(table, settings, has_lock=locks is not None)
        clock, metrics = clock or SystemClock(), metrics or Metrics()
        metrics.trace_by(Options(options or {}))
        self.is_merge_on_read: bool = table.config.table_type == "MERGE_ON_READ"
        self.coordinator: TableCoordinator = TableCoordinator(
            storage=table.storage,
            layout=table.layout,
            version=table.config.version,
            settings=settings,
            log=ClaimLog(table.storage, clock),
            notices=Notices(table.storage),
            clock=clock,
            owner=str(owner or name_this_process()),
            tracer=trace or tracer_from(os.environ),
            metrics=metrics,
            keeps_metadata=bool(table.config.extra.get(table_keys.METADATA_PARTITIONS.name)),
            locks=locks,
            strategy=_choose_strategy(settings, is_merge_on_read=self.is_merge_on_read),
            participants=tuple(participants),
        )
        self.early: EarlyConflictDriver = EarlyConflictDriver(self.coordinator, options or {})

    coordination: ClassVar[RenamedMember] = RenamedMember("coordinator", removed_in="0.3.0")

    @property
    def notices(self) -> Notices:
        """Why writes are refused, and how to let them go on."""
        return self.coordinator.notices

    @property
    def metrics(self) -> Metrics:
        """What was counted and measured so far; names in `hudi_locks.observe`."""
        return self.coordinator.metrics

    def recall_timeline(self) -> Timeline | None:
        """The timeline as this object last saw it, however long ago, without a request; None if it has seen none."""
        return self.coordinator.known_timeline.peek() if self.coordinator.goes_by_claims else None

    def begin(self, action: str, operation: str) -> Transaction:
        """Begin a write, after rolling back what failed writers left.

        Args:
            action: `commit`, `deltacommit` or `replacecommit`.
            operation: What the user does, such as UPSERT; for a person.

        Raises:
            AcquireTimeout: The table lock was held by somebody else for as long as we may wait.
            ClockRefused: The times are out of bounds.
            DamagedTable: The timeline or the claim log is unreadable.
            SecondWriterRefused: This is to be the only writer, and another one is alive.
            StorageError: The store failed.
            UnsupportedTable: A bootstrap of the table is not finished.
            PossibleLostUpdate: Writes are refused until a notice is acknowledged.
            WriteAborted: A restore is pending.
        """
        if action not in _ACTIONS:
            raise ConfigError(f"a write is one of {', '.join(_ACTIONS)}, not {action!r}", action=action)
        with self.metrics.span(SpanName.BEGIN, action=action, operation=operation) as span:
            begun = self._open(self._indexed, Begin(self.coordinator).run(action), operation)
            span.note(instant=begun.instant)
        return begun

    def schedule_clustering(self, make_plan: MakePlan) -> str | None:
        """Put a clustering plan on the timeline, under a claim: from then on writes of its file groups meet it.

        The lock is held for the decision alone; groups that changed since the plan was made are left out of it.

        Args:
            make_plan: Makes the plan from what a timeline shows; None for nothing to do.

        Returns:
            The plan's requested time; None if there is nothing to do, or no more.

        Raises:
            StorageError: The store failed. A plan whose claim got no answer may still appear on the timeline.
            WriteAborted: A restore is pending.
        """
        return ClusteringPlanning(self.coordinator).schedule(make_plan)

    def adopt_clustering(self, instant: str, find_changed: Callable[[Timeline], Collection[tuple[str, str]]]) -> None:
        """Claim a plan of a JVM writer that nobody runs, so that `resume` takes it; nothing if it is claimed.

        Args:
            instant: Its requested time.
            find_changed: Which of its file groups a timeline shows as written, or replaced, since it was made.

        Raises:
            WriteAborted: It is not there, is under way, or a file group was written.
        """
        ClusteringPlanning(self.coordinator).adopt(instant, find_changed)

    def resume(self, instant: str) -> Transaction:
        """Begin what `schedule_clustering` put on the timeline, here or in another process; publish or abort it then.

        Raises:
            WriteAborted: It is not on the timeline, is done or under way, or somebody else planned it.
        """
        planning = ClusteringPlanning(self.coordinator)
        return self._open(self._indexed, planning.resume(instant), planning.operation)

    def schedule_compaction(self, make_plan: MakeCompactionPlan) -> str | None:
        """Put a compaction plan on the timeline, under a claim, while others write.

        What completes before the plan is decided becomes part of it; what completes later is read on top of its
        result.

        Args:
            make_plan: Makes the plan from what a timeline shows; None for nothing to do.

        Returns:
            The plan's requested time; None if there is nothing to do.

        Raises:
            StorageError: See `schedule_clustering`.
            WriteAborted: A restore is pending.
        """
        scheduled = CompactionPlanning(self.coordinator).schedule(make_plan)
        if scheduled is not None:
            self.metrics.count(COMPACTION_REQUESTED)
        return scheduled

    def resume_compaction(self, instant: str) -> Transaction:
        """Begin what `schedule_compaction` put on the timeline; see `resume`."""
        planning = CompactionPlanning(self.coordinator)
        return self._open(self._indexed, planning.resume(instant), planning.operation)

    def schedule_log_compaction(self, make_plan: MakeCompactionPlan) -> str | None:
        """Put a plan to merge logs into a log on the timeline, under a claim; nothing while a write is under way.

        A write that begins later is read on top of the result. For arguments, result and errors see
        `schedule_compaction`.
        """
        return LogCompactionPlanning(self.coordinator).schedule(make_plan)

    def resume_log_compaction(self, instant: str) -> Transaction:
        """Begin what `schedule_log_compaction` put on the timeline; see `resume`."""
        planning = LogCompactionPlanning(self.coordinator)
        return self._open(self._indexed, planning.resume(instant), planning.operation)

    def find_dead(self, instants: Iterable[str]) -> frozenset[str]:
        """Those of the instants whose process has given no sign of life for longer than it may."""
        limit_ms = self.coordinator.settings.heartbeat_limit_ms
        return find_expired(self.coordinator.storage, instants, limit_ms=limit_ms)

    def is_own_plan(self, instant: str) -> bool:
        """Whether this package scheduled the plan, so that `resume` takes it."""
        return find_plan(self.coordinator.log, instant) is not None

    def is_own_attempt(self, instant: str) -> bool:
        """Whether this package began to run the compaction, and no JVM writer has taken it over since."""
        return CompactionPlanning(self.coordinator).is_own_attempt(instant)

    def resolve(self, instant: str) -> Outcome:
        """What became of the write with requested time `instant`: COMMITTED or ABORTED, for good.

        A write that is not decided yet is rolled back; so this is for writes whose publish gave UNKNOWN, or whose
        writer is dead. A write that was committed and undone by a restore since is COMMITTED: it had its place in the
        order, and to write it again would bring back what the restore took away.

        Raises:
            AcquireTimeout: See `begin`.
            StorageError: The store still does not answer.
        """
        with self.coordinator.hold():
            return resolve_instant(self.coordinator, instant)

    def roll_back_failed(self) -> list[str]:
        """Roll back every pending write whose writer has no fresh heartbeat; returns their requested times."""
        return Begin(self.coordinator).clean_failed_writes()

    def accept_times(self) -> str | None:
        """Let writers go on though a time on the timeline is far ahead of the store's clock; theirs are after it then.

        Returns:
            That time; None if all times are within bounds.

        Raises:
            AcquireTimeout: See `begin`.
            ClockRefused: JVM writers may be at work, which would go on with earlier times.
            StorageError: The store failed.
        """
        with self.coordinator.hold():
            return self.coordinator.accept_times(self.coordinator.load_timeline())

    @property
    def _indexed(self) -> Indexed | None:
        """What the metadata table needs of the tasks; read before a write begins, so that a refusal leaves nothing."""
        return self.coordinator.describe_indexed()

    def _open(self, indexed: Indexed | None, state: WriteState, operation: str) -> Transaction:
        return Transaction(self.coordinator, replace(state, indexed=indexed), operation=operation, early=self.early)


def _choose_strategy(settings: WriterSettings, *, is_merge_on_read: bool) -> ConflictResolutionStrategy:
    """What the options name is for optimistic writers; those that do not block have one rule."""
    known = {"is_merge_on_read": is_merge_on_read, "is_bucketed": settings.is_bucketed}
    return NonBlocking(**known) if settings.is_non_blocking else load_strategy(settings.strategy, **known)
