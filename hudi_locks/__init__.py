"""Locks and concurrency control for Apache Hudi tables, in Python.

The lock core is here; tables and Spark are in `hudi_locks.spark`.
"""

from hudi_locks.clock import Clock, ManualClock, SystemClock
from hudi_locks.errors import (
    AcquireTimeout,
    AlreadyHeld,
    BackendRefused,
    BackendUnavailable,
    ConfigError,
    DamagedLockRecord,
    HudiLocksError,
    LockError,
    LockLost,
    NotHeld,
    ProviderClosed,
    ProviderLoadError,
    Unsupported,
)
from hudi_locks.lock import (
    Capability,
    Finding,
    Held,
    HeldMany,
    Holder,
    HoldState,
    Lease,
    LockManager,
    LockProvider,
    LockScope,
    LossReason,
    Owner,
)

__all__ = [
    "AcquireTimeout",
    "AlreadyHeld",
    "BackendRefused",
    "BackendUnavailable",
    "Capability",
    "Clock",
    "ConfigError",
    "DamagedLockRecord",
    "Finding",
    "Held",
    "HeldMany",
    "HoldState",
    "Holder",
    "HudiLocksError",
    "Lease",
    "LockError",
    "LockLost",
    "LockManager",
    "LockProvider",
    "LockScope",
    "LossReason",
    "ManualClock",
    "NotHeld",
    "Owner",
    "ProviderClosed",
    "ProviderLoadError",
    "SystemClock",
    "Unsupported",
]
