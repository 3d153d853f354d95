"""Faults in telling of a loss, and in what goes with a session."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from hudi_locks import Capability, Clock, Lease, LockScope, LossReason, Owner
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.sample import SampleHooks, SampleLockProvider

__all__ = ["GrantsEndedPlaces", "HidesEndOfSession", "Sessioned", "Telling", "TellsTwice"]

_STEP_S = 0.01


class Telling(SampleLockProvider):
    """Hears at once when its record is removed; nothing is wrong with it."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.LOSS_NOTICE}

    def hear(self, scope: LockScope, reason: LossReason) -> None:
        """Take note that a hold is over."""
        lease = self.held.pop(scope, None)
        if lease is not None:
            self.on_lost(lease, reason)

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        return TellingHooks


class TellingHooks(SampleHooks):
    """The back doors of `Telling`."""

    def remove(self, scope: LockScope) -> None:
        """Delete the record, as the service would, which tells its client."""
        super().remove(scope)
        self._provider.hear(scope, LossReason.DELETED)  # type: ignore[attr-defined]


class TellsTwice(Telling):
    """Tells of a loss, and once more when it is asked."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.heard: dict[LockScope, LossReason] = {}

    def hear(self, scope: LockScope, reason: LossReason) -> None:
        """Tell, and remember."""
        if scope in self.held:
            self.heard[scope] = reason
        super().hear(scope, reason)

    def renew(self, lease: Lease) -> Lease:
        """Tell again what was told."""
        if lease.scope in self.heard:
            self.on_lost(lease, self.heard[lease.scope])
        return super().renew(lease)


class Sessioned(Telling):
    """Waits by asking again, and loses all of its locks with its session; nothing is wrong with it."""

    capabilities: ClassVar[frozenset[Capability]] = Telling.capabilities | {Capability.SESSION, Capability.TIMED_WAIT}

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.session: uuid.UUID = uuid.uuid4()

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Ask until the time is over."""
        ends_s = self.clock.monotonic() + max(0.0, timeout_s)
        while (lease := super().try_acquire(scope, owner, 0.0)) is None and self.clock.monotonic() < ends_s:
            self.clock.sleep(min(_STEP_S, ends_s - self.clock.monotonic()))
        return lease

    def end_session(self) -> None:
        """What the service does after a silence."""
        self.session = uuid.uuid4()
        for scope, lease in list(self.held.items()):
            if self.is_ours(lease):
                self.path(scope).unlink()
            self.hear(scope, LossReason.SESSION)

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        return SessionedHooks


class SessionedHooks(TellingHooks):
    """The back doors of `Sessioned`."""

    def expire(self, scope: LockScope) -> None:  # noqa: ARG002  # all of a session's locks end together
        """End the session."""
        self._provider.end_session()  # type: ignore[attr-defined]


class HidesEndOfSession(Sessioned):
    """Takes note of the end of a session for itself."""

    def hear(self, scope: LockScope, reason: LossReason) -> None:
        """Tell of what others did, and of nothing else."""
        if reason is LossReason.SESSION:
            del self.held[scope]
        super().hear(scope, reason)


class GrantsEndedPlaces(Sessioned):
    """Grants a lock to a waiter by the place that it had in a session which ended."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Believe in the place, whatever became of the session."""
        session = self.session
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is not None and self.session != session:
            self.path(scope).unlink()
        return lease
