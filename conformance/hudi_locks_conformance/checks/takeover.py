"""Group E, last part: of several who find a lease over, one gets the lock."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from hudi_locks import BackendUnavailable, Capability, Lease, LockScope
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Inapplicable, Level, Mode, NotRun, Violation, check
from hudi_locks_conformance.interleaving import Line, find_lines, stop_at, thin_out
from hudi_locks_conformance.leases import (
    DELTA,
    ask_again,
    is_granted,
    is_over,
    lease_length_s,
    leased_options,
    wait_until,
)
from hudi_locks_conformance.limits import PATIENCE_S

_RACES: Final = 10
_MOST_STOPS: Final = 80
_MOST_REAL_STOPS: Final = 30
_SPARE: Final = 4
"""Locks for those that cannot be judged, since the lock service did not answer."""
_MORE_HOLDERS: Final = 12
_FEWEST: Final = 4
"""Locks that one dead holder leaves, where the lock service is too slow for more within a lease."""
_WHY: Final = "whoever removes by name what was over removes what the first taker has just made, and both write"


class _Dead:
    """Locks of a holder that died, and two clients that would both take them over, each as an owner of its own."""

    def __init__(self, bench: Bench, number: int) -> None:
        self.bench, self.options = bench, leased_options(bench)
        self.takers = [bench.provider(self.options) for _ in range(2)]
        self._places, self._number, self._more = itertools.count(), number, iter(range(_MORE_HOLDERS))
        self._scopes = self._die()

    def _die(self) -> Iterator[LockScope]:
        """Locks of one more dead holder."""
        holder, bench = self.bench.provider(self.options), self.bench
        scopes = [bench.scope(next(self._places)) for _ in range(self._number)]
        leases = [ask_again(bench, partial(bench.acquire, holder, scope, "dead"), times=1) for scope in scopes]
        lease_s = lease_length_s(bench, leases[-1])
        seen = [scope for scope in scopes if self._is_seen(scope)]
        may_be_slow = not bench.is_virtual and self._number > _FEWEST
        bench.expect(bool(seen) or may_be_slow, "the locks of a living holder were granted")
        if len(seen) < self._number // 2:
            self._number = max(_FEWEST, self._number // 2)
        if seen:
            self._outlast(lease_s, seen.pop())
        return iter(seen)

    def _is_seen(self, scope: LockScope) -> bool:
        """Whether both takers saw it taken: who judges by watching a record has to see it now.

        In real time the first leases may be over by now, where the lock service is slow.
        """
        leases = [ask_again(self.bench, partial(self.take, place, scope), times=1) for place in range(len(self.takers))]
        self.bench.expect(
            leases == [None, None] or not self.bench.is_virtual, "the lock of a living holder was granted"
        )
        return leases == [None, None]

    def _outlast(self, lease_s: float, last: LockScope) -> None:
        if self.bench.is_virtual:
            self.bench.let_pass(lease_s * (1 + 2 * DELTA))
        elif not wait_until(self.bench, lambda: is_granted(self.bench, self.takers[0], last)):
            raise Violation("the lock of a dead holder never became free")

    def next_scope(self) -> LockScope:
        """The next lock whose holder is dead.

        Raises:
            NotRun: None is left, since leases ended while the lock service was asked for others; not until so many
                more holders have died, of fewer locks each.
        """
        while (scope := next(self._scopes, None)) is None:
            if self.bench.is_virtual or next(self._more, None) is None:
                raise NotRun("leases end before the kit has asked for as many locks as it needs (hook: lease_options)")
            self._scopes = self._die()
        return scope

    def take(self, place: int, scope: LockScope) -> Lease | None:
        """Let one of the two ask."""
        return self.takers[place].try_acquire(scope, self.bench.owner(f"taker-{place}"), 0.0)


@check("E16", "takeover-is-atomic", why=_WHY, level=Level.LEASE, mode=Mode.VIRTUAL, needs=[Capability.LEASE])
def takeover_is_atomic(bench: Bench) -> None:
    """Of two who find a lease over at one moment one gets the lock, and keeps it; wherever the other one was stopped.

    One of them is stopped before each line of the provider's own code while the other one asks; then both ask at once.
    """
    if Capability.SESSION in bench.harness.claims:
        raise Inapplicable("the lock service ends a session, and no contender takes it over")
    most = _MOST_STOPS if bench.is_virtual else _MOST_REAL_STOPS
    dead = _Dead(bench, 1 + most + _RACES + _SPARE + 1)
    first = dead.next_scope()
    lines = find_lines(bench.harness.kind, lambda: dead.take(0, first))
    spare = iter(range(_SPARE))
    for line in thin_out(lines, most):
        _judge_patiently(bench, partial(_stop_one, bench, dead, line), spare)
    for _ in range(_RACES):
        _judge_patiently(bench, partial(_race, bench, dead), spare)


def _judge_patiently(bench: Bench, judge: Callable[[], None], spare: Iterator[int]) -> None:
    """Judge, on another lock where the lock service does not answer; of hundreds of requests one may fail."""
    try:
        return judge()
    except BackendUnavailable as error:
        if next(spare, None) is None:
            raise
        bench.note(f"asked once more, since the lock service failed: {error}")
    return _judge_patiently(bench, judge, spare)


def _stop_one(bench: Bench, dead: _Dead, line: Line) -> None:
    scope = dead.next_scope()
    stopped, quick = stop_at(line, bench.harness.kind, lambda: dead.take(0, scope), lambda: dead.take(1, scope))
    bench.expect_no_error([stopped, quick], "an acquire of a lock whose lease was over")
    where = f"while the other one was stopped before line {line[1]} of {line[0].rpartition('/')[2]}"
    _judge(bench, dead, [stopped.value, quick.value], where)


def _race(bench: Bench, dead: _Dead) -> None:
    scope, barrier = dead.next_scope(), threading.Barrier(2, timeout=PATIENCE_S)

    def ask(place: int) -> Lease | None:
        barrier.wait()
        return dead.take(place, scope)

    answers = bench.run(lambda: ask(0), lambda: ask(1))
    bench.expect_no_error(answers, "an acquire of a lock whose lease was over")
    _judge(bench, dead, [answer.value for answer in answers], "while both asked at one moment")


def _judge(bench: Bench, dead: _Dead, leases: list[Lease | None], where: str) -> None:
    """One of them may hold, and what it holds must be there; what is over by now tells nothing."""
    granted = [(dead.takers[place], lease) for place, lease in enumerate(leases) if lease is not None]
    if any(is_over(bench, lease) for _, lease in granted):
        bench.note(f"a lease was over before it could be judged, {where}")
        return
    bench.expect(len(granted) < 2, f"two took over one lock, {where}")
    for taker, lease in granted:
        _expect_kept(bench, lease, where)
        taker.release(lease)


def _expect_kept(bench: Bench, lease: Lease, where: str) -> None:
    other = bench.provider(leased_options(bench))
    taken = other.try_acquire(lease.scope, bench.owner("intruder"), 0.0)
    lost = taken is not None and not is_over(bench, lease)
    bench.expect(not lost, f"what the one took over was taken away by the other one, {where}")
    other.close()
