"""Faults in taking a lock over from a holder that died."""

from __future__ import annotations

from hudi_locks import LockScope
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = ["TakesOverByName"]


class TakesOverByName(SampleLockProvider):
    """Looks whether a lease is over, and then removes whatever has the lock's name."""

    def remove_expired(self, scope: LockScope) -> None:
        """Check, then act."""
        if self.is_over(scope):
            self.path(scope).unlink(missing_ok=True)
