"""Faults in waiting, in leases and in acquiring again."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hudi_locks import (
    Capability,
    Lease,
    LockLost,
    LockScope,
    LossReason,
    Owner,
)
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = [
    "BelievesTooLong",
    "ClaimsReentrant",
    "CountsMilliseconds",
    "ExpiresEarly",
    "ExpiresNever",
    "GrantsToGhosts",
    "GrantsTwice",
    "LiesAboutWaiting",
    "MeasuresByWallClock",
    "RemembersTaken",
    "RenewsNothing",
    "RenewsOnce",
    "RevivesLost",
    "WaitsTooLong",
]


class GrantsTwice(SampleLockProvider):
    """Gives its holder a second lease, uncounted and unclaimed."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Answer the holder with what it has."""
        held = self.held.get(scope)
        return held if held and held.owner == owner else super().try_acquire(scope, owner, timeout_s)


class LiesAboutWaiting(SampleLockProvider):
    """Claims to wait, and does not."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.TIMED_WAIT}


class WaitsTooLong(LiesAboutWaiting):
    """Waits in steps of a second, whatever time it was given."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Ask, sleep, ask."""
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is None and timeout_s > 0:
            self.clock.sleep(1.0)
            lease = super().try_acquire(scope, owner, timeout_s)
        return lease


class MeasuresByWallClock(LiesAboutWaiting):
    """Waits until the wall clock says so."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Poll until the wall clock is past the end."""
        ends_ms = self.clock.wall_ms() + 1000 * timeout_s
        while (lease := super().try_acquire(scope, owner, 0.0)) is None and self.clock.wall_ms() < ends_ms:
            self.clock.sleep(0.01)
        return lease


class GrantsToGhosts(LiesAboutWaiting):
    """Grants a lock to a waiter that has given up: it queues, and nobody takes it out of the queue."""

    ghosts: ClassVar[list[tuple[str, LockScope]]] = []

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Ask until the time is over, give up, and stay in the queue."""
        ends_s = self.clock.monotonic() + max(0.0, timeout_s)
        while (lease := super().try_acquire(scope, owner, 0.0)) is None and self.clock.monotonic() < ends_s:
            self.clock.sleep(min(0.01, ends_s - self.clock.monotonic()))
        if lease is None and timeout_s > 0:
            self.ghosts.append((owner.id, scope))
        return lease

    def release(self, lease: Lease) -> None:
        """Let go, and grant to the first in the queue."""
        super().release(lease)
        for ghost in [ghost for ghost in self.ghosts if ghost[1] == lease.scope and not self.closed]:
            self.ghosts.remove(ghost)
            super().try_acquire(lease.scope, Owner(ghost[0]), 0.0)


class ExpiresEarly(SampleLockProvider):
    """Takes a lock over when half of its lease has passed."""

    def is_over(self, scope: LockScope) -> bool:
        """Judge by half the time."""
        until_ms = (self.read(scope) or {}).get("until")
        return isinstance(until_ms, (int, float)) and until_ms - 30_000 < self.clock.wall_ms()


class ExpiresNever(SampleLockProvider):
    """Claims leases, and never takes a dead holder's lock over."""

    def is_over(self, scope: LockScope) -> bool:  # noqa: ARG002
        """Never."""
        return False


class BelievesTooLong(SampleLockProvider):
    """Tells its holder of a longer lease than others go by."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """A deadline twice as far away."""
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is None:
            return None
        self.held[scope] = longer = replace(lease, deadline_s=(lease.deadline_s or 0) + 60)
        return longer


class RenewsNothing(SampleLockProvider):
    """Answers renewals without renewing."""

    def renew(self, lease: Lease) -> Lease:
        """Pretend."""
        return replace(lease, deadline_s=self.clock.monotonic() + 60)


class RemembersTaken(SampleLockProvider):
    """Does not look again at a lock that was taken a moment ago."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Answer from memory for five seconds."""
        seen = self.__dict__.setdefault("seen", {})
        if self.clock.monotonic() < seen.get(scope, 0.0):
            return None
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is None:
            seen[scope] = self.clock.monotonic() + 5
        return lease


class CountsMilliseconds(SampleLockProvider):
    """Takes every timeout for a number of milliseconds that fits."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Convert first."""
        (int(timeout_s * 1000) if timeout_s == timeout_s else 0).to_bytes(8, "big", signed=True)
        return super().try_acquire(scope, owner, timeout_s)


class ClaimsReentrant(GrantsTwice):
    """Claims to count acquires, and does not."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.REENTRANT}


class RenewsOnce(SampleLockProvider):
    """Takes its second renewal for somebody else's."""

    def renew(self, lease: Lease) -> Lease:
        """Refuse to renew again."""
        if self.__dict__.setdefault("renewed", set()) & {lease.state}:
            raise LockLost(f"{lease.scope} was renewed before", scope=lease.scope, reason=LossReason.STOLEN)
        self.__dict__["renewed"].add(lease.state)
        return super().renew(lease)


class RevivesLost(SampleLockProvider):
    """Renews without a look at whose the record is by now."""

    def renew(self, lease: Lease) -> Lease:
        """Extend the lease."""
        return replace(lease, deadline_s=self.clock.monotonic() + 1)
