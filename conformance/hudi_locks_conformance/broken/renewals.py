"""Faults in renewing a lease, and in judging the leases of others."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from hudi_locks import Clock, Lease, LockLost, LockScope, LossReason, Owner
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = [
    "BlamesExpiry",
    "DiesWithItsThread",
    "GoesByOwnLease",
    "RenewsExpired",
    "RenewsForAnybody",
    "TakesNonsenseForOver",
    "ThrottlesRenewals",
    "WearsOut",
]

_MOST_RENEWALS = 100


class RenewsExpired(SampleLockProvider):
    """Renews a lease that is over, if nobody has taken the lock."""

    def renew(self, lease: Lease) -> Lease:
        """Look at the record alone."""
        return super().renew(replace(lease, deadline_s=float("inf")))


class RenewsForAnybody(SampleLockProvider):
    """Renews whatever lease it is given, if the record is that of it."""

    def renew(self, lease: Lease) -> Lease:
        """Do not ask who acquired it."""
        if not self.is_ours(lease):
            return super().renew(lease)
        self.path(lease.scope).write_bytes(self.encode(lease))
        return replace(lease, deadline_s=self.clock.monotonic() + self.lease_s)


class DiesWithItsThread(SampleLockProvider):
    """Takes a hold for lost when the thread that acquired it has ended."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.threads: dict[LockScope, threading.Thread] = {}

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Acquire, and remember who did."""
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is not None:
            self.threads[scope] = threading.current_thread()
        return lease

    def renew(self, lease: Lease) -> Lease:
        """Renew for a living thread only."""
        thread = self.threads.get(lease.scope)
        if thread is not None and not thread.is_alive():
            raise LockLost(f"the thread that held {lease.scope} ended", scope=lease.scope, reason=LossReason.EXPIRED)
        return super().renew(lease)


class BlamesExpiry(SampleLockProvider):
    """Calls every loss the end of the lease."""

    def renew(self, lease: Lease) -> Lease:
        """Renew, or tell the wrong reason."""
        try:
            return super().renew(lease)
        except LockLost as error:
            raise LockLost(str(error), scope=lease.scope, reason=LossReason.EXPIRED) from error


class GoesByOwnLease(SampleLockProvider):
    """Judges the records of others by its own lease."""

    def encode(self, lease: Lease) -> bytes:
        """With the time of the last sign of life."""
        return json.dumps({**json.loads(super().encode(lease)), "seen": self.clock.wall_ms()}).encode()

    def is_over(self, scope: LockScope) -> bool:
        """Go by the last sign of life, and by the own setting."""
        seen_ms = (self.read(scope) or {}).get("seen")
        return isinstance(seen_ms, int) and seen_ms + 1000 * self.lease_s < self.clock.wall_ms()


class TakesNonsenseForOver(SampleLockProvider):
    """Takes an end that is no number for one that is past."""

    def is_over(self, scope: LockScope) -> bool:
        """Also what has a strange end."""
        record = self.read(scope) or {}
        strange = "until" in record and not isinstance(record["until"], (int, float))
        return strange or super().is_over(scope)


class ThrottlesRenewals(SampleLockProvider):
    """Writes no oftener than a setting of its own says, and believes in any case."""

    short_options: ClassVar[dict[str, str]] = {**SampleLockProvider.short_options, "pause": "hoodie.sample.pause_s"}

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.pause_s: float = float(self.options.get("hoodie.sample.pause_s", "0"))
        self.written_s: dict[LockScope, float] = {}

    def renew(self, lease: Lease) -> Lease:
        """Write if it is time."""
        now_s = self.clock.monotonic()
        if now_s - self.written_s.setdefault(lease.scope, now_s) < self.pause_s:
            return replace(lease, deadline_s=now_s + self.lease_s)
        self.written_s[lease.scope] = now_s
        return super().renew(lease)

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""

        class Hooks(super().conformance_hooks()):  # type: ignore[misc]  # the base is a value
            slow_renewal_options: ClassVar[Mapping[str, str]] = {"hoodie.sample.pause_s": "120"}

        return Hooks


class WearsOut(SampleLockProvider):
    """Renews a hold a hundred times."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.renewals: int = 0

    def renew(self, lease: Lease) -> Lease:
        """Renew, unless that was done too often."""
        self.renewals += 1
        if self.renewals > _MOST_RENEWALS:
            raise LockLost(f"no renewal of {lease.scope} is left", scope=lease.scope, reason=LossReason.EXPIRED)
        return super().renew(lease)
