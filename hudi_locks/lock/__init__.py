"""The lock core: the contract of a provider and the manager around it."""

from hudi_locks.lock.capability import Capability
from hudi_locks.lock.lease import Holder, Lease, LossReason, Owner
from hudi_locks.lock.provider import LockProvider, LossCallback
from hudi_locks.lock.scope import LockScope

__all__ = ["Capability", "Holder", "Lease", "LockProvider", "LockScope", "LossCallback", "LossReason", "Owner"]
