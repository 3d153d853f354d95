"""Faults in telling whose a lock is, and which of a client's locks are meant."""

from __future__ import annotations

from hudi_locks import AlreadyHeld, Lease, LockScope, Owner
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = ["CloseFreesTheLast", "ComparesHalfOfOwners", "ReleasesWhatItReads"]


class CloseFreesTheLast(SampleLockProvider):
    """Frees the lock that it got last when it is closed, and forgets the others."""

    def close(self) -> None:
        """See `LockProvider.close`."""
        self.closed = True
        if self.held:
            self.release(self.held.popitem()[1])

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`."""
        if self.closed and self.is_ours(lease):
            self.path(lease.scope).unlink()
        super().release(lease)


class ComparesHalfOfOwners(SampleLockProvider):
    """Takes an owner of the same host and process for the holder."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`."""
        if self.is_alike(scope, owner) and not self.closed:
            raise AlreadyHeld(f"{owner} holds {scope} already", scope=scope, owner=owner)
        return super().try_acquire(scope, owner, timeout_s)

    def is_alike(self, scope: LockScope, owner: Owner) -> bool:
        """Whether the client's own hold is of the same host, process and thread."""
        held = self.held.get(scope)
        if held is None or not self.is_ours(held):
            return False
        mine = held.owner
        return (mine.host, mine.pid, mine.thread) == (owner.host, owner.pid, owner.thread)


class ReleasesWhatItReads(SampleLockProvider):
    """Releases for anybody who shows the lease that the record tells."""

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`."""
        record = self.read(lease.scope) or {}
        if (record.get("hold"), record.get("id")) == (lease.state, lease.owner.id):
            self.path(lease.scope).unlink(missing_ok=True)
            self.held.pop(lease.scope, None)
        super().release(lease)
