"""Group E, first part: leases that end by themselves."""

from __future__ import annotations

from typing import Final

from hudi_locks import BackendUnavailable, Capability, Held, Lease, LockLost, LockManager, LockProvider, SystemClock
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, NotRun, Violation, check
from hudi_locks_conformance.tracing import Calls

_DELTA: Final = 0.01
_STEPS_PER_LEASE: Final = 60


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
    """A holder that renews keeps its lock over ten leases, against a contender that keeps asking."""
    bench.need_virtual()
    contender, held = bench.provider(_leased_options(bench)), _hold(bench, Calls())
    lease_s = _lease_length_s(bench, held.lease)
    for _ in range(10 * 4):
        _advance(bench, lease_s / 4)
        intruder = contender.try_acquire(bench.scope(), bench.owner("b"), 0.0)
        bench.expect(intruder is None, "a contender got the lock of a living holder")
        held.check()
    held.release()


def _hold(bench: Bench, calls: Calls) -> Held:
    manager: LockManager = bench.manager(_leased_options(bench), calls=calls)
    return manager.lock(bench.scope(), timeout_s=0)


def _advance(bench: Bench, duration_s: float) -> None:
    """Let time pass once the renewal thread waits for it; it may have been started a moment ago."""
    clock = bench.need_virtual()
    for _ in range(10_000):
        if clock.parked():
            break
        SystemClock().sleep(0.0002)
    clock.advance(duration_s)


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
    bench.need_virtual()
    contender, calls = bench.provider(_leased_options(bench)), Calls(before_renew=_fail)
    held = _hold(bench, calls)
    step_s = _lease_length_s(bench, held.lease) / _STEPS_PER_LEASE
    for _ in range(3 * _STEPS_PER_LEASE):
        knows = _is_lost(held)
        entered = contender.try_acquire(bench.scope(), bench.owner("b"), 0.0) is not None
        bench.expect(knows or not entered, "a contender entered while the holder believed that it held")
        if entered:
            return
        _advance(bench, step_s)
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
    bench.need_virtual()
    failures = [_fail]
    calls = Calls(before_renew=lambda: failures.pop()() if failures else None)
    held = _hold(bench, calls)
    lease_s = _lease_length_s(bench, held.lease)
    for _ in range(8):
        _advance(bench, lease_s / 4)
        bench.expect(not _is_lost(held), "one failed renewal ended the hold")
    bench.expect(not failures and len(calls.renews) > 1, "no renewal was tried again")
    calls.before_renew = _fail
    _advance(bench, lease_s * 1.1)
    bench.expect(_is_lost(held), "a hold whose renewals fail for a whole lease is not lost")
