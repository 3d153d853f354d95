"""Group C: whose lock it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from hudi_locks import AlreadyHeld, Capability, Holder, Lease, LockLost, LockProvider, LockScope
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Mode, NotRun, check


@check("C1", "second-acquire-as-declared", why="a writer that asks twice must neither hang nor hold without knowing")
def second_acquire_as_declared(bench: Bench) -> None:
    """A second acquire by the holder is refused at once, or counted, or the same lease, exactly as claimed."""
    provider, claims = bench.provider(), bench.harness.claims
    first = bench.acquire(provider, bench.scope())
    began_s = bench.clock.monotonic()
    answer = bench.run(lambda: provider.try_acquire(bench.scope(), bench.owner(), 0.2))[0]
    bench.expect_in_time(answer.ended_s - began_s, 0.2, "the second acquire blocked beyond its timeout")
    if Capability.REENTRANT in claims or Capability.REACQUIRE in claims:
        bench.expect(isinstance(answer.value, Lease), f"claims it, but answered {answer.value or answer.error!r}")
        provider.release(first)
        if Capability.REACQUIRE in claims:
            bench.expect_free(bench.scope(), "REACQUIRE is claimed, but the acquires are counted")
    else:
        bench.expect(
            isinstance(answer.error, AlreadyHeld),
            f"claims neither REENTRANT nor REACQUIRE, but answered {answer.value or answer.error!r} to its holder",
        )
        provider.release(first)
        bench.expect_free(bench.scope(), "a refused second acquire left something behind")


@check(
    "C2", "reentrant-counts", why="an inner block must not free the lock of the outer one", needs=[Capability.REENTRANT]
)
def reentrant_counts(bench: Bench) -> None:
    """As many releases as acquires free the lock, and no fewer."""
    provider = bench.provider()
    leases = [bench.acquire(provider, bench.scope()) for _ in range(3)]
    for lease in leases[:2]:
        provider.release(lease)
        bench.expect_taken(bench.scope(), "fewer releases than acquires freed the lock")
    provider.release(leases[2])
    bench.expect_free(bench.scope(), "as many releases as acquires did not free the lock")


@check("C3", "other-client-cannot-release", why="a client that deletes by name frees the lock of a living writer")
def other_client_cannot_release(bench: Bench) -> None:
    """A release or close through another client, which holds nothing, does nothing, even with the holder's lease."""
    provider, other = bench.provider(), bench.provider()
    lease = bench.acquire(provider, bench.scope())
    bench.expect(other.try_acquire(bench.scope(), bench.owner("b"), 0.0) is None, "a taken lock was granted")
    with contextlib.suppress(LockLost):
        other.release(replace(lease, owner=bench.owner("b"), state=None))
    bench.expect_taken(bench.scope(), "a client that held nothing released the lock of another")
    with contextlib.suppress(LockLost):
        other.release(lease)
    bench.expect_taken(bench.scope(), "a client that only knew the lease of another released its lock")
    other.close()
    bench.expect_taken(bench.scope(), "closing a client that held nothing released the lock of another")
    provider.renew(lease)
    provider.release(lease)


@check("C9", "owners-are-compared-whole", why="two jobs of one host, or of one name, are two writers")
def owners_are_compared_whole(bench: Bench) -> None:
    """An owner that differs from the holder by its id alone is another one: it is refused, and cannot release."""
    provider, owner = bench.provider(), bench.owner()
    lease = bench.acquire(provider, bench.scope())
    alike = replace(owner, id=f"{owner.id}-2")
    for client in (provider, bench.provider()):
        answer = bench.run(partial(client.try_acquire, bench.scope(), alike, 0.0))[0]
        said = answer.value or answer.error
        bench.expect(said is None, f"an owner that shares host, process and thread with the holder got {said!r}")
    with contextlib.suppress(LockLost):
        provider.release(replace(lease, owner=alike))
    bench.expect_taken(bench.scope(), "an owner that shares host, process and thread with the holder released its lock")
    provider.renew(lease)
    provider.release(lease)


@check("C4", "other-thread-cannot-unlock", why="a helper thread's clean-up must not end the writer's commit")
def other_thread_cannot_unlock(bench: Bench) -> None:
    """`unlock` on a thread that holds nothing does nothing, and a lease renamed to another owner is worth nothing."""
    manager = bench.manager()
    held = manager.lock(bench.scope())
    answer = bench.run(lambda: manager.unlock(bench.scope()))[0]
    bench.expect(answer.error is None and not answer.value, "unlock on another thread says that it released")
    forged = replace(held.lease, owner=bench.owner("forger"))
    with contextlib.suppress(LockLost):
        manager.provider.release(forged)
    bench.expect_taken(bench.scope(), "another thread, or another owner, released the lock")
    held.verify()
    held.release()


@check(
    "C5",
    "stale-release-spares-successor",
    why="a late writer that wakes up must not free the lock it lost",
    mode=Mode.FORCED,
)
def stale_release_spares_successor(bench: Bench) -> None:
    """After a loss, the old holder's release and close leave the next holder's lock alone."""
    provider, successor = bench.provider(), bench.provider()
    old = bench.acquire(provider, bench.scope())
    _take_away(bench, provider, bench.scope())
    new = bench.acquire(successor, bench.scope(), "b")
    with bench.expect_raises(LockLost, "the renewal of a lost lease did not raise LockLost"):
        provider.renew(old)
    provider.release(old)
    provider.close()
    bench.expect_taken(bench.scope(), "the old holder freed the lock of its successor")
    successor.renew(new)
    successor.release(new)


@check(
    "C6", "release-of-lost-is-quiet", why="clean-up after a loss must not bury the error that says so", mode=Mode.FORCED
)
def release_of_lost_is_quiet(bench: Bench) -> None:
    """Releasing a lease that is over, and that nobody took, raises nothing."""
    provider = bench.provider()
    lease = bench.acquire(provider, bench.scope())
    _take_away(bench, provider, bench.scope())
    provider.release(lease)
    provider.release(lease)
    bench.expect_free(bench.scope(), "the lock is not free after its loss and release")


def _take_away(bench: Bench, provider: LockProvider, scope: LockScope) -> None:
    """End a hold as somebody else, or time, could."""
    for name in ("remove", "steal"):
        if hasattr(bench.harness.hooks, name):
            bench.hook(provider, name)(scope)
            return
    raise NotRun("the provider offers neither of the hooks 'remove' and 'steal' (conformance_hooks)")


@check(
    "C7",
    "holder-is-named",
    why="nobody can free a zombie's lock who cannot tell whose it is",
    needs=[Capability.OWNER_INFO],
)
def holder_is_named(bench: Bench) -> None:
    """While it is held, any client names the owner, host, process and a token; before and after, nobody.

    Asking changes nothing.
    """
    provider, asking = bench.provider(), bench.provider()
    bench.expect(asking.holder(bench.scope()) is None, "a free lock has a holder")
    lease = bench.acquire(provider, bench.scope())
    holder = asking.holder(bench.scope())
    owner = bench.owner()
    bench.expect(holder is not None, "a held lock has no holder")
    if holder is not None:
        told = (holder.owner.id, holder.owner.host, holder.owner.pid)
        bench.expect(told == (owner.id, owner.host, owner.pid), f"names {told}, not the owner")
        bench.expect(holder.key and holder.token, "the holder has no key or no token")
    provider.release(lease)
    bench.expect(asking.holder(bench.scope()) is None, "a released lock has a holder")
    bench.expect_free(bench.scope(), "whoever asked who holds a free lock left something in its place")


@check(
    "C11",
    "every-hold-is-listed",
    why="nobody can clear up after a crashed writer who does not know what it holds",
    needs=[Capability.LIST, Capability.OWNER_INFO],
)
def every_hold_is_listed(bench: Bench) -> None:
    """Any client lists the holds of the table and of file groups, each as `holder` tells it, and none that is over."""
    provider, asking = bench.provider(), bench.provider()
    scopes = [LockScope.table(), bench.scope(), bench.scope(1)]
    leases = [bench.acquire(provider, scope) for scope in scopes]
    held = [asking.holder(scope) for scope in scopes]
    told = {(holder.key, holder.token): holder for holder in asking.list_holders()}
    for scope, holder in zip(scopes, held, strict=True):
        listed = holder and told.get((holder.key, holder.token))
        bench.expect(holder and listed, f"the hold on {scope} is not listed")
        if holder and listed:
            bench.expect(listed.owner == holder.owner, f"{listed.owner} is listed for {scope}, not {holder.owner}")
            bench.expect(listed.scope in (str(scope), ""), f"the hold on {scope} is listed as one on {listed.scope!r}")
    for lease in leases:
        provider.release(lease)
    left = {(holder.key, holder.token) for holder in asking.list_holders()}
    ended = {(holder.key, holder.token) for holder in held if holder}
    bench.expect(not left & ended, "a hold is listed that was released")


@check("C8", "record-is-what-holder-tells", why="a person who looks at the record must see what the tool says")
def record_is_what_holder_tells(bench: Bench) -> None:
    """The raw record is there while the lock is held, as `holder` tells it, and gone or marked afterwards."""
    provider = bench.provider()
    peek = bench.hook(provider, "peek")
    lease = bench.acquire(provider, bench.scope())
    raw, holder = peek(bench.scope()), provider.holder(bench.scope())
    bench.expect(raw and holder, "there is no record while the lock is held")
    if raw and holder:
        bench.expect(holder.raw == raw.decode("utf-8", "replace"), "holder().raw is not the record")
    provider.release(lease)
    bench.expect(peek(bench.scope()) != raw, "the record is unchanged after the release")


@check(
    "C10",
    "break-needs-the-token",
    why="an administrator who clears away a dead hold must not end the living one that came after it",
    needs=[Capability.BREAK, Capability.OWNER_INFO],
)
def break_needs_the_token(bench: Bench) -> None:
    """`break_if` removes the hold whose token `holder` told, and no other: not the one that came after it."""
    provider, admin, scope = bench.provider(), bench.provider(), bench.scope()
    tokens = [holder.token for holder in _hold_twice(bench, provider, admin)]
    bench.expect(not admin.break_if(scope, tokens[0]), "break_if removed a hold that another token names")
    bench.expect_taken(scope, "break_if let go of a hold that another token names")
    bench.expect(admin.break_if(scope, tokens[1]), "break_if removed nothing although the token is that of the hold")
    bench.expect_free(scope, "a hold that was removed by its token is there")


def _hold_twice(bench: Bench, provider: LockProvider, admin: LockProvider) -> Iterator[Holder]:
    """Who holds the lock, as an administrator sees it, in two holds; the second one stays."""
    for number in range(2):
        lease = bench.acquire(provider, bench.scope())
        holder = admin.holder(bench.scope())
        bench.expect(holder is not None, "a held lock has no holder")
        yield from filter(None, [holder])
        if number == 0:
            provider.release(lease)
