"""Faults that show only where processes fork, spawn, are killed or end."""

from __future__ import annotations

import atexit
import multiprocessing
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import ClassVar

from hudi_locks import Capability, Clock, ConfigError, Lease, LockScope, Owner
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = [
    "ClaimsForkAware",
    "ComplainsAtExit",
    "RefusesSpawned",
    "ReleasesAtExit",
    "SilencesWarnings",
    "SparesOtherProcesses",
]


class SparesOtherProcesses(SampleLockProvider):
    """Takes over from writers of its own process only: others might be alive."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Remember who asks."""
        self.pid: int = owner.pid
        return super().try_acquire(scope, owner, timeout_s)

    def is_over(self, scope: LockScope) -> bool:
        """Never what another process wrote."""
        return (self.read(scope) or {}).get("pid") == self.pid and super().is_over(scope)


class ReleasesAtExit(SampleLockProvider):
    """Deletes its files when a process ends, whichever it is."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        _call_at_exit(weakref.WeakMethod(self.close))


class ClaimsForkAware(SampleLockProvider):
    """Claims to notice forks, and knows nothing of them."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.FORK_AWARE}


class RefusesSpawned(SampleLockProvider):
    """Wants to be made by a main process."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        if multiprocessing.parent_process() is not None:
            raise ConfigError("the sample lock provider works in main processes only")
        super().__init__(options, clock=clock, on_lost=on_lost)


class ComplainsAtExit(SampleLockProvider):
    """Fails at the end of a process that did not close it."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        _call_at_exit(weakref.WeakMethod(self.complain))

    def complain(self) -> None:
        """Expect to be closed before."""
        if not self.closed:
            raise RuntimeError("the sample lock provider was not closed")


class SilencesWarnings(SampleLockProvider):
    """Turns all warnings of the process off."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        warnings.simplefilter("ignore")


def _call_at_exit(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    def run() -> None:
        found = method()
        if found is not None:
            found()

    atexit.register(run)
