"""The public face of the transaction core."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.errors import ConfigError, StorageError
from hudi_locks.format import CommitMetadata
from hudi_locks.lock import Owner
from hudi_locks.markers import DirectMarkers, FinalFiles, MarkerMaker, end_turns
from hudi_locks.observe import Metrics
from hudi_locks.timeline.claims import ClaimLog
from hudi_locks.timeline.heartbeat import find_expired
from hudi_locks.transaction.begin import Begin
from hudi_locks.transaction.begun import Begun
from hudi_locks.transaction.concurrent import ConcurrentWrites
from hudi_locks.transaction.conflicts import ConflictResolutionStrategy, NonBlocking, load_strategy
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.coordination import Coordination
from hudi_locks.transaction.early import Early
from hudi_locks.transaction.forward import RollForward
from hudi_locks.transaction.identity import name_this_process, refuse_unusable
from hudi_locks.transaction.loss import find_loss
from hudi_locks.transaction.notices import Notices
from hudi_locks.transaction.outcome import Conflict, Outcome, PublishResult
from hudi_locks.transaction.pending import find_plan
from hudi_locks.transaction.planning import (
    CompactionPlanning,
    LogCompactionPlanning,
    MakeCompactionPlan,
    MakePlan,
    Planning,
)
from hudi_locks.transaction.publish import Publish, Unless, tidy
from hudi_locks.transaction.read_set import ReadSet
from hudi_locks.transaction.resolve import resolve_instant
from hudi_locks.transaction.retreat import Retreat
from hudi_locks.transaction.rollback import Rollback
from hudi_locks.transaction.settings import Settings
from hudi_locks.transaction.stop import StopPoint, Tracer, tracer_from
from hudi_locks.transaction.table_like import TransactionTable
from hudi_locks.transaction.table_lock import Locks, hold_table
from hudi_locks.transaction.transaction import Transaction

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

    Attributes:
        early: Detection of conflicts before files are written.
        is_merge_on_read: Whether writes append to logs.

    Raises:
        ConfigError: Several writers without a lock provider, or an option that cannot be used.
        UnsupportedTable: The timeline has no completion times (table version 6).
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
    ) -> None:
        settings = Settings.of(options or {}, table.config.extra)
        refuse_unusable(table, locks, settings)
        clock = clock or SystemClock()
        self._locks = locks
        self.is_merge_on_read = table.config.table_type == "MERGE_ON_READ"
        self._strategy = _choose_strategy(settings, is_merge_on_read=self.is_merge_on_read)
        self._context = Context(
            storage=table.storage,
            layout=table.layout,
            settings=settings,
            log=ClaimLog(table.storage, clock),
            notices=Notices(table.storage),
            clock=clock,
            owner=str(owner or name_this_process()),
            trace=trace or tracer_from(os.environ),
            metrics=metrics or Metrics(),
        )
        self.early = Early(self._context, options or {})
        self._rollback = Rollback(self._context)
        self._forward = RollForward(self._context, self._rollback)
        self._planning = Planning(self._context, self._forward, locks=locks)
        self._compaction = CompactionPlanning(self._context, self._forward, locks=locks)
        self._log_compaction = LogCompactionPlanning(self._context, self._forward, locks=locks)
        self._begin = Begin(self._context, self._forward, rollback=self._rollback, locks=locks)

    @property
    def notices(self) -> Notices:
        """Why writes are refused, and how to let them go on."""
        return self._context.notices

    @property
    def metrics(self) -> Metrics:
        """What was counted and measured so far; names in `hudi_locks.observe`."""
        return self._context.metrics

    @property
    def coordination(self) -> Coordination:
        """What table services share with the writes of this process."""
        return Coordination(self._context, self._forward, locks=self._locks)

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
            UpdateEndangered: Writes are refused until a notice is acknowledged.
            WriteAborted: A restore is pending.
        """
        if action not in _ACTIONS:
            raise ConfigError(f"a write is one of {', '.join(_ACTIONS)}, not {action!r}", action=action)
        return Transaction(self, self._begin.run(action), operation)

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
        return self._planning.schedule(make_plan)

    def resume(self, instant: str) -> Transaction:
        """Begin what `schedule_clustering` put on the timeline, here or in another process; publish or abort it then.

        Raises:
            WriteAborted: It is not on the timeline, is done or under way, or somebody else planned it.
        """
        return Transaction(self, self._planning.resume(instant), "CLUSTER")

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
        return self._compaction.schedule(make_plan)

    def resume_compaction(self, instant: str) -> Transaction:
        """Begin what `schedule_compaction` put on the timeline; see `resume`."""
        return Transaction(self, self._compaction.resume(instant), CompactionPlanning.operation)

    def schedule_log_compaction(self, make_plan: MakeCompactionPlan) -> str | None:
        """Put a plan to merge logs into a log on the timeline, under a claim; nothing while a write is under way.

        A write that begins later is read on top of the result. For arguments, result and errors see
        `schedule_compaction`.
        """
        return self._log_compaction.schedule(make_plan)

    def resume_log_compaction(self, instant: str) -> Transaction:
        """Begin what `schedule_log_compaction` put on the timeline; see `resume`."""
        return Transaction(self, self._log_compaction.resume(instant), LogCompactionPlanning.operation)

    def find_dead(self, instants: Iterable[str]) -> frozenset[str]:
        """Those of the instants whose process has given no sign of life for longer than it may."""
        limit_ms = self._context.settings.heartbeat_limit_ms
        return find_expired(self._context.storage, instants, limit_ms=limit_ms)

    def is_own_plan(self, instant: str) -> bool:
        """Whether this package scheduled the plan, so that `resume` takes it."""
        return find_plan(self._context.log, instant) is not None

    def resolve(self, instant: str) -> Outcome:
        """What became of the write with requested time `instant`: COMMITTED or ABORTED, for good.

        A write that is not decided yet is rolled back; so this is for writes whose publish gave UNKNOWN, or whose
        writer is dead. A write that was committed and undone by a restore since is COMMITTED: it had its place in the
        order, and to write it again would bring back what the restore took away.

        Raises:
            AcquireTimeout: See `begin`.
            StorageError: The store still does not answer.
        """
        with hold_table(self._locks, self._context.clock):
            return resolve_instant(self._context, instant, forward=self._forward, rollback=self._rollback)

    def roll_back_failed(self) -> list[str]:
        """Roll back every pending write whose writer has no fresh heartbeat; returns their requested times."""
        return self._begin.clean_failed_writes()

    def accept_times(self) -> str | None:
        """Let writers go on though a time on the timeline is far ahead of the store's clock; theirs are after it then.

        Returns:
            That time; None if all times are within bounds.

        Raises:
            AcquireTimeout: See `begin`.
            ClockRefused: JVM writers may be at work, which would go on with earlier times.
            StorageError: The store failed.
        """
        with hold_table(self._locks, self._context.clock):
            return self._context.accept_times(self._context.load_timeline())

    def publish(
        self,
        begun: Begun,
        metadata: CommitMetadata,
        *,
        reads: ReadSet | None = None,
        unless: Unless | None = None,
    ) -> PublishResult:
        """See `Transaction.publish`."""
        context, strategy = self._context, self._strategy
        concurrent = ConcurrentWrites(context, begun, metadata=metadata, strategy=strategy, reads=reads)
        concurrent.look_ahead()
        with hold_table(self._locks, context.clock) as hold:
            context.trace(StopPoint.PUBLISH_LOCKED)
            publish = Publish(
                context,
                begun,
                metadata=metadata,
                forward=self._forward,
                rollback=self._rollback,
                concurrent=concurrent,
                unless=unless,
            )
            result = publish.run(hold)
        context.trace(StopPoint.PUBLISH_UNLOCKED)
        left = tidy(context, begun) if result.is_committed else []
        warnings = (*result.warnings, *hold.warnings, *left)
        return replace(
            result,
            lock_held_ms=hold.held_ms,
            lock_wait_ms=hold.wait_ms,
            begin_held_ms=begun.lock_held_ms,
            begin_wait_ms=begun.lock_wait_ms,
            warnings=warnings,
        )

    def foresee(self, begun: Begun, metadata: CommitMetadata, reads: ReadSet | None) -> Conflict | None:
        """See `Transaction.foresee`."""
        if self._context.settings.fail_on_stray:
            return None
        timeline = self._context.load_timeline()  # before the log, so that nothing on it lacks its claim
        claims = self._context.log.since(begun.claim_head, self._context.log.read_head())
        concurrent = ConcurrentWrites(self._context, begun, metadata=metadata, strategy=self._strategy, reads=reads)
        return concurrent.find_conflict(timeline, claims)

    def find_loss(self, begun: Begun) -> str:
        """See `Transaction.find_loss`."""
        return find_loss(self._context, begun)

    def look_again(self, begun: Begun) -> Begun | None:
        """See `Transaction.look_again`."""
        return self._begin.look_again(begun)

    def clear(self, begun: Begun, paths: Iterable[str]) -> None:
        """Take data files of a write away, and let no task bring them back."""
        end_turns(self._context.storage, begun.instant.requested)
        for path in paths:
            self._context.storage.delete(path)

    def abort(self, begun: Begun, reason: str, *, is_certain: bool) -> PublishResult:
        """See `Transaction.abort`; `is_certain` if no publish was begun, so that nothing can be claimed.

        What tasks staged goes before the lock is asked for, since a lock may need room on the same disk.
        """
        with contextlib.suppress(StorageError):  # the retreat tries again, and tells
            end_turns(self._context.storage, begun.instant.requested)
        with hold_table(self._locks, self._context.clock):
            retreat = Retreat(self._context, self._forward, rollback=self._rollback)
            claim = None if is_certain else retreat.find_published(begun)
            if claim is None:
                return retreat.run(begun, reason)
        left = tidy(self._context, begun)
        return PublishResult(
            begun.instant.requested, Outcome.COMMITTED, completion_time=claim.time, warnings=tuple(left)
        )

    def files_of(self, begun: Begun, maker: MarkerMaker | None) -> FinalFiles:
        """See `Transaction.files_by`."""
        instant = begun.instant
        storage, layout = self._context.storage, self._context.layout
        files = FinalFiles(storage, layout, instant.requested, instant.action, maker, turn=begun.turn)
        files.open_turn()
        return files

    def markers_of(self, begun: Begun) -> DirectMarkers:
        """See `Transaction.markers`."""
        return DirectMarkers(self._context.storage, begun.instant.requested)


def _choose_strategy(settings: Settings, *, is_merge_on_read: bool) -> ConflictResolutionStrategy:
    """What the options name is for optimistic writers; those that do not block have one rule."""
    known = {"is_merge_on_read": is_merge_on_read, "is_bucketed": settings.is_bucketed}
    return NonBlocking(**known) if settings.is_non_blocking else load_strategy(settings.strategy, **known)
