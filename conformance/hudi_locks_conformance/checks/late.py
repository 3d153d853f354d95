"""Calls that were under way when a lease ended: another client takes the lock over meanwhile, and they go on."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from hudi_locks import BackendUnavailable, Capability, HudiLocksError, Lease, LockLost, LockProvider, LockScope
from hudi_locks_conformance.bench import Answer, Bench
from hudi_locks_conformance.check import Inapplicable, Level, Mode, Violation, check
from hudi_locks_conformance.interleaving import Line, find_lines, stop_at, thin_out
from hudi_locks_conformance.leases import DELTA, is_over, lease_length_s, leased_options, wait_until

_MOST_STOPS: Final = 80
_MOST_REAL_STOPS: Final = 30
_AT_ONCE: Final = 15
"""So many stopped calls share one wait for the end of their leases, where that takes real time."""
_LOOKS: Final = 3
_PATIENCE_S: Final = 0.1
_WHY: Final = "a writer that stood still for a lease would take away, or use, what the next one holds"


@dataclass
class _Stop:
    """One call of one client that is stopped, and the client that takes the lock over meanwhile.

    Attributes:
        bench: The check's.
        scope: Its own.
        late: The client whose call is stopped.
        next: The client that takes over.
        intruder: A third one, which asks afterwards.
        lease: What the first one holds; None where it is about to acquire.
    """

    bench: Bench
    scope: LockScope
    late: LockProvider
    next: LockProvider
    intruder: LockProvider
    lease: Lease | None = None

    def acquire(self) -> Lease | None:
        """Let the first client ask for the lock."""
        return self.late.try_acquire(self.scope, self.bench.owner("late"), 0.0)

    def hold(self) -> Lease:
        """Let the first client hold the lock."""
        self.lease = lease = self.bench.acquire(self.late, self.scope, "late")
        return lease

    def outlive(self, lease_s: float) -> Lease:
        """Let the first client hold the lock until its lease is over; the next one sees it taken before."""
        lease = self.hold()
        self.bench.expect(self.ask() is None, "the lock of a living holder was granted")
        self.bench.let_pass(lease_s * (1 + 2 * DELTA))
        return lease

    def take_over(self, lease_s: float) -> Lease | None:
        """Let the next client ask until it has the lock, or until no more than its asking can help."""
        for _ in range(_LOOKS):  # one to see it taken, one when its lease is over, one for who judges by watching
            if (lease := self.ask()) is not None:
                return lease
            self.bench.let_pass(lease_s * (1 + 2 * DELTA))
        return None if self.bench.is_virtual else self._ask_on()

    def ask(self) -> Lease | None:
        """Let the next client ask once."""
        return self.next.try_acquire(self.scope, self.bench.owner("next"), 0.0)

    def _ask_on(self) -> Lease | None:
        found: Lease | None = None

        def is_granted() -> bool:
            nonlocal found
            found = found or self.ask()
            return found is not None

        wait_until(self.bench, is_granted)
        return found


Prepare: TypeAlias = Callable[[_Stop, float], Callable[[], Any]]
"""Does what comes before the call, given the length of a lease, and gives the call."""


@check("B13", "late-release-spares-the-next", why=_WHY, level=Level.LEASE, mode=Mode.VIRTUAL, needs=[Capability.LEASE])
def late_release_spares_the_next(bench: Bench) -> None:
    """A release that stood still while its lease ended leaves alone what the next holder made meanwhile.

    It is stopped before each line of the provider's own code while another client takes the lock over.
    """
    stops = _Stops(bench)
    for prepare in _in_time_and_late(bench, lambda stop, lease: partial(stop.late.release, lease)):
        _stop_everywhere(stops, prepare, _judge_release)


@check(
    "E17",
    "late-renewal-is-lost",
    why=_WHY,
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def late_renewal_is_lost(bench: Bench) -> None:
    """A renewal that stood still while its lease ended neither holds again nor overwrites the next holder's record.

    It is stopped before each line of the provider's own code while another client takes the lock over. It raises
    `LockLost`, or tells of a lease that is over; the next renewal raises `LockLost`.
    """
    stops = _Stops(bench)
    for prepare in _in_time_and_late(bench, lambda stop, lease: partial(stop.late.renew, lease)):
        _stop_everywhere(stops, prepare, _judge_renewal)


@check("E18", "late-grant-is-over", why=_WHY, level=Level.LEASE, mode=Mode.VIRTUAL, needs=[Capability.LEASE])
def late_grant_is_over(bench: Bench) -> None:
    """An acquire that stood still for a lease tells of none that others may take by now: it counts from the request.

    It is stopped before each line of the provider's own code while another client takes the lock, or takes it over.
    """
    _stop_everywhere(_Stops(bench), lambda stop, _: stop.acquire, _judge_grant)


def _in_time_and_late(bench: Bench, call: Callable[[_Stop, Lease], Callable[[], Any]]) -> Iterator[Prepare]:
    """A call that begins while its lease lasts; in virtual time, also one that begins when it is over."""
    yield lambda stop, _: call(stop, stop.hold())
    if bench.is_virtual:
        yield lambda stop, lease_s: call(stop, stop.outlive(lease_s))


def _judge_release(stop: _Stop, answer: Answer, where: str) -> None:
    _expect_answer(stop.bench, answer, where)


def _judge_renewal(stop: _Stop, answer: Answer, where: str) -> None:
    _judge_grant(stop, answer, where)
    if stop.lease is not None:
        with stop.bench.expect_raises(LockLost, f"what another one took over was renewed afterwards, {where}"):
            stop.late.renew(stop.lease)


def _judge_grant(stop: _Stop, answer: Answer, where: str) -> None:
    _expect_answer(stop.bench, answer, where)
    believes = isinstance(answer.value, Lease) and not is_over(stop.bench, answer.value)
    stop.bench.expect(not believes, f"a client believes in a lease on what another one holds by now, {where}")


def _expect_answer(bench: Bench, answer: Answer, where: str) -> None:
    """Not an error of the provider's own making; one that a hiccup of the lock service makes is raised."""
    if isinstance(answer.error, BackendUnavailable):
        raise answer.error
    bench.expect(answer.error is None or isinstance(answer.error, LockLost), f"raised {answer.error!r}, {where}")


def _stop_everywhere(stops: _Stops, prepare: Prepare, judge: Callable[[_Stop, Answer, str], None]) -> None:
    """Stop a call at each line that it passes, on a lock of its own each time.

    Raises:
        Inapplicable: The lock service ends sessions by itself.
        Violation: The lock is another's nowhere, or `judge` says so.
    """
    bench = stops.bench
    if Capability.SESSION in bench.harness.claims:
        raise Inapplicable("the lock service ends a session, and no contender takes it over")
    lease_s, lines = _survey(bench, prepare, stops)

    def stop(line: Line) -> bool:
        try:
            return _stop_one(next(stops), line, prepare, judge, lease_s)
        except BackendUnavailable as error:  # of a thousand requests one may fail: once more, on another lock
            bench.note(f"stopped once more, since the lock service failed: {error}")
            return _stop_one(next(stops), line, prepare, judge, lease_s)

    if bench.is_virtual:
        most = _MOST_STOPS if bench.harness.server is None else _MOST_REAL_STOPS
        entered = [stop(line) for line in thin_out(lines, most)]
    else:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            entered = list(pool.map(stop, thin_out(lines, _MOST_REAL_STOPS)))
    bench.expect(any(entered), "nobody could take over a lock whose lease was over while its holder stood still")


class _Stops(Iterator[_Stop]):
    """Stops on locks of their own: with clients of their own where several are stopped at once, which is in real time.

    Thread-safe.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench, self._lock, self._numbers = bench, threading.Lock(), itertools.count()
        self._clients = self._make_clients() if bench.is_virtual else None

    def _make_clients(self) -> tuple[LockProvider, LockProvider, LockProvider]:
        options = leased_options(self.bench)
        return self.bench.provider(options), self.bench.provider(options), self.bench.provider(options)

    def __next__(self) -> _Stop:
        with self._lock:
            return _Stop(self.bench, self.bench.scope(next(self._numbers)), *(self._clients or self._make_clients()))


def _survey(bench: Bench, prepare: Prepare, stops: Iterator[_Stop]) -> tuple[float, list[Line]]:
    """How long a lease is, and which lines the call passes."""
    probe = next(stops)
    lease = probe.hold()
    lease_s = lease_length_s(bench, lease)
    probe.late.release(lease)
    call = prepare(next(stops), lease_s)

    def run() -> None:
        with suppress(HudiLocksError):
            call()

    return lease_s, find_lines(bench.harness.kind, run)


def _stop_one(
    stop: _Stop, line: Line, prepare: Prepare, judge: Callable[[_Stop, Answer, str], None], lease_s: float
) -> bool:
    """Whether the next client took the lock over while the call stood still; what came of it is judged."""
    call, bench = prepare(stop, lease_s), stop.bench
    patience_s = _PATIENCE_S if bench.is_virtual else 3 * lease_s + 1
    stopped, other = stop_at(line, bench.harness.kind, call, lambda: stop.take_over(lease_s), patience_s=patience_s)
    if other.error is not None:
        raise other.error
    taken, where = other.value, f"while it stood before line {line[1]} of {line[0].rpartition('/')[2]}"
    if taken is None or is_over(bench, taken):
        return taken is not None
    judge(stop, stopped, where)
    _expect_kept(stop, taken, where)
    return True


def _expect_renewed(stop: _Stop, taken: Lease, where: str) -> None:
    try:
        stop.next.renew(taken)
    except LockLost as error:
        if is_over(stop.bench, taken):  # a slow lock service let it end meanwhile
            return
        raise Violation(f"the next holder lost the lock ({error}), {where}") from error


def _expect_kept(stop: _Stop, taken: Lease, where: str) -> None:
    """What the next client took over is there, its own, and its to release."""
    bench, intruder = stop.bench, stop.intruder
    found = intruder.try_acquire(stop.scope, bench.owner("intruder"), 0.0)
    if is_over(bench, taken):
        return
    bench.expect(found is None, f"the lock of the next holder was taken away, {where}")
    if Capability.OWNER_INFO in bench.harness.claims:
        holder = intruder.holder(stop.scope)
        named = holder is not None and holder.owner.id == taken.owner.id
        bench.expect(named, f"the record of the next holder was overwritten, {where}")
    if Capability.RENEWAL in bench.harness.claims:
        _expect_renewed(stop, taken, where)
    stop.next.release(taken)
