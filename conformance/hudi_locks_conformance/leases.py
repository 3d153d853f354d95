"""What checks of leases share: options, lengths, and time that passes while somebody renews."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from hudi_locks import (
    BackendUnavailable,
    Capability,
    Clock,
    Held,
    Lease,
    LockLost,
    LockManager,
    LockProvider,
    LockScope,
    ManualClock,
    SystemClock,
)
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import NotRun, Violation
from hudi_locks_conformance.limits import Patience
from hudi_locks_conformance.tracing import Calls

__all__ = [
    "DELTA",
    "advance",
    "ask_again",
    "awaiting_renewals",
    "fail_renewal",
    "hold_lease",
    "is_granted",
    "is_granted_within",
    "is_lost",
    "is_over",
    "lease_length_s",
    "leased_options",
    "wait_until",
    "watch_takeover",
]

DELTA: Final = 0.01
"""By which part of a lease a bound may be missed."""
_LONGEST_BOUND_S: Final = 60.0
_WAKING_S: Final = 20.0
"""Real time for threads that were woken, when as much virtual time has passed as may."""
_POLL_S: Final = 0.05
_STEPS_PER_LEASE: Final = 60
_LOOK_S: Final = 0.0002
_MORE_ASKS: Final = 2
T = TypeVar("T")


def leased_options(bench: Bench) -> dict[str, str]:
    """Options with which leases end by themselves."""
    return {**bench.harness.options, **bench.need_hook("lease_options")}


def lease_length_s(bench: Bench, lease: Lease, clock: Clock | None = None) -> float:
    """How long a lease that was granted a moment ago lasts.

    Raises:
        NotRun: It has no end.
    """
    if lease.deadline_s is None:
        raise NotRun("the lease has no deadline although LEASE is claimed and the hook 'lease_options' is set")
    return lease.deadline_s - (clock or bench.clock).monotonic()


def is_over(bench: Bench, lease: Lease) -> bool:
    """Whether a lease has ended, by what it tells itself."""
    return lease.deadline_s is not None and lease.deadline_s <= bench.clock.monotonic()


def hold_lease(
    bench: Bench, calls: Calls, *, number: int = 0, clock: Clock | None = None, options: dict[str, str] | None = None
) -> Held:
    """A hold of one of the check's scopes through a manager, under a lease that ends by itself."""
    manager: LockManager = bench.manager({**leased_options(bench), **(options or {})}, calls=calls, clock=clock)
    with awaiting_renewals(bench):
        return manager.lock(bench.scope(number), timeout_s=0)


@contextmanager
def awaiting_renewals(bench: Bench) -> Iterator[None]:
    """For the first lock of a manager: ends when the thread that it starts waits for time to pass.

    Raises:
        Late: It does not.
    """
    clock, calls = bench.clock, Calls()
    yield
    patience = Patience()
    while isinstance(clock, ManualClock) and not all(map(clock.waits, calls.find_threads())):
        patience.expect_left("the first renewal was not answered")
        SystemClock().sleep(_LOOK_S)


def advance(bench: Bench, duration_s: float, *, calls: Calls) -> None:
    """Let time pass once all renewal threads wait for it.

    One may be renewing with a server that takes no notice of the kit's clock, and takes its time. While
    one renews another one stands by, so that who is stuck in a slow renewal is counted too. One that has woken to renew
    may be kept from running, by a machine that has other work.

    Raises:
        Late: A renewal is not answered.
    """
    clock, patience = bench.clock, Patience()
    while isinstance(clock, ManualClock) and not _are_waiting(clock, calls):
        patience.expect_left("a renewal was not answered")
        SystemClock().sleep(_LOOK_S)
    bench.let_pass(duration_s)


def _are_waiting(clock: ManualClock, calls: Calls) -> bool:
    """Whether nobody waits for the lock service, or is about to ask it, and somebody stands by, if anybody renews."""
    threads = calls.find_threads()
    return all(map(clock.waits, threads)) and (clock.parked() > len(calls.renewers) or not threads)


def wait_until(bench: Bench, condition: Callable[[], object], *, step_s: float = 5.0, steps: int = 400) -> bool:
    """Let time pass until `condition` holds: so many steps of virtual time, or a minute of real time.

    Threads that virtual time woke get real time after it.
    """
    patience, left = Patience(_WAKING_S if bench.is_virtual else _LONGEST_BOUND_S), steps
    while not condition():
        if bench.is_virtual and left:
            bench.let_pass(step_s)
            left -= 1
            patience.renew()
        elif patience.is_over:
            return False
        SystemClock().sleep(0.001 if bench.is_virtual else _POLL_S)
    return True


def fail_renewal() -> None:
    """What a traced provider does in place of a renewal."""
    raise BackendUnavailable("planted by the conformance kit: no answer")


def is_lost(held: Held) -> bool:
    """Whether the holder knows that it lost the lock."""
    try:
        held.check()
    except LockLost:
        return True
    return False


def watch_takeover(bench: Bench, held: Held, contender: LockProvider, *, calls: Calls, lease_s: float) -> None:
    """Let all renewals fail from now on; a contender enters only once the holder knows, and does so at last.

    Raises:
        Violation: Both believe that they hold, or the lock never becomes free.
    """
    calls.before_renew = fail_renewal
    for _ in range(3 * _STEPS_PER_LEASE):
        knows = is_lost(held)
        entered = is_granted(bench, contender, held.scope)
        bench.expect(knows or not entered, "a contender entered while the holder believed that it held")
        if entered or (knows and Capability.SESSION in bench.harness.claims):
            return  # a session outlives failing renewals: the service ends it with the connection
        advance(bench, lease_s / _STEPS_PER_LEASE, calls=calls)
    raise Violation("the lock of a holder whose renewals fail never became free")


def is_granted(bench: Bench, contender: LockProvider, scope: LockScope | None = None) -> bool:
    """Whether another owner gets the lock by one request; by another one where the lock service does not answer."""
    granted: Any = ask_again(
        bench, lambda: contender.try_acquire(scope or bench.scope(), bench.owner("b"), 0.0), times=_MORE_ASKS
    )
    return granted is not None


def ask_again(bench: Bench, ask: Callable[[], T], *, times: int = 0, within_s: float = 0.0) -> T:
    """What comes of asking, again where the lock service does not answer: of hundreds of requests one may fail.

    Args:
        bench: Of the check.
        ask: May be called again when it has failed.
        times: How often at most, if no time is left.
        within_s: In so much real time, however often.

    Raises:
        BackendUnavailable: It never answers.
    """
    patience = Patience(within_s)
    while True:
        try:
            return ask()
        except BackendUnavailable as error:
            if times < 1 and patience.is_over:
                raise
            bench.note(f"asked once more, since the lock service failed: {error}")
        times -= 1
        if within_s:
            SystemClock().sleep(_POLL_S)


def is_granted_within(bench: Bench, contender: LockProvider, lease_s: float, scope: LockScope | None = None) -> bool:
    """Whether the contender gets it: at once by the record's time, or after watching it for a lease of its own.

    In real time it asks for as long as the kit is patient.
    """
    if not bench.is_virtual:
        return wait_until(bench, lambda: is_granted(bench, contender, scope))
    for _ in range(2):
        if is_granted(bench, contender, scope):
            return True
        if Capability.CLOCK_FREE not in bench.harness.claims:
            return False
        bench.let_pass(lease_s * (1 + DELTA))
    return False
