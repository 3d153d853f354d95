"""Writes that never lose an update: begin, publish, roll forward, roll back."""

from hudi_locks.transaction.conflicts import (
    BucketIndexConcurrentFileWrites,
    ConcurrentOperation,
    ConflictResolutionStrategy,
    SimpleConcurrentFileWrites,
)
from hudi_locks.transaction.new_keys import NewKeys
from hudi_locks.transaction.notices import Notices
from hudi_locks.transaction.outcome import Conflict, Outcome, PublishResult
from hudi_locks.transaction.stop import STOP_AT, StopPoint, Tracer
from hudi_locks.transaction.table_lock import HeldLock, Locks
from hudi_locks.transaction.transactions import Transaction, Transactions, TransactionTable

__all__ = [
    "STOP_AT",
    "BucketIndexConcurrentFileWrites",
    "ConcurrentOperation",
    "Conflict",
    "ConflictResolutionStrategy",
    "HeldLock",
    "Locks",
    "NewKeys",
    "Notices",
    "Outcome",
    "PublishResult",
    "SimpleConcurrentFileWrites",
    "StopPoint",
    "Tracer",
    "Transaction",
    "TransactionTable",
    "Transactions",
]
