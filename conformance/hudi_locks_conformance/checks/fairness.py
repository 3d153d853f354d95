"""Group G: who gets the lock next, and how soon."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from hudi_locks import AcquireTimeout, Capability, Held, LockManager, LockProvider, LockScope, SystemClock
from hudi_locks_conformance.bench import Bench, Running
from hudi_locks_conformance.check import Level, Mode, check
from hudi_locks_conformance.faults.meddler import Meddler
from hudi_locks_conformance.limits import Patience

_WAITERS: Final = 4
_WAIT_S: Final = 60.0
_CONTENDERS: Final = 3
_LEAST_HOLDS: Final = 3
_MOST_HOLDS: Final = 300
_HOLD_S: Final = 0.005
_CYCLES: Final = 30
_QUIET_S: Final = 0.5
"""So much real time without a request counts as quiet."""
_POLL_S: Final = 0.001
_STEP_S: Final = 0.05


def _await(holds: Callable[[], bool], said: str) -> None:
    """Return once it holds.

    Raises:
        Late: It does not in time.
    """
    patience = Patience()
    while not holds():
        patience.expect_left(said)
        SystemClock().sleep(_POLL_S)


def _stand_in_line(
    bench: Bench, holder: LockProvider, calls: Sequence[Callable[[], Any]], scope: LockScope
) -> list[Running]:
    """Start waiting calls one after the other, each when the one before it stands in line."""
    waiters = bench.hook(holder, "waiters")
    line = []
    for number, call in enumerate(calls, 1):
        line.append(bench.start(call))
        _await(lambda wanted=number: waiters(scope) >= wanted, f"waiter {number} does not stand in line")  # type: ignore[misc]
    return line


def _finish(bench: Bench, line: list[Running]) -> list[Any]:
    """How the calls ended, as time passes."""

    def move_all() -> None:
        for running in line:
            running.let_pass(_STEP_S)

    return [bench.finish(running, beside=move_all)[0] for running in line]


@check(
    "G1",
    "first-come-first-served",
    why="a writer that others overtake for ever never commits",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    needs=[Capability.FAIR, Capability.TIMED_WAIT],
)
def first_come_first_served(bench: Bench) -> None:
    """Waiters are granted the lock in the order in which they came."""
    scope, holder, order = bench.scope(), bench.provider(), list[int]()
    lease = bench.acquire(holder, scope)

    def take(client: LockProvider, number: int) -> None:
        mine = client.try_acquire(scope, bench.owner(f"waiter-{number}"), _WAIT_S)
        order.append(number if mine else -1)
        if mine is not None:
            client.release(mine)

    clients = [bench.provider() for _ in range(_WAITERS)]
    calls = [partial(take, client, number) for number, client in enumerate(clients)]
    line = _stand_in_line(bench, holder, calls, scope)
    holder.release(lease)
    _finish(bench, line)
    bench.expect(order == list(range(_WAITERS)), f"waiters 0 to {_WAITERS - 1} were granted in the order {order}")


@check(
    "G2",
    "nobody-starves",
    why="a job that never gets its turn is as good as dead",
    level=Level.EXTRA,
    mode=Mode.VIRTUAL,
)
def nobody_starves(bench: Bench) -> None:
    """Of three managers that take a lock half of the time, each gets its share: three holds before 300 in all."""
    managers = [bench.manager({"hoodie.write.lock.wait_time_ms": 60_000}) for _ in range(_CONTENDERS)]
    holds = [0] * _CONTENDERS

    def contend(number: int) -> None:
        while min(holds) < _LEAST_HOLDS and sum(holds) < _MOST_HOLDS:
            with contextlib.suppress(AcquireTimeout), managers[number].lock(bench.scope(), timeout_s=_WAIT_S):
                holds[number] += 1
                bench.clock.sleep(_HOLD_S)
            bench.clock.sleep(_HOLD_S)

    answers = bench.run(*[partial(contend, number) for number in range(_CONTENDERS)])
    failed = [answer.error for answer in answers if answer.error]
    bench.expect(not failed, f"a contender failed: {failed[:1]!r}")
    bench.expect(min(holds) >= _LEAST_HOLDS, f"the contenders held {holds} times")


@check(
    "G3",
    "throughput-is-told",
    why="what a lock costs is part of choosing it",
    level=Level.EXTRA,
    mode=Mode.REAL,
)
def throughput_is_told(bench: Bench) -> None:
    """A free lock is granted every time; how often in a second is told, and judged by nobody."""
    provider, clock = bench.provider(), SystemClock()
    provider.release(bench.acquire(provider, bench.scope()))
    began_s = clock.monotonic()
    for _ in range(_CYCLES):
        provider.release(bench.acquire(provider, bench.scope()))
    bench.note(f"{_CYCLES / (clock.monotonic() - began_s):.0f} holds in a second, one client, nobody else")


@check(
    "G4",
    "no-herd",
    why="a hundred waiters that all ask at every release bring the lock service down",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    needs=[Capability.FAIR, Capability.TIMED_WAIT],
    beyond_process=True,
)
def no_herd(bench: Bench) -> None:
    """A release wakes the next in line alone: who stands further behind asks no more often until it is granted."""
    scope, holder = bench.scope(), bench.provider()
    lease, meddlers = bench.acquire(holder, scope), [Meddler() for _ in range(_WAITERS)]
    clients = [meddler.watch(bench, bench.provider()) for meddler in meddlers]
    names = [bench.owner(f"waiter-{number}") for number in range(_WAITERS)]
    calls = [partial(client.try_acquire, scope, name, _WAIT_S) for client, name in zip(clients, names, strict=True)]
    line = _stand_in_line(bench, holder, calls, scope)
    asked = []
    _await_quiet(meddlers)
    for meddler in meddlers:
        meddler.begin()
    for client, meddler, running in zip(clients, meddlers, line, strict=True):
        holder.release(lease)
        (answer,) = _finish(bench, [running])
        bench.expect(answer.value is not None, f"the next in line was not granted the lock: {answer.error!r}")
        _await_quiet(meddlers)
        asked.append(len(meddler.names))
        holder, lease = client, answer.value
    holder.release(lease)
    bench.expect(asked[-1] <= asked[0] + 1, f"until they were granted, the waiters asked {asked} times, in this order")


def _await_quiet(meddlers: list[Meddler]) -> None:
    """Return once none of the waiters sends anything more for a moment."""
    quiet, last = Patience(_QUIET_S), list[int]()

    def is_quiet() -> bool:
        nonlocal last
        before, last = last, [len(meddler.names) for meddler in meddlers]
        if last != before:
            quiet.renew()
        return quiet.is_over

    _await(is_quiet, "waiters ask without end while nothing happens")


@check(
    "G5",
    "dead-waiter-blocks-nobody",
    why="a job that is killed in the queue must not stop those behind it",
    level=Level.EXTRA,
    mode=Mode.FORCED,
)
def dead_waiter_blocks_nobody(bench: Bench) -> None:
    """When a waiter in the middle ends, the one behind it gets the lock after the holder."""
    scope, holder = bench.scope(), bench.provider()
    lease = bench.acquire(holder, scope)
    dying, behind = bench.manager(), bench.manager({"hoodie.write.lock.wait_time_ms": 30_000})
    line = [_wait_in_line(bench, holder, manager, number) for number, manager in enumerate((dying, behind), 1)]
    dying.close()
    holder.release(lease)
    answers = _finish(bench, line)
    found = answers[1]
    bench.expect(isinstance(found.value, Held), f"the waiter behind a dead one ended with {found.error!r}")
    found.value.release()
    bench.expect_free(scope, "a dead waiter holds the lock")


def _wait_in_line(bench: Bench, holder: LockProvider, manager: LockManager, number: int) -> Running:
    """Start a waiting manager; return when it stands in line, or polls, where nobody queues."""
    running = bench.start(lambda: manager.lock(bench.scope(), timeout_s=30))
    if getattr(bench.harness.hooks, "waiters", None) is not None:
        waiters = bench.hook(holder, "waiters")
        _await(lambda: waiters(bench.scope()) >= number, f"waiter {number} does not stand in line")
    else:
        running.settle()
    return running


@check(
    "G6",
    "opposite-orders-end",
    why="two jobs that want each other's lock must both go on after their time",
    level=Level.EXTRA,
    mode=Mode.VIRTUAL,
)
def opposite_orders_end(bench: Bench) -> None:
    """Two managers that each hold one lock and want the other's both end within their time, and leave both free."""
    first, second = bench.scope(1), bench.scope(2)
    managers = [bench.manager(), bench.manager()]
    outer = [managers[0].lock(first, timeout_s=0), managers[1].lock(second, timeout_s=0)]
    began_s = bench.clock.monotonic()
    answers = bench.run(
        lambda: managers[0].lock(second, timeout_s=0.5),
        lambda: managers[1].lock(first, timeout_s=0.5),
    )
    ends = [answer.error or answer.value for answer in answers]
    timed_out = all(isinstance(end, AcquireTimeout) for end in ends)
    bench.expect(timed_out, f"the two ended with {' and '.join(map(repr, ends))}")
    took_s = max(answer.ended_s for answer in answers) - began_s
    bench.expect_in_time(took_s, 0.5 + bench.slack_s, f"it took {took_s:.2f} s instead of 0.5 s")
    for held in outer:
        held.release()
    for scope in (first, second):
        bench.expect_free(scope, "a lock is left taken after two waits in opposite orders")
