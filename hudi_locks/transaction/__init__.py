"""Writes that never lose an update: begin, publish, roll forward, roll back."""

from collections.abc import Callable
from typing import Any

from hudi_locks.deprecation import forward_renamed
from hudi_locks.transaction.column_changes import store_history
from hudi_locks.transaction.conflicts import (
    AbsentKeys,
    BucketIndexConcurrentFileWrites,
    ConcurrentOperation,
    ConflictResolutionStrategy,
    PreferWriter,
    ReadSet,
    SimpleConcurrentFileWrites,
)
from hudi_locks.transaction.context import View
from hudi_locks.transaction.coordinator import HeldLock, Locks, TableCoordinator
from hudi_locks.transaction.foreign_writers import Notices
from hudi_locks.transaction.hooks import STOP_AT, CommitParticipant, PreparedCommit, StopPoint, Tracer
from hudi_locks.transaction.metadata_part import carry_out_clean, carry_out_restore
from hudi_locks.transaction.operations import list_pending_writes
from hudi_locks.transaction.planning import name_clustering
from hudi_locks.transaction.publish import Unless
from hudi_locks.transaction.settings import TransactionTable, refuse_old
from hudi_locks.transaction.streams import StreamLog, StreamPosition
from hudi_locks.transaction.transaction import Transaction
from hudi_locks.transaction.transactions import Transactions
from hudi_locks.transaction.version_change import carry_out_change, convert_for, promise_change
from hudi_locks.transaction.write_state import Conflict, Outcome, PublishResult

__all__ = [
    "STOP_AT",
    "AbsentKeys",
    "BucketIndexConcurrentFileWrites",
    "CommitParticipant",
    "ConcurrentOperation",
    "Conflict",
    "ConflictResolutionStrategy",
    "HeldLock",
    "Locks",
    "Notices",
    "Outcome",
    "PreferWriter",
    "PreparedCommit",
    "PublishResult",
    "ReadSet",
    "SimpleConcurrentFileWrites",
    "StopPoint",
    "StreamLog",
    "StreamPosition",
    "TableCoordinator",
    "Tracer",
    "Transaction",
    "TransactionTable",
    "Transactions",
    "Unless",
    "View",
    "carry_out_change",
    "carry_out_clean",
    "carry_out_restore",
    "convert_for",
    "list_pending_writes",
    "name_clustering",
    "promise_change",
    "refuse_old",
    "store_history",
]

__getattr__: Callable[[str], Any] = forward_renamed(__name__, {"Coordination": "TableCoordinator"}, removed_in="0.3.0")
