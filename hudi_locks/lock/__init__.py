"""The lock core: the contract of a provider, the manager around it, and how a provider is loaded."""

from hudi_locks.lock.acquisition import RetryPolicy
from hudi_locks.lock.aliases import name_provider
from hudi_locks.lock.capability import Capability
from hudi_locks.lock.explanation import explain_wait, show_command
from hudi_locks.lock.held import Held, HoldState, OnLost
from hudi_locks.lock.held_many import HeldMany
from hudi_locks.lock.lease import Holder, Identity, Lease, LockScope, LossReason, Owner, name_job
from hudi_locks.lock.manager import LockManager
from hudi_locks.lock.probe import Finding
from hudi_locks.lock.provider import (
    ENTRY_POINT_GROUP,
    LockProvider,
    LossCallback,
    available_providers,
    import_extra,
    load_provider_class,
)
from hudi_locks.lock.setup import SetupStep, SetupTerms
from hudi_locks.lock.table_lock import table_lock

__all__ = [
    "ENTRY_POINT_GROUP",
    "Capability",
    "Finding",
    "Held",
    "HeldMany",
    "HoldState",
    "Holder",
    "Identity",
    "Lease",
    "LockManager",
    "LockProvider",
    "LockScope",
    "LossCallback",
    "LossReason",
    "OnLost",
    "Owner",
    "RetryPolicy",
    "SetupStep",
    "SetupTerms",
    "available_providers",
    "explain_wait",
    "import_extra",
    "load_provider_class",
    "name_job",
    "name_provider",
    "show_command",
    "table_lock",
]
