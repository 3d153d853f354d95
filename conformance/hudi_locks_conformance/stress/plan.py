"""What a stress run does, and what it may do to its contenders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hudi_locks import Capability, LockProvider, LockScope, Owner, SystemClock
from hudi_locks.config import lock_keys
from hudi_locks_conformance.check import NotRun
from hudi_locks_conformance.harness import Harness

__all__ = ["StressPlan", "make_plan"]

_QUICK: Final = {
    lock_keys.WAIT_TIME_MS.name: "1000",
    lock_keys.NUM_RETRIES.name: "1000",
    lock_keys.WAIT_TIME_MS_BETWEEN_RETRY.name: "5",
    lock_keys.MAX_WAIT_TIME_MS_BETWEEN_RETRY.name: "20",
    lock_keys.CLIENT_NUM_RETRIES.name: "0",
}
_LEASES_PER_RUN: Final = 4
"""A dead holder's lock may stand still for one of them."""
_SHORT_PAUSE_S: Final = 0.5
_PAUSE_IN_LEASES: Final = 1.5


@dataclass(frozen=True)
class StressPlan:
    """One run.

    Attributes:
        provider: As in `hoodie.write.lock.provider`.
        options: For the provider, with short waits and, unless the user gave others, short leases.
        scope: What is contended for; nobody else uses it.
        contenders: How many processes at a time.
        duration_s: How long they contend.
        seed: For who is paused or killed when, and for the contenders' own pauses.
        lease_s: How long a dead holder keeps its lock; None if for ever, or if the provider does not say.
        longest_pause_s: For how long a contender is stopped at most.
        kills: Whether contenders are killed too.
        fenced: Whether tokens are claimed; they mean nothing otherwise.
    """

    provider: str
    options: dict[str, str]
    scope: LockScope
    contenders: int
    duration_s: float
    seed: int
    lease_s: float | None
    longest_pause_s: float
    kills: bool
    fenced: bool


def make_plan(harness: Harness, duration_s: float, run: str) -> StressPlan:
    """Plan a run of `duration_s` seconds under the name `run`.

    Raises:
        NotRun: The provider excludes threads of one process only.
    """
    claims = harness.claims
    if not claims & {Capability.SCOPE_PROCESSES, Capability.SCOPE_HOSTS}:
        raise NotRun("stress needs processes, and only exclusion among threads is claimed")
    short = getattr(harness.hooks, "short_lease_options", {})
    options = {**_QUICK, **short, **harness.options}
    scope = LockScope.file_group("conformance/stress", run)
    lease_s = _measure_lease_s(harness.kind, options, scope)
    ends_soon = lease_s is not None and _LEASES_PER_RUN * lease_s <= duration_s
    kills = ends_soon and bool(claims & {Capability.LEASE, Capability.SESSION})
    pause_s = _PAUSE_IN_LEASES * lease_s if lease_s is not None and ends_soon else _SHORT_PAUSE_S
    return StressPlan(
        harness.name,
        options,
        scope,
        harness.contenders,
        duration_s,
        harness.seed,
        lease_s,
        pause_s,
        kills=kills,
        fenced=Capability.FENCING in claims,
    )


def _measure_lease_s(kind: type[LockProvider], options: dict[str, str], scope: LockScope) -> float | None:
    clock = SystemClock()
    provider = kind(options, clock=clock, on_lost=lambda *_: None)
    try:
        asked_s = clock.monotonic()
        lease = provider.try_acquire(scope, Owner("stress", application="conformance kit"), 1.0)
        if lease is None:
            return None
        provider.release(lease)
        return None if lease.deadline_s is None else lease.deadline_s - asked_s
    finally:
        provider.close()
