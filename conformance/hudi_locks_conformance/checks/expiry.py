"""Group E, first part: leases that end by themselves."""

from __future__ import annotations

from typing import Final

from hudi_locks import Capability, LockLost
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, Violation, check
from hudi_locks_conformance.holder import HolderProcess
from hudi_locks_conformance.leases import (
    DELTA,
    advance,
    fail_renewal,
    hold_lease,
    is_granted_within,
    is_lost,
    lease_length_s,
    leased_options,
    watch_takeover,
)
from hudi_locks_conformance.tracing import Calls

_MOST_LEASES: Final = 10


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
    clock, options = bench.need_virtual(), leased_options(bench)
    dead, contender = bench.provider(options), bench.provider(options)
    lease_s = lease_length_s(bench, bench.acquire(dead, bench.scope()))
    clock.advance(lease_s * (1 - DELTA))
    early = contender.try_acquire(bench.scope(), bench.owner("b"), 0.0)
    bench.expect(early is None, "the lock was granted before the holder's lease was over")
    clock.advance(lease_s * 2 * DELTA)
    bench.expect(
        is_granted_within(bench, contender, lease_s),
        f"the lock is not free {1 + DELTA:.2f} leases after its holder died",
    )


def _kill_holder(bench: Bench) -> None:
    """The same with a process that is killed, where the lock service keeps a time of its own."""
    options, scope = leased_options(bench), bench.scope()
    contender = bench.provider(options)
    with HolderProcess(bench, options, scope) as holder:
        holder.end()
        early = contender.try_acquire(scope, bench.owner("b"), 0.0)
        bench.expect(early is None, "the lock was granted at the moment when its holder died")
        bench.expect(is_granted_within(bench, contender, 0.0), "the lock of a killed process never became free")


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
    contender, calls = bench.provider(leased_options(bench)), Calls()
    held = hold_lease(bench, calls)
    lease_s = lease_length_s(bench, held.lease)
    for _ in range(4 * (10 if bench.is_virtual else 3)):
        advance(bench, lease_s / 4, calls=calls)
        intruder = contender.try_acquire(bench.scope(), bench.owner("b"), 0.0)
        bench.expect(intruder is None, "a contender got the lock of a living holder")
        held.check()
    held.release()


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
    contender, calls = bench.provider(leased_options(bench)), Calls()
    held = hold_lease(bench, calls)
    watch_takeover(bench, held, contender, calls=calls, lease_s=lease_length_s(bench, held.lease))


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
    failures = [fail_renewal]
    calls = Calls(before_renew=lambda: failures.pop()() if failures else None)
    held = hold_lease(bench, calls)
    lease_s = lease_length_s(bench, held.lease)
    for _ in range(8):
        advance(bench, lease_s / 4, calls=calls)
        bench.expect(not is_lost(held), "one failed renewal ended the hold")
    bench.expect(not failures and len(calls.renews) > 1, "no renewal was tried again")
    calls.before_renew = fail_renewal
    advance(bench, lease_s * 1.1, calls=calls)
    bench.expect(is_lost(held), "a hold whose renewals fail for a whole lease is not lost")


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
    held = hold_lease(bench, Calls(before_renew=fail_renewal))
    bench.let_pass(2 * lease_length_s(bench, held.lease))
    bench.expect(is_lost(held), "a holder that was paused for two leases believes that it holds")
    late, contender = bench.provider(leased_options(bench)), bench.provider(leased_options(bench))
    lease = bench.acquire(late, bench.scope(1))
    lease_s = lease_length_s(bench, lease)
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
    options, scope = leased_options(bench), bench.scope()
    contender = bench.provider(options)
    with HolderProcess(bench, options, scope) as holder:
        bench.expect(holder.ask() == "HELD", "a process does not hold what it has just been granted")
        holder.pause()
        bench.expect(is_granted_within(bench, contender, 0.0), "the lock of a stopped process never became free")
        holder.resume()
        said = holder.ask()
        bench.expect(said.startswith("LOST"), f"a process that was stopped while another took the lock says {said}")
