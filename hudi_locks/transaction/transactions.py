"""The public face of the transaction core."""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Protocol

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.errors import ConfigError, HudiLocksError, UnsupportedTable, WriteAborted
from hudi_locks.format import CommitMetadata
from hudi_locks.lock import Owner
from hudi_locks.markers import DirectMarkers, FinalFiles
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline, TimelineLayout
from hudi_locks.timeline.claims import ClaimLog
from hudi_locks.transaction.begin import Begin, Begun
from hudi_locks.transaction.concurrent import ConcurrentWrites
from hudi_locks.transaction.conflicts import load_strategy
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.forward import RollForward
from hudi_locks.transaction.new_keys import NewKeys
from hudi_locks.transaction.notices import Notices
from hudi_locks.transaction.outcome import Outcome, PublishResult
from hudi_locks.transaction.publish import Publish, conclude
from hudi_locks.transaction.resolve import resolve_instant
from hudi_locks.transaction.retreat import Retreat
from hudi_locks.transaction.rollback import Rollback
from hudi_locks.transaction.settings import Settings
from hudi_locks.transaction.stop import StopPoint, Tracer, tracer_from
from hudi_locks.transaction.table_lock import Locks, hold_table

__all__ = ["Transaction", "TransactionTable", "Transactions"]

_log = logging.getLogger(__name__)
_ACTIONS = ("commit", "deltacommit", "replacecommit")


class TransactionTableConfig(Protocol):
    """What transactions need of a table's settings."""

    @property
    def table_type(self) -> str:
        """COPY_ON_WRITE or MERGE_ON_READ."""

    @property
    def extra(self) -> Mapping[str, str]:
        """Its properties of no other use."""


class TransactionTable(Protocol):
    """What transactions need of a table; `hudi_locks.table.Table` is one."""

    @property
    def storage(self) -> Storage:
        """Its files."""

    @property
    def layout(self) -> TimelineLayout:
        """Of its timeline."""

    @property
    def config(self) -> TransactionTableConfig:
        """Its lasting settings."""


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
    ) -> None:
        settings = Settings.of(options or {}, table.config.extra)
        is_merge_on_read = table.config.table_type == "MERGE_ON_READ"
        _refuse(table, locks, settings)
        clock = clock or SystemClock()
        self._locks = locks
        self._strategy = load_strategy(
            settings.strategy, is_merge_on_read=is_merge_on_read, is_bucketed=settings.is_bucketed
        )
        self._context = Context(
            storage=table.storage,
            layout=table.layout,
            settings=settings,
            log=ClaimLog(table.storage, clock),
            notices=Notices(table.storage),
            clock=clock,
            owner=str(owner or _this_process()),
            trace=trace or tracer_from(os.environ),
        )
        self._rollback = Rollback(self._context)
        self._forward = RollForward(self._context, self._rollback)
        self._begin = Begin(self._context, self._forward, rollback=self._rollback, locks=locks)

    @property
    def notices(self) -> Notices:
        """Why writes are refused, and how to let them go on."""
        return self._context.notices

    def begin(self, action: str, operation: str) -> Transaction:
        """Begin a write, after rolling back what failed writers left.

        Args:
            action: `commit`, `deltacommit` or `replacecommit`.
            operation: What the user does, such as UPSERT; for a person.

        Raises:
            AcquireTimeout: The table lock was held by somebody else for as long as we may wait.
            ClockRefused: The times are out of bounds.
            DamagedTable: The timeline or the claim log is unreadable.
            StorageError: The store failed.
            UpdateEndangered: Writes are refused until a notice is acknowledged.
            WriteAborted: A restore is pending.
        """
        if action not in _ACTIONS:
            raise ConfigError(f"a write is one of {', '.join(_ACTIONS)}, not {action!r}", action=action)
        return Transaction(self, self._begin.run(action), operation)

    def resolve(self, instant: str) -> Outcome:
        """What became of the write with requested time `instant`: COMMITTED or ABORTED, for good.

        A write that is not decided yet is rolled back; so this is for writes whose publish gave UNKNOWN, or whose
        writer is dead.

        Raises:
            AcquireTimeout: See `begin`.
            StorageError: The store still does not answer.
        """
        with hold_table(self._locks, self._context.clock):
            return resolve_instant(self._context, instant, forward=self._forward, rollback=self._rollback)

    def roll_back_failed(self) -> list[str]:
        """Roll back every pending write whose writer has no fresh heartbeat; returns their requested times."""
        return self._begin.clean_failed_writes()

    def publish(self, begun: Begun, metadata: CommitMetadata, new_keys: NewKeys | None = None) -> PublishResult:
        """See `Transaction.publish`."""
        context = self._context
        strategy = self._strategy
        concurrent = ConcurrentWrites(context, begun, metadata=metadata, strategy=strategy, new_keys=new_keys)
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
            )
            result = publish.run(hold)
        context.trace(StopPoint.PUBLISH_UNLOCKED)
        warnings = (*result.warnings, *hold.warnings)
        return replace(result, lock_held_ms=hold.held_ms, lock_wait_ms=hold.wait_ms, warnings=warnings)

    def abort(self, begun: Begun, reason: str, *, is_certain: bool) -> PublishResult:
        """See `Transaction.abort`; `is_certain` if no publish was begun, so that nothing can be claimed."""
        with hold_table(self._locks, self._context.clock):
            retreat = Retreat(self._context, self._forward, rollback=self._rollback)
            claim = None if is_certain else retreat.find_published(begun)
            if claim is None:
                return retreat.run(begun, reason)
            return conclude(self._context, begun, claim)

    def files_of(self, begun: Begun) -> FinalFiles:
        """See `Transaction.files`."""
        instant = begun.instant
        return FinalFiles(self._context.storage, self._context.layout, instant.requested, instant.action)


class Transaction:
    """One write, from its begin to its publish or abort. Not for several threads at once. Runs on the driver.

    As a context manager it aborts when the block raises, or ends without a publish.

    Attributes:
        action: Of the instant.
        operation: What the user does.
    """

    def __init__(self, transactions: Transactions, begun: Begun, operation: str) -> None:
        self._transactions = transactions
        self._begun = begun
        self._lock = threading.Lock()
        self._ended = ""
        self._is_publishing = False
        self.action = begun.instant.action
        self.operation = operation

    @property
    def instant(self) -> str:
        """Its requested time: names the files that it writes."""
        return self._begun.instant.requested

    @property
    def timeline(self) -> Timeline:
        """The snapshot that it builds on; every file slice it reads is chosen by this one."""
        return self._begun.timeline

    @property
    def claim_head(self) -> int:
        """Number of the last claim before that snapshot."""
        return self._begun.claim_head

    @property
    def files(self) -> FinalFiles:
        """Makes data files; send it to the executors."""
        return self._transactions.files_of(self._begun)

    @property
    def markers(self) -> DirectMarkers:
        """Its markers."""
        return self.files.markers

    def publish(self, metadata: CommitMetadata, *, new_keys: NewKeys | None = None) -> PublishResult:
        """Make the write part of the table, if no other got in its way. Nothing is raised for an abort: look at it.

        Args:
            metadata: What it wrote.
            new_keys: The keys that it inserts, if no other write that it did not see may bring one of them too; None
                where doubled keys are nobody's concern, as in an insert.

        Raises:
            AcquireTimeout: The table lock could not be had; the write stays open.
            ClockRefused: The times are out of bounds; the write stays open.
            DamagedTable: The timeline or the claim log is unreadable; the write stays open.
            StorageError: The store failed before the lock was taken; the write stays open.
            UpdateEndangered: Writes are refused until a notice is acknowledged; the write stays open.
            WriteAborted: The write has ended before.
        """
        with self._lock:
            self._require_open()
            self._is_publishing = True
            result = self._transactions.publish(self._begun, metadata, new_keys)
            self._ended = result.outcome.value
            return result

    def abort(self, reason: str) -> PublishResult:
        """Roll the write back; COMMITTED if a publish was interrupted when it had made its claim.

        Raises:
            AcquireTimeout: See `publish`.
            DamagedTable: See `publish`.
            StorageError: The store does not say whether an interrupted publish made its claim; the write stays open.
            UpdateEndangered: See `publish`.
            WriteAborted: The write has ended before.
        """
        with self._lock:
            self._require_open()
            result = self._transactions.abort(self._begun, reason, is_certain=not self._is_publishing)
            self._ended = result.outcome.value
            return result

    def _require_open(self) -> None:
        if self._ended:
            message = f"instant {self.instant} has ended ({self._ended}): begin a new write"
            raise WriteAborted(message, instant=self.instant)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Abort what was not published; if that fails, let the heartbeat go out, so that others roll it back."""
        if self._ended:
            return
        try:
            self.abort(f"{type(error).__name__}: {error}" if error else "the block ended without a publish")
        except HudiLocksError as failure:
            if error is None:
                raise
            _log.warning("%s is not rolled back yet, the next writer does it: %s", self.instant, failure)
        finally:
            if not self._ended:
                self._begun.heartbeat.pause()


def _this_process() -> Owner:
    thread = threading.current_thread().name
    return Owner(uuid.uuid4().hex, host=socket.gethostname(), pid=os.getpid(), thread=thread)


def _refuse(table: TransactionTable, locks: Locks | None, settings: Settings) -> None:
    if table.layout.version == 1:
        message = "a table of version 6 has no completion times, and is read only here: upgrade it to version 8"
        raise UnsupportedTable(message, layout_version=1)
    if locks is None and settings.is_multi_writer:
        key = "hoodie.write.lock.provider"
        raise ConfigError(f"{settings.mode} needs a lock: set {key}", key=key)
