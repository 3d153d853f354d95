"""Faults in what a client does to its process, to its record, and to whoever asks."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from hudi_locks import (
    Capability,
    Clock,
    Holder,
    Lease,
    LockScope,
    LossReason,
    Owner,
    ProviderClosed,
)
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.broken.fairness import Queued
from hudi_locks_conformance.broken.notices import Telling
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = [
    "AddsToItsRecord",
    "AskingMakesARecord",
    "BreaksAnything",
    "ClaimsReacquire",
    "ClampsItsLease",
    "ClosesForAll",
    "HasOneHold",
    "KnowsItsHolders",
    "ListsTheTableAlone",
    "ListsWhatItHeld",
    "LogsItsPassword",
    "RaisesUnpicklable",
    "ReadsTheClockOnce",
    "RevivesRemoved",
    "SetsTheEnvironment",
    "SetsTheTimeout",
    "SharesAmongThreads",
    "TellsOfReleases",
    "TellsOneToken",
    "TripsOverItself",
    "WaitsWhenClosed",
]


class TripsOverItself(SampleLockProvider):
    """Fails where two threads ask one client at a moment."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.busy: threading.Lock = threading.Lock()

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Acquire, one at a time."""
        if not self.busy.acquire(blocking=False):
            raise RuntimeError("the client is busy")
        try:
            return super().try_acquire(scope, owner, timeout_s)
        finally:
            self.busy.release()


class SharesAmongThreads(SampleLockProvider):
    """Gives a lock that its client holds to each thread that asks the client."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """The client's own, for anybody but its owner."""
        held = self.held.get(scope)
        if held is not None and held.owner != owner and self.is_ours(held) and not self.closed:
            return replace(held, owner=owner)
        return super().try_acquire(scope, owner, timeout_s)


class HasOneHold(SampleLockProvider):
    """Remembers the lock that it got last, and no other."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Forget what was held before."""
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is not None:
            self.held: dict[LockScope, Lease] = {scope: lease}
        return lease


class ClosesForAll(SampleLockProvider):
    """Frees the locks of all clients of its folder when one of them is closed."""

    def close(self) -> None:
        """See `LockProvider.close`."""
        super().close()
        for record in self.folder.glob("?" * 64):
            record.unlink(missing_ok=True)


class AskingMakesARecord(SampleLockProvider):
    """Makes an empty record where somebody asks who holds a free lock."""

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        found = super().holder(scope)
        if found is None and self.folder.exists():
            self.path(scope).touch()
        return found


class KnowsItsHolders(SampleLockProvider):
    """Tells who held a lock when it was asked first."""

    def holder(self, scope: LockScope) -> Holder | None:
        """From memory."""
        known = self.__dict__.setdefault("known", {})
        if known.get(scope) is None:
            known[scope] = super().holder(scope)
        found: Holder | None = known[scope]
        return found


class ListsWhatItHeld(SampleLockProvider):
    """Lists what it has seen held, whatever became of it."""

    def list_holders(self) -> list[Holder]:
        """From memory."""
        known: dict[str, Holder] = self.__dict__.setdefault("listed", {})
        known.update({holder.token: holder for holder in super().list_holders()})
        return list(known.values())


class ListsTheTableAlone(SampleLockProvider):
    """Lists the lock of the table, and leaves those of file groups out."""

    def list_holders(self) -> list[Holder]:
        """See `LockProvider.list_holders`."""
        return [holder for holder in super().list_holders() if holder.scope == str(LockScope.table())]


class TellsOneToken(SampleLockProvider):
    """Tells of each hold under the name of its lock, so that an administrator breaks whichever is there."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.BREAK}

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        found = super().holder(scope)
        return found and replace(found, token=self.path(scope).name)

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`."""
        holder = self.holder(scope)
        if holder is None or holder.token != token:
            return False
        self.path(scope).unlink()
        return True


class BreaksAnything(SampleLockProvider):
    """Removes the hold that is there, whichever was meant."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.BREAK}

    def break_if(self, scope: LockScope, token: str) -> bool:  # noqa: ARG002
        """See `LockProvider.break_if`."""
        there = self.path(scope).exists()
        self.path(scope).unlink(missing_ok=True)
        return there


class ClaimsReacquire(SampleLockProvider):
    """Claims to give its holder the same lease again, and refuses it."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.REACQUIRE}


class ClampsItsLease(SampleLockProvider):
    """Takes a minute where it is told a longer lease, and says nothing."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.lease_s: float = min(self.lease_s, 60.0)


class ReadsTheClockOnce(SampleLockProvider):
    """Counts the ends of all leases from the moment at which the client was made."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.began_ms: int = clock.wall_ms()

    def encode(self, lease: Lease) -> bytes:
        """With the end as it was at first."""
        fields = json.loads(super().encode(lease))
        return json.dumps({**fields, "until": self.began_ms + 1000 * self.lease_s}).encode()


class RevivesRemoved(SampleLockProvider):
    """Makes its record anew when it renews and finds none."""

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        if self.is_held(lease) and self.read(lease.scope) is None and self.folder.exists():
            self.path(lease.scope).write_bytes(self.encode(lease))
        return super().renew(lease)


class AddsToItsRecord(SampleLockProvider):
    """Keeps the times of all renewals in its record."""

    def encode(self, lease: Lease) -> bytes:
        """With one time more."""
        fields = json.loads(super().encode(lease))
        before = (self.read(lease.scope) or {}).get("renewals", [])
        return json.dumps({**fields, "renewals": [*before, self.clock.wall_ms()]}).encode()


class SetsTheEnvironment(SampleLockProvider):
    """Sets a variable of the process's environment."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        os.environ["SAMPLE_LOCK_FOLDER"] = str(self.folder)


class SetsTheTimeout(SampleLockProvider):
    """Sets the timeout of all sockets of the process."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Not for its own alone."""
        socket.setdefaulttimeout(30.0 + next(self.serial))
        return super().try_acquire(scope, owner, timeout_s)


class LogsItsPassword(SampleLockProvider):
    """Writes a secret option of its own into the log."""

    secret_options: ClassVar[frozenset[str]] = frozenset({"hoodie.sample.entrance"})

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """With all it knows in the log."""
        logging.getLogger(__name__).debug("asks for %s with %s", scope, dict(self.options))
        return super().try_acquire(scope, owner, timeout_s)


class _NeedsTwo(ProviderClosed):
    """An error that cannot be made again of its message alone."""

    def __init__(self, message: str, scope: LockScope) -> None:
        super().__init__(message, scope=scope)

    def __reduce__(self) -> Any:
        return _NeedsTwo, (str(self),)


class RaisesUnpicklable(SampleLockProvider):
    """Raises an error of its own that does not survive pickling."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`."""
        if self.closed:
            raise _NeedsTwo("the sample lock provider is closed", scope)
        return super().try_acquire(scope, owner, timeout_s)


class TellsOfReleases(Telling):
    """Tells of a release as of a loss."""

    def change(self, lease: Lease, name: str, call: Callable[[], object]) -> bool:
        """Change the record, and tell if it is gone."""
        changed = super().change(lease, name, call)
        if changed and name == "remove":
            self.on_lost(lease, LossReason.DELETED)
        return changed


class WaitsWhenClosed(Queued):
    """Lets its waiters wait on when it is closed."""

    def close(self) -> None:
        """Close, and wake nobody."""
        SampleLockProvider.close(self)
