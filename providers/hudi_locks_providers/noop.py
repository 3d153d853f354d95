"""A lock that excludes nobody: Hudi's NoopLockProvider, for writers that are alone for certain."""

from __future__ import annotations

from typing import ClassVar

from hudi_locks.lock import Capability, Holder, Lease, LockProvider, LockScope, Owner

__all__ = ["NoopLockProvider"]


class NoopLockProvider(LockProvider):
    """Grants every request. Claims nothing, promises nothing; several writers with it are refused at start."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:  # noqa: ARG002  # the contract's signature
        """See `LockProvider.try_acquire`; never None."""
        return Lease(scope, owner)

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`; never lost."""
        return lease

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`; there is nothing to let go of."""

    def holder(self, scope: LockScope) -> Holder | None:  # noqa: ARG002  # the contract's signature
        """See `LockProvider.holder`; always None."""
        return None

    def close(self) -> None:
        """See `LockProvider.close`; there is nothing to close."""
