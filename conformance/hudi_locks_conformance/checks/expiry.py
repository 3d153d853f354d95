"""Group E, first part: leases that end by themselves."""

from __future__ import annotations

from typing import Final

from hudi_locks import (
    BackendUnavailable,
    Capability,
    Held,
    Lease,
    LockLost,
    LockManager,
    LockProvider,
    ManualClock,
    SystemClock,
)
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, NotRun, Violation, check
from hudi_locks_conformance.holder import HolderProcess
from hudi_locks_conformance.tracing import Calls

_DELTA: Final = 0.01
_STEPS_PER_LEASE: Final = 60
_LONGEST_BOUND_S: Final = 60.0
_POLL_S: Final = 0.05
_MOST_LEASES: Final = 10


def _leased_options(bench: Bench) -> dict[str, str]:
    return {**bench.harness.options, **bench.need_hook("lease_options")}


def _lease_length_s(bench: Bench, lease: Lease) -> float:
    if lease.deadline_s is None:
        raise NotRun("the lease has no deadline although LEASE is claimed and the hook 'lease_options' is set")
    return lease.deadline_s - bench.clock.monotonic()


@check(
    "E1",
    "dead-holder-frees-after-bound",
    why="too early robs a living writer, never stops the table",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE],
)
def dead_holder_frees_after_bound(bench: Bench) -> None:
    """A contender gets the lock of a holder that died when its lease is over, and not before."""
    if bench.is_virtual:
        _abandon_lease(bench)
    else:
        _kill_holder(bench)


def _abandon_lease(bench: Bench) -> None:
    clock, options = bench.need_virtual(), _leased_options(bench)
    dead, contender = bench.provider(options), bench.provider(options)
    lease_s = _lease_length_s(bench, bench.acquire(dead, bench.scope()))
    clock.advance(lease_s * (1 - _DELTA))
    early = contender.try_acquire(bench.scope(), bench.owner("b"), 0.0)
    bench.expect(early is None, "the lock was granted before the holder's lease was over")
    clock.advance(lease_s * 2 * _DELTA)
    bench.expect(
        _within_bound(bench, contender, lease_s), f"the lock is not free {1 + _DELTA:.2f} leases after its holder died"
    )


def _kill_holder(bench: Bench) -> None:
    """The same with a process that is killed, where the lock service keeps a time of its own."""
    options, scope = _leased_options(bench), bench.scope()
    contender = bench.provider(options)
    with HolderProcess(bench, options, scope) as holder:
        holder.end()
        early = contender.try_acquire(scope, bench.owner("b"), 0.0)
        bench.expect(early is None, "the lock was granted at the moment when its holder died")
        bench.expect(_poll(bench, contender), "the lock of a killed process never became free")


def _poll(bench: Bench, contender: LockProvider) -> bool:
    ends_s = bench.clock.monotonic() + _LONGEST_BOUND_S
    while bench.clock.monotonic() < ends_s:
        if contender.try_acquire(bench.scope(), bench.owner("b"), 0.0) is not None:
            return True
        bench.clock.sleep(_POLL_S)
    return False


def _within_bound(bench: Bench, contender: LockProvider, lease_s: float) -> bool:
    """Whether the contender gets it: at once by the record's time, or after watching it for a lease of its own."""
    for _ in range(2):
        if contender.try_acquire(bench.scope(), bench.owner("b"), 0.0) is not None:
            return True
        if Capability.CLOCK_FREE not in bench.harness.claims:
            return False
        bench.let_pass(lease_s * (1 + _DELTA))
    return False


@check(
    "E2",
    "living-holder-keeps-it",
    why="a long commit must not lose its lock while its writer is well",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def living_holder_keeps_it(bench: Bench) -> None:
    """A holder that renews keeps its lock over ten leases, against a contender that keeps asking.

    Three leases where the lock service keeps a time of its own.
    """
    contender, calls = bench.provider(_leased_options(bench)), Calls()
    held = _hold(bench, calls)
    lease_s = _lease_length_s(bench, held.lease)
    for _ in range(4 * (10 if bench.is_virtual else 3)):
        _advance(bench, lease_s / 4, calls=calls)
        intruder = contender.try_acquire(bench.scope(), bench.owner("b"), 0.0)
        bench.expect(intruder is None, "a contender got the lock of a living holder")
        held.check()
    held.release()


def _hold(bench: Bench, calls: Calls) -> Held:
    manager: LockManager = bench.manager(_leased_options(bench), calls=calls)
    return manager.lock(bench.scope(), timeout_s=0)


def _advance(bench: Bench, duration_s: float, *, calls: Calls) -> None:
    """Let time pass once the renewal thread waits for it.

    It may have been started a moment ago, or be renewing with a server that takes no notice of the kit's clock.
    """
    clock = bench.clock
    for _ in range(10_000):
        if not isinstance(clock, ManualClock) or (clock.parked() and not calls.renewing):
            break
        SystemClock().sleep(0.0002)
    bench.let_pass(duration_s)


@check(
    "E3",
    "holder-knows-before-others-enter",
    why="between the one and the other two writers commit at once",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def holder_knows_before_others_enter(bench: Bench) -> None:
    """When renewals stop succeeding, `check` fails before any contender can have the lock."""
    contender, calls = bench.provider(_leased_options(bench)), Calls(before_renew=_fail)
    held = _hold(bench, calls)
    step_s = _lease_length_s(bench, held.lease) / _STEPS_PER_LEASE
    for _ in range(3 * _STEPS_PER_LEASE):
        knows = _is_lost(held)
        entered = contender.try_acquire(bench.scope(), bench.owner("b"), 0.0) is not None
        bench.expect(knows or not entered, "a contender entered while the holder believed that it held")
        if entered or (knows and Capability.SESSION in bench.harness.claims):
            return  # a session outlives failing renewals: the service ends it with the connection
        _advance(bench, step_s, calls=calls)
    raise Violation("the lock of a holder whose renewals fail never became free")


def _fail() -> None:
    raise BackendUnavailable("planted by the conformance kit: no answer")


def _is_lost(held: Held) -> bool:
    try:
        held.check()
    except LockLost:
        return True
    return False


@check(
    "E4",
    "one-failed-renewal-is-tolerated",
    why="a hiccup of the network must not throw away an hour's commit; a dead link must",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def one_failed_renewal_is_tolerated(bench: Bench) -> None:
    """One renewal that fails changes nothing; when all fail for a lease, the hold is lost and told so once."""
    failures = [_fail]
    calls = Calls(before_renew=lambda: failures.pop()() if failures else None)
    held = _hold(bench, calls)
    lease_s = _lease_length_s(bench, held.lease)
    for _ in range(8):
        _advance(bench, lease_s / 4, calls=calls)
        bench.expect(not _is_lost(held), "one failed renewal ended the hold")
    bench.expect(not failures and len(calls.renews) > 1, "no renewal was tried again")
    calls.before_renew = _fail
    _advance(bench, lease_s * 1.1, calls=calls)
    bench.expect(_is_lost(held), "a hold whose renewals fail for a whole lease is not lost")


@check(
    "E14",
    "paused-holder-knows-first",
    why="a machine that slept, or a long pause of its memory management, must not publish what it held long ago",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE],
)
def paused_holder_knows_first(bench: Bench) -> None:
    """A holder that was paused beyond its lease says that the lock is lost before it does anything else."""
    if bench.is_virtual:
        _skip_time(bench)
    else:
        _pause_holder(bench)


def _skip_time(bench: Bench) -> None:
    held = _hold(bench, Calls(before_renew=_fail))
    bench.let_pass(2 * _lease_length_s(bench, held.lease))
    bench.expect(_is_lost(held), "a holder that was paused for two leases believes that it holds")
    late, contender = bench.provider(_leased_options(bench)), bench.provider(_leased_options(bench))
    lease = bench.acquire(late, bench.scope(1))
    lease_s = _lease_length_s(bench, lease)
    for _ in range(_MOST_LEASES):
        if contender.try_acquire(bench.scope(1), bench.owner("b"), 0.0) is not None:
            break
        bench.let_pass(lease_s)
    else:
        raise Violation(f"the lock of a paused holder was not granted within {_MOST_LEASES} leases")
    with bench.expect_raises(LockLost, "a holder that was paused renewed a lock that another has by now"):
        late.renew(lease)


def _pause_holder(bench: Bench) -> None:
    """The same with a process that is stopped until another has the lock."""
    options, scope = _leased_options(bench), bench.scope()
    contender = bench.provider(options)
    with HolderProcess(bench, options, scope) as holder:
        bench.expect(holder.ask() == "HELD", "a process does not hold what it has just been granted")
        holder.pause()
        bench.expect(_poll(bench, contender), "the lock of a stopped process never became free")
        holder.resume()
        said = holder.ask()
        bench.expect(said.startswith("LOST"), f"a process that was stopped while another took the lock says {said}")
