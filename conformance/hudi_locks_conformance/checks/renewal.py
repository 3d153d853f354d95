"""Group E, second part: who may renew, for how long, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from hudi_locks import Capability, ConfigError, Held, LockLost, LockProvider, LossReason, SystemClock
from hudi_locks.config import lock_keys
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Late, Level, Mode, Violation, check
from hudi_locks_conformance.clocks import OwnClock
from hudi_locks_conformance.leases import (
    DELTA,
    advance,
    hold_lease,
    is_granted,
    is_lost,
    lease_length_s,
    leased_options,
    wait_until,
)
from hudi_locks_conformance.observation import ThreadWatch
from hudi_locks_conformance.tracing import Calls

_NEVER_MS: Final = 10**9
_FEW_LEASES: Final = 3
_MANY_LEASES: Final = 40
_CONTENDERS: Final = 3


@check(
    "E5",
    "expired-lease-is-not-renewed",
    why="who was silent for a lease cannot know what others did meanwhile",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def expired_lease_is_not_renewed(bench: Bench) -> None:
    """A lease that is over is not renewed, neither by its client nor through its hold, although nobody took the lock.

    It is over on the holder's own clock; where the service keeps a session, it is ended by the hook `expire`.
    """
    options, clock = leased_options(bench), OwnClock(bench.clock)
    provider, manager = bench.provider(options, clock=clock), bench.manager(options, clock=clock)
    held = manager.lock(bench.scope(1), timeout_s=0)
    lease = bench.acquire(provider, bench.scope())  # the later one: when it is over, both are
    if Capability.SESSION in bench.harness.claims:
        bench.hook(provider, "expire")(bench.scope())
        bench.hook(manager.provider, "expire")(bench.scope(1))
    else:
        clock.skip(lease_length_s(bench, lease, clock) * (1 + DELTA))
    with bench.expect_raises(LockLost, "a lease that is over was renewed"):
        provider.renew(lease)
    with bench.expect_raises(LockLost, "a hold whose lease is over was verified"):
        held.verify()


@check(
    "E6",
    "foreign-lease-is-not-renewed",
    why="a renewal by anybody else keeps alive what its holder gave up",
    level=Level.LEASE,
    needs=[Capability.RENEWAL],
)
def foreign_lease_is_not_renewed(bench: Bench) -> None:
    """Only the client that acquired a lease renews it, for its owner, and until its release."""
    provider, other = bench.provider(), bench.provider()
    lease = bench.acquire(provider, bench.scope())
    renamed = replace(lease, owner=bench.owner("b"))
    with bench.expect_raises(LockLost, "a client renewed the lease of another client"):
        other.renew(lease)
    with bench.expect_raises(LockLost, "a lease was renewed for another owner"):
        provider.renew(renamed)
    with bench.expect_raises(LockLost, "another client renewed a lease under its own name"):
        other.renew(replace(renamed, state=None))
    provider.renew(lease)
    provider.release(lease)
    with bench.expect_raises(LockLost, "a lease was renewed after its release"):
        provider.renew(lease)
    bench.expect_free(bench.scope(), "a refused renewal left the lock taken")


@check(
    "E7",
    "renewals-end-with-the-hold",
    why="a thread that goes on renewing keeps a lock that nobody has",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def renewals_end_with_the_hold(bench: Bench) -> None:
    """Renewals end with release and with close; a hold whose acquiring thread ended is renewed until its release."""
    with ThreadWatch() as threads:
        _renew_and_end(bench)
    bench.expect(threads.count() == 0, "a thread outlived the manager")


def _renew_and_end(bench: Bench) -> None:
    calls = Calls()
    manager = bench.manager(leased_options(bench), calls=calls)
    held = _lock_on_thread(bench, manager.lock)
    lease_s = lease_length_s(bench, held.lease)
    _let_renew(bench, calls, lease_s)
    bench.expect(not is_lost(held), "a hold was lost with the thread that had acquired it")
    held.release()
    bench.expect_free(bench.scope(), "a release on another thread than that of the acquire left the lock taken")
    _expect_silence(bench, calls, lease_s, "its release")
    manager.lock(bench.scope(), timeout_s=0)
    manager.close()
    _expect_silence(bench, calls, lease_s, "the close of its manager")


def _lock_on_thread(bench: Bench, lock: object) -> Held:
    answer = bench.run(lambda: lock(bench.scope(), 0))[0]  # type: ignore[operator]  # a bound method
    if not isinstance(answer.value, Held):
        raise Violation(f"a free lock was not granted: {answer.error!r}")
    return answer.value


def _let_renew(bench: Bench, calls: Calls, lease_s: float) -> None:
    """Let a lease and a half pass, in steps in which a renewal is due."""
    for _ in range(6):
        advance(bench, lease_s / 4, calls=calls)
    bench.expect(calls.renews, "nothing was renewed in a lease and a half")


def _expect_silence(bench: Bench, calls: Calls, lease_s: float, after: str) -> None:
    before = len(calls.renews)
    bench.let_pass(1.5 * lease_s)
    bench.expect(len(calls.renews) == before, f"a hold was renewed after {after}")


@check(
    "E12",
    "slow-renewals-are-refused",
    why="a writer whose renewals come too late loses every long commit",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def slow_renewals_are_refused(bench: Bench) -> None:
    """Renewals that would come more rarely than leases end are refused as a setting, or made more often.

    Asked for by Hudi's heartbeat key, and by the provider's own keys where the hook `slow_renewal_options` names them.
    """
    heartbeat = {lock_keys.HEARTBEAT_INTERVAL_MS.name: str(_NEVER_MS)}
    own: Mapping[str, str] = getattr(bench.harness.hooks, "slow_renewal_options", {})
    for options in (heartbeat, {**heartbeat, **own}):
        bench.retire()
        calls = Calls()
        try:
            held = hold_lease(bench, calls, options=dict(options))
        except ConfigError as refusal:
            bench.note(f"refuses slow renewals: {refusal}"[:200])
            continue
        _keep(bench, held, [bench.provider(leased_options(bench))], calls=calls, leases=_FEW_LEASES)
        held.release()


def _keep(bench: Bench, held: Held, contenders: Sequence[LockProvider], *, calls: Calls, leases: int) -> None:
    """Let so many leases pass; the contenders ask at the end of each."""
    lease_s = lease_length_s(bench, held.lease)
    for number in range(leases):
        for _ in range(2):  # a thread that a busy machine keeps from running misses half a lease at most
            advance(bench, lease_s / 2, calls=calls)
        entered = any(is_granted(bench, contender) for contender in contenders)
        bench.expect(not entered, f"a contender got the lock of a living holder after {number + 1} leases")
        _expect_living(bench, held, f"a living holder lost the lock after {number + 1} leases")


def _expect_living(bench: Bench, held: Held, said: str) -> None:
    """Fail if the hold is lost.

    Raises:
        Late: Since no renewal was answered, for which a busy machine may be the reason.
    """
    if is_lost(held) and held.reason is LossReason.UNREACHABLE:
        raise Late(f"{said}: {held.reason.value}")
    bench.expect(not is_lost(held), said)


@check(
    "E13",
    "long-critical-section",
    why="what wears out after a hundred renewals ends the longest commits only",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def long_critical_section(bench: Bench) -> None:
    """A hold lasts for forty leases, although renewals are slow and several contenders keep asking.

    Three leases where the lock service keeps a time of its own.
    """
    calls = Calls()
    held = hold_lease(bench, calls)
    contenders = [bench.provider(leased_options(bench)) for _ in range(_CONTENDERS)]
    with _slow_renewals(bench, calls, lease_length_s(bench, held.lease) / 20):
        _keep(bench, held, contenders, calls=calls, leases=_MANY_LEASES if bench.is_virtual else _FEW_LEASES)
    held.release()


@contextmanager
def _slow_renewals(bench: Bench, calls: Calls, slow_s: float) -> Iterator[None]:
    """Make renewals slow inside the block; none is under way after it, which a release would have to wait for."""
    calls.before_renew = lambda: (bench.clock if bench.is_virtual else SystemClock()).sleep(slow_s)
    try:
        yield
    finally:
        calls.before_renew = lambda: None
        wait_until(bench, lambda: not calls.renewers, step_s=slow_s)
