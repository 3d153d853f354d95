"""Group J, second part: processes that are killed, fork, spawn, forget, or end while they wait."""

from __future__ import annotations

from typing import Final

from hudi_locks import Capability, ManualClock, SystemClock
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, check
from hudi_locks_conformance.holder import HolderProcess
from hudi_locks_conformance.leases import DELTA, is_granted, is_granted_within, lease_length_s, leased_options
from hudi_locks_conformance.offspring import FORGET, FORK, SPAWN, Ended, run_offspring

_NOISE: Final = ("Traceback", "Exception ignored", "Fatal Python error")


@check(
    "J1",
    "killed-holder-frees-after-bound",
    why="a job that was killed never comes back to release",
    level=Level.LEASE,
    needs=[Capability.LEASE],
    beyond_process=True,
)
def killed_holder_frees_after_bound(bench: Bench) -> None:
    """The lock of a process that was killed is free after the bound of its lease, and not before.

    On a provider that keeps the kit's time the contender's clock goes on from the true time.
    """
    clock = ManualClock(SystemClock().wall_ms()) if bench.is_virtual else bench.clock
    began_s = SystemClock().monotonic()
    options, scope = leased_options(bench), bench.scope()
    contender = bench.provider(options, clock=clock)
    lease_s = lease_length_s(bench, bench.acquire(contender, bench.scope(1)), clock)
    with HolderProcess(bench, options, scope) as holder:
        bench.expect(not is_granted(bench, contender), "a lock was granted that another process holds")
        holder.end()
        bench.expect(not is_granted(bench, contender), "the lock was granted at the moment when its holder died")
        if isinstance(clock, ManualClock):
            clock.advance(SystemClock().monotonic() - began_s + lease_s * (1 + DELTA))
        free = is_granted_within(bench, contender, lease_s)
        bench.expect(free, "the lock of a killed process never became free")


def _forked(bench: Bench) -> Ended:
    shared = bench.harness.shared
    if "forked" not in shared:
        shared["forked"] = run_offspring(bench, FORK, [bench.scope(), bench.scope(1)])
    ended: Ended = shared["forked"]
    return ended


@check(
    "J3a",
    "forked-child-holds-nothing",
    why="a worker that a job forks would publish under its parent's lock, or free it by ending",
    mode=Mode.REAL,
    level=Level.EXTRA,
)
def forked_child_holds_nothing(bench: Bench) -> None:
    """In a forked child a hold is lost, its manager refuses to work and runs no thread; its end frees nothing."""
    told = _forked(bench).told
    child = told["child"]
    bench.expect(child.get("reason") == "FORKED", f"a forked child finds its parent's hold {child.get('reason')!r}")
    bench.expect(child["lock"] == "ProviderClosed", f"a forked child's lock() ended with {child['lock']!r}")
    bench.expect(child["threads"] == 1, f"a forked child runs {child['threads']} threads")
    bench.expect(child["ends"][:2] == ["", ""], f"release and close in a forked child ended with {child['ends'][:2]}")
    bench.expect(not told["verify"], f"the parent's hold ended with its child: {told['verify']}")
    bench.expect(not told["free"][0], "the end of a forked child freed its parent's lock")


@check(
    "J3b",
    "forked-client-holds-nothing",
    why="what is claimed of forks must hold without a manager too",
    mode=Mode.REAL,
    level=Level.EXTRA,
    needs=[Capability.FORK_AWARE],
)
def forked_client_holds_nothing(bench: Bench) -> None:
    """In a forked child the client itself renews nothing, and its release and close do nothing to its parent's lock."""
    told = _forked(bench).told
    child = told["child"]
    bench.expect(child.get("renew") == "LockLost", f"a renewal in a forked child ended with {child.get('renew')!r}")
    bench.expect(child["ends"][2:] == ["", ""], f"release and close in a forked child ended with {child['ends'][2:]}")
    bench.expect(not told["renew"], f"the parent's lease ended with its child: {told['renew']}")
    bench.expect(not told["free"][1], "a forked child freed its parent's lock")


@check(
    "J4",
    "spawned-child-is-another-client",
    why="Spark's Python workers and process pools build their own clients from the options they are sent",
    mode=Mode.REAL,
    level=Level.EXTRA,
    beyond_process=True,
)
def spawned_child_is_another_client(bench: Bench) -> None:
    """A spawned child builds a client from name and options, and is excluded; a hold and a manager cannot be sent."""
    told = run_offspring(bench, SPAWN, [bench.scope()]).told
    bench.expect(told["sent"] == ["TypeError"] * 2, f"sending a hold and a manager ended with {told['sent']}")
    bench.expect(
        told["held"] == "AcquireTimeout", f"a spawned child's lock() on a taken lock ended with {told['held']!r}"
    )
    bench.expect(not told["free"], f"a spawned child's lock() on a free lock ended with {told['free']}")


def _forgotten(bench: Bench) -> Ended:
    """A process that forgot what it held, and ended while a thread waited; then its locks are looked at."""
    shared = bench.harness.shared
    if "forgotten" not in shared:
        scopes = [bench.scope(), bench.scope(1)]
        shared["forgotten"] = run_offspring(bench, FORGET, scopes), scopes
    ended: Ended = shared["forgotten"][0]
    return ended


@check(
    "J7",
    "end-while-waiting",
    why="a job that ends while one of its threads waits must neither hang nor leave a lock",
    mode=Mode.REAL,
    level=Level.EXTRA,
)
def end_while_waiting(bench: Bench) -> None:
    """A process whose main thread ends while another one waits for a lock ends at once, silently, and holds nothing."""
    ended = _forgotten(bench)
    bench.expect(ended.told["waits"], "the other thread did not wait")
    noise = [line for line in ended.errors.splitlines() if any(word in line for word in _NOISE)]
    bench.expect(not noise, f"a process that ended said: {noise[:1]}")
    bench.expect(ended.status == 0, f"a process that ended while it waited had the exit status {ended.status}")
    bench.expect_free(
        bench.harness.shared["forgotten"][1][0], "a process that ended while it waited left the lock taken"
    )


@check(
    "J8",
    "forgotten-hold-is-told",
    why="a lock that nobody released is a slip, and one that the garbage collector ends is worse",
    mode=Mode.REAL,
    level=Level.EXTRA,
)
def forgotten_hold_is_told(bench: Bench) -> None:
    """A hold that nobody refers to any more stays held until the process ends, which says so by a `ResourceWarning`."""
    ended = _forgotten(bench)
    bench.expect(ended.told["taken"], "a hold ended because nobody referred to it any more")
    name = bench.harness.shared["forgotten"][1][0].file_id
    warned = [line for line in ended.errors.splitlines() if "ResourceWarning" in line and name in line]
    bench.expect(warned, "no ResourceWarning names a lock that was held to the end of its process")
