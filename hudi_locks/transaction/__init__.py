"""Writes that never lose an update: begin, publish, roll forward, roll back."""

from hudi_locks.transaction.conflicts import (
    BucketIndexConcurrentFileWrites,
    ConcurrentOperation,
    ConflictResolutionStrategy,
    PreferWriter,
    SimpleConcurrentFileWrites,
)
from hudi_locks.transaction.coordination import Coordination, Reserved, View
from hudi_locks.transaction.notices import Notices
from hudi_locks.transaction.outcome import Conflict, Outcome, PublishResult
from hudi_locks.transaction.publish import Unless
from hudi_locks.transaction.read_set import AbsentKeys, ReadSet
from hudi_locks.transaction.stop import STOP_AT, StopPoint, Tracer
from hudi_locks.transaction.streams import StreamLog, StreamPosition
from hudi_locks.transaction.table_like import TransactionTable
from hudi_locks.transaction.table_lock import HeldLock, Locks
from hudi_locks.transaction.transaction import Transaction
from hudi_locks.transaction.transactions import Transactions

__all__ = [
    "STOP_AT",
    "AbsentKeys",
    "BucketIndexConcurrentFileWrites",
    "ConcurrentOperation",
    "Conflict",
    "ConflictResolutionStrategy",
    "Coordination",
    "HeldLock",
    "Locks",
    "Notices",
    "Outcome",
    "PreferWriter",
    "PublishResult",
    "ReadSet",
    "Reserved",
    "SimpleConcurrentFileWrites",
    "StopPoint",
    "StreamLog",
    "StreamPosition",
    "Tracer",
    "Transaction",
    "TransactionTable",
    "Transactions",
    "Unless",
    "View",
]
