"""Faults in taking a lock over from a holder that stood still, and in what that holder does when it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hudi_locks import Lease, LockScope, Owner
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = ["CountsFromTheAnswer", "RemovesByName", "RewritesByName", "TakesOverByName"]


class TakesOverByName(SampleLockProvider):
    """Looks whether a lease is over, and then removes whatever has the lock's name."""

    def remove_expired(self, scope: LockScope) -> None:
        """Check, then act."""
        if self.is_over(scope):
            self.path(scope).unlink(missing_ok=True)


class RemovesByName(SampleLockProvider):
    """Looks whether a lock is its own, and then releases whatever has the lock's name."""

    def change(self, lease: Lease, name: str, call: Callable[[], object]) -> bool:
        """Check, then remove."""
        if name != "remove":
            return super().change(lease, name, call)
        ours = self.is_ours(lease)
        if ours:
            self.send(name, call)
        return ours


class RewritesByName(SampleLockProvider):
    """Looks whether a lock is its own, and then renews whatever has the lock's name."""

    def change(self, lease: Lease, name: str, call: Callable[[], object]) -> bool:
        """Check, then write."""
        if name != "renew":
            return super().change(lease, name, call)
        ours = self.is_ours(lease)
        if ours:
            self.send(name, call)
        return ours


class CountsFromTheAnswer(SampleLockProvider):
    """Counts a lease from the moment at which the answer comes, and not from that of the request."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Acquire, and then look at the clock."""
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is None:
            return None
        self.held[scope] = late = replace(lease, deadline_s=self.clock.monotonic() + self.lease_s)
        return late
