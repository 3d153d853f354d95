"""Faults that show only where clocks are wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from hudi_locks import Capability, Clock, Holder, Lease, LockLost, LockScope, LossReason, Owner
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = [
    "ClaimsClockFree",
    "MistrustsItsClocks",
    "RenewsBlindly",
    "TellsExpiryByWallClock",
    "Watching",
    "WritesLocalTime",
]

_CLOCK_FREE = (SampleLockProvider.capabilities - {Capability.NEEDS_CLOCK_SYNC}) | {Capability.CLOCK_FREE}
_LOCAL_TIME = "%Y-%m-%d %H:%M:%S"


class ClaimsClockFree(SampleLockProvider):
    """Compares wall clocks, and claims that it needs none."""

    capabilities: ClassVar[frozenset[Capability]] = _CLOCK_FREE


class RenewsBlindly(SampleLockProvider):
    """Believes that nobody can have taken a lock whose lease is not over by its own clock."""

    def renew(self, lease: Lease) -> Lease:
        """Write over whatever is there."""
        own = self.held.get(lease.scope)
        if own is None or own.state != lease.state or own.owner != lease.owner:
            return super().renew(lease)
        self.path(lease.scope).write_bytes(self.encode(lease))
        return super().renew(lease)


class MistrustsItsClocks(SampleLockProvider):
    """Takes a hold for lost when its two clocks went on by different times."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.ahead_s: dict[LockScope, float] = {}

    def compare(self) -> float:
        """By how much the wall clock is ahead of the monotonic one."""
        return self.clock.wall_ms() / 1000 - self.clock.monotonic()

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Acquire, and remember how the clocks stood."""
        self.ahead_s[scope] = self.compare()
        return super().try_acquire(scope, owner, timeout_s)

    def renew(self, lease: Lease) -> Lease:
        """Renew if they stand so still, to the second."""
        if abs(self.compare() - self.ahead_s.get(lease.scope, 0.0)) > 1:
            raise LockLost("the clocks of this host disagree", scope=lease.scope, reason=LossReason.EXPIRED)
        return super().renew(lease)


class WritesLocalTime(SampleLockProvider):
    """Writes the end of the lease as the clock on the wall shows it."""

    def encode(self, lease: Lease) -> bytes:
        """With a local time in place of the number."""
        fields = json.loads(super().encode(lease))
        seconds, milliseconds = divmod(round(fields.pop("until")), 1000)
        fields["ends"] = [time.strftime(_LOCAL_TIME, time.localtime(seconds)), milliseconds]
        return json.dumps(fields).encode()

    def read(self, scope: LockScope) -> dict[str, Any] | None:
        """With the number that the local time means here."""
        fields = super().read(scope)
        if fields is None or "ends" not in fields:
            return fields
        text, milliseconds = fields["ends"]
        seconds = time.mktime(time.strptime(text, _LOCAL_TIME))
        whole = milliseconds if isinstance(milliseconds, int) else 0
        return {**fields, "until": 1000 * seconds + whole}


class Watching(SampleLockProvider):
    """Takes over what it has watched, unchanged, for the lease in it; nothing is wrong with it."""

    capabilities: ClassVar[frozenset[Capability]] = _CLOCK_FREE

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.sights: dict[LockScope, tuple[dict[str, Any], float]] = {}
        self.beats: int = 0

    def encode(self, lease: Lease) -> bytes:
        """With another number for each sign of life, and the lease."""
        self.beats += 1
        fields = json.loads(super().encode(lease))
        del fields["until"]
        return json.dumps({**fields, "beat": self.beats, "lease": self.lease_s}).encode()

    def watch(self, scope: LockScope, record: dict[str, Any]) -> float:
        """For how long the record has been there unchanged, in seconds."""
        seen = self.sights.get(scope)
        if seen is None or seen[0] != record:
            seen = self.sights[scope] = (record, self.clock.monotonic())
        return self.clock.monotonic() - seen[1]

    def is_over(self, scope: LockScope) -> bool:
        """See `SampleLockProvider.is_over`."""
        record = self.read(scope) or {}
        lease_s = record.get("lease")
        return isinstance(lease_s, (int, float)) and self.watch(scope, record) > lease_s

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        found, record = super().holder(scope), self.read(scope) or {}
        lease_s = record.get("lease")
        if found is None or not isinstance(lease_s, (int, float)):
            return found
        return replace(found, expires_in_ms=round(1000 * (lease_s - self.watch(scope, record))))


class TellsExpiryByWallClock(Watching):
    """Tells how long others must wait by the time in the record."""

    def encode(self, lease: Lease) -> bytes:
        """With the time at which it was written."""
        return json.dumps({**json.loads(super().encode(lease)), "at": self.clock.wall_ms()}).encode()

    def holder(self, scope: LockScope) -> Holder | None:
        """Compare wall clocks."""
        found, at_ms = super().holder(scope), (self.read(scope) or {}).get("at")
        if found is None or not isinstance(at_ms, int):
            return found
        return replace(found, expires_in_ms=round(at_ms + 1000 * self.lease_s - self.clock.wall_ms()))
