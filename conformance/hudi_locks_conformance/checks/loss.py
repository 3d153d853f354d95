"""Group E, third part: how a holder, or one who waits, learns of a loss."""

from __future__ import annotations

from typing import Final

from hudi_locks import BackendUnavailable, Capability, Held, Lease, LockLost, LockManager, LossReason
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, NotRun, Violation, check
from hudi_locks_conformance.leases import (
    awaiting_renewals,
    fail_renewal,
    is_granted,
    is_lost,
    leased_options,
    wait_until,
)
from hudi_locks_conformance.tracing import Calls

_REASONS: Final = {
    "remove": {LossReason.DELETED},
    "steal": {LossReason.STOLEN, LossReason.DELETED},
}
_ROUNDS: Final = 3
_MOMENT_S: Final = 0.2


@check(
    "E8a",
    "loss-is-told-once",
    why="a writer that is not told goes on; one that is told twice undoes what its retry did",
    level=Level.LEASE,
    mode=Mode.FORCED,
)
def loss_is_told_once(bench: Bench) -> None:
    """A hold that somebody ended is told of it once, with the reason; what is called may release and close."""
    there = [name for name in _REASONS if hasattr(bench.harness.hooks, name)]
    if not there:
        raise NotRun("the provider offers neither of the hooks 'remove' and 'steal' (conformance_hooks)")
    for number, name in enumerate(there):
        _lose(bench, name, number)
    if bench.is_virtual and {Capability.LEASE, Capability.RENEWAL} <= bench.harness.claims:
        _cut_off(bench)


def _lose(bench: Bench, hook: str, number: int) -> None:
    manager = bench.manager()
    told, held = _lock_listening(bench, manager, number)
    bench.hook(manager.provider, hook)(bench.scope(number))
    _expect_told(bench, told, held, _REASONS[hook], f"the hook {hook!r} ended the hold")


def _cut_off(bench: Bench) -> None:
    """The same where nobody took the lock, but no renewal succeeds."""
    manager = bench.manager(leased_options(bench), calls=Calls(before_renew=fail_renewal))
    told, held = _lock_listening(bench, manager, len(_REASONS))
    _expect_told(bench, told, held, {LossReason.UNREACHABLE}, "no renewal succeeded for a lease")


def _lock_listening(bench: Bench, manager: LockManager, number: int) -> tuple[list[LossReason], Held]:
    told: list[LossReason] = []

    def hear(held: Held, reason: LossReason) -> None:
        held.release()
        manager.close()
        told.append(reason)

    with awaiting_renewals(bench):
        return told, manager.lock(bench.scope(number), timeout_s=0, on_lost=hear)


def _expect_told(bench: Bench, told: list[LossReason], held: Held, reasons: set[LossReason], when: str) -> None:
    bench.expect(wait_until(bench, lambda: told), f"nobody was told, or the call back did not end, after {when}")
    if bench.is_virtual:
        bench.let_pass(200.0)
    bench.expect(len(told) == 1, f"told {len(told)} times after {when}")
    bench.expect(told[0] in reasons, f"told {told[0].name} after {when}")
    bench.expect(is_lost(held), f"the hold is not lost after {when}")


@check(
    "E8b",
    "provider-tells-loss-once",
    why="a claim to tell is what a manager relies on between two renewals",
    level=Level.LEASE,
    mode=Mode.FORCED,
    needs=[Capability.LOSS_NOTICE],
)
def provider_tells_loss_once(bench: Bench) -> None:
    """The provider itself tells of a loss, once, without being asked, and of no release; what it calls may release."""
    told: list[tuple[Lease, LossReason]] = []

    def hear(lost: Lease, reason: LossReason) -> None:
        provider.release(lost)
        told.append((lost, reason))

    provider = bench.provider(on_lost=hear)
    lease = bench.acquire(provider, bench.scope())
    bench.hook(provider, "remove")(bench.scope())
    bench.expect(wait_until(bench, lambda: told), "nobody was told that the record is gone")
    for _ in range(_ROUNDS):
        with bench.expect_raises(LockLost, "a lost lease was renewed"):
            provider.renew(lease)
    bench.expect(len(told) == 1, f"told {len(told)} times")
    provider.release(bench.acquire(provider, bench.scope(1)))
    bench.let_pass(_MOMENT_S)
    bench.expect(len(told) == 1, "a release was told as a loss")
    bench.expect(told[0] == (lease, LossReason.DELETED), f"told {told[0][1].name} of {told[0][0].scope}")


@check(
    "E9",
    "ended-session-is-told",
    why="the service gives the lock away when a session ends, whatever its holder believes",
    level=Level.LEASE,
    mode=Mode.FORCED,
    needs=[Capability.SESSION],
)
def ended_session_is_told(bench: Bench) -> None:
    """When the service ends a session its holder is told so, and the next one gets the lock and keeps it."""
    told: list[LossReason] = []
    manager, successor = bench.manager(leased_options(bench)), bench.provider()
    held = manager.lock(bench.scope(), timeout_s=0, on_lost=lambda _, reason: told.append(reason))
    bench.hook(manager.provider, "expire")(bench.scope())
    bench.expect(wait_until(bench, lambda: told), "the holder was not told that its session ended")
    bench.expect(told == [LossReason.SESSION], f"told {', '.join(reason.name for reason in told)}, not SESSION")
    bench.expect(is_lost(held), "the holder believes that it holds although its session ended")
    bench.expect(wait_until(bench, lambda: is_granted(bench, successor)), "the lock of an ended session is not free")
    held.release()
    manager.close()
    bench.expect_taken(bench.scope(), "the holder whose session had ended freed the lock of its successor")


@check(
    "E10",
    "waiter-whose-session-ends",
    why="a place in the queue that went with a session is never called",
    level=Level.LEASE,
    mode=Mode.FORCED,
    needs=[Capability.SESSION, Capability.TIMED_WAIT],
)
def waiter_whose_session_ends(bench: Bench) -> None:
    """A waiter whose session ends gets an error, or stands in line anew and really holds; no more is left of it."""
    provider, waiting = bench.provider(), bench.provider(leased_options(bench))
    lease = bench.acquire(provider, bench.scope())
    waiter = bench.start(lambda: waiting.try_acquire(bench.scope(), bench.owner("b"), 20.0))
    waiter.settle()
    bench.expect(not waiter.done(), "the waiter did not wait")
    bench.hook(waiting, "expire")(bench.scope())
    waiter.settle()
    provider.release(lease)
    (answer,) = bench.finish(waiter)
    if isinstance(answer.value, Lease):
        waiting.renew(answer.value)
        bench.expect_taken(bench.scope(), "a waiter was granted a lock that went with its session")
        waiting.release(answer.value)
    elif answer.error is not None and not isinstance(answer.error, (BackendUnavailable, LockLost)):
        raise Violation(f"the waiter ended with {answer.error!r}")
    bench.expect_free(bench.scope(), "a place of an ended session keeps the lock")
