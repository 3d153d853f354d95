"""Faults in what a client does when requests fail, come twice, or come late."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from hudi_locks import BackendRefused, BackendUnavailable, Capability, Lease, LockScope, Owner
from hudi_locks_conformance.sample import SampleHooks, SampleLockProvider

__all__ = [
    "BelievesAfterRestart",
    "ForgetsFailedReleases",
    "GivesUpWithTheLink",
    "HidesFailedReleases",
    "LosesRepeats",
    "RaisesRuntimeError",
    "RefusesWhenBusy",
    "RetriesForbidden",
    "TriesForEver",
    "TriesForEverAtOnce",
    "TrustsTheWay",
]


class TrustsTheWay(SampleLockProvider):
    """Removes its file by name, over a way on which requests come late."""

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""

        class Hooks(SampleHooks):
            delivers_once: ClassVar[bool] = False
            delivers_in_order: ClassVar[bool] = False

        return Hooks


class LosesRepeats(TrustsTheWay):
    """Takes a request that came twice for a refusal."""

    asking: bool = False

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Acquire, without a look at whose the record is."""
        self.asking = True
        try:
            return super().try_acquire(scope, owner, timeout_s)
        finally:
            self.asking = False

    def is_ours(self, lease: Lease) -> bool:
        """Not while it is asked for."""
        return not (self.asking and lease.scope not in self.held) and super().is_ours(lease)


class GivesUpWithTheLink(SampleLockProvider):
    """Claims to survive a short cut, and forgets its hold at the first renewal without an answer."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.SURVIVES_RECONNECT}

    def renew(self, lease: Lease) -> Lease:
        """Renew, or let it fall."""
        try:
            return super().renew(lease)
        except BackendUnavailable:
            del self.held[lease.scope]
            raise


class RaisesRuntimeError(SampleLockProvider):
    """Tells of a lock service that does not answer as of a slip in its own code."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Acquire, or raise what nobody retries."""
        try:
            return super().try_acquire(scope, owner, timeout_s)
        except BackendUnavailable as error:
            raise RuntimeError("no answer") from error


class _Service(SampleLockProvider):
    """Calls its file system a service, which may be busy and may forbid."""

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""

        class Hooks(SampleHooks):
            @staticmethod
            def faults() -> list[tuple[Exception, bool, str]]:
                """What it may answer instead."""
                return [(OSError(errno.EBUSY, "busy"), True, ""), (PermissionError(errno.EACCES, "denied"), False, "")]

        return Hooks


class RefusesWhenBusy(_Service):
    """Takes a service that is busy for one that says no for good."""

    def send(self, name: str, call: Callable[[], Any]) -> Any:
        """Make a request, once."""
        try:
            return super().send(name, call)
        except BackendUnavailable as error:
            raise BackendRefused(str(error), key=str(self.folder)) from error


class RetriesForbidden(_Service):
    """Takes a missing permission for a hiccup: the sample does, which stands on no service."""


class ForgetsFailedReleases(SampleLockProvider):
    """Forgets its hold before it lets go of it, so that a second release does nothing."""

    def release(self, lease: Lease) -> None:
        """Forget, then remove."""
        if self.held.pop(lease.scope, None) is not None and self.is_ours(lease):
            self.send("remove", self.path(lease.scope).unlink)


class HidesFailedReleases(SampleLockProvider):
    """Says nothing about a release that failed."""

    def release(self, lease: Lease) -> None:
        """Swallow it."""
        with contextlib.suppress(BackendUnavailable):
            super().release(lease)


class BelievesAfterRestart(SampleLockProvider):
    """Renews by heart, over a service that forgets all when it starts again."""

    def renew(self, lease: Lease) -> Lease:
        """Do not ask."""
        return replace(lease, deadline_s=self.clock.monotonic() + 60)

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""

        class Hooks(SampleHooks):
            def restart(self) -> None:
                """Start the service again, without its data."""
                shutil.rmtree(self._provider.folder)

        return Hooks


class TriesForEver(SampleLockProvider):
    """Asks a lock service that does not answer again and again, once a second."""

    pause_s: ClassVar[float] = 1.0

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Until it answers."""
        while True:
            with contextlib.suppress(BackendUnavailable):
                return super().try_acquire(scope, owner, timeout_s)
            self.clock.sleep(self.pause_s)


class TriesForEverAtOnce(TriesForEver):
    """Asks a lock service that does not answer again and again, without a pause."""

    pause_s: ClassVar[float] = 0.0
