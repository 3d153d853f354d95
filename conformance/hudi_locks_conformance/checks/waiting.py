"""Group D: waiting, timeouts, cancelling; on the provider and through the manager."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from hudi_locks import (
    AcquireTimeout,
    BackendRefused,
    Capability,
    Clock,
    ConfigError,
    Held,
    Lease,
    LockManager,
    ProviderClosed,
)
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Mode, check
from hudi_locks_conformance.clocks import OwnClock
from hudi_locks_conformance.tracing import Calls

_LOCK: Final = "hoodie.write.lock."
_SHORT_S: Final = 0.4
_LONG_S: Final = 60.0
_LONG_MS: Final = 60_000
"""An attempt may take so long where requests are counted: a slow answer is no retry less."""
_PAUSE_S: Final = 0.02
"""Of the waiters: time passes in such steps where it is measured how soon one of them looks again."""


def _waits(bench: Bench) -> bool:
    return Capability.TIMED_WAIT in bench.harness.claims


@check(
    "D1", "zero-timeout-is-one-attempt", why="'try once' must neither fail on a free lock nor wait", mode=Mode.VIRTUAL
)
def zero_timeout_is_one_attempt(bench: Bench) -> None:
    """With a timeout of 0 a free lock is granted and a taken one refused at once, by exactly one request."""
    provider = bench.provider()
    lease = bench.acquire(provider, bench.scope())
    calls = Calls()
    manager = bench.manager(calls=calls)
    began_s = bench.clock.monotonic()
    answers = bench.run(
        lambda: bench.provider().try_acquire(bench.scope(), bench.owner("b"), 0.0),
        lambda: manager.lock(bench.scope(), timeout_s=0),
    )
    refused, timed_out = answers
    bench.expect_no_error([refused], "an acquire of a taken lock")
    bench.expect(refused.value is None, "the provider did not refuse a taken lock")
    said = f"the manager answered {timed_out.error or timed_out.value!r} to who asked for a taken lock"
    bench.expect(isinstance(timed_out.error, AcquireTimeout), said)
    bench.expect(len(calls.acquires) == 1, f"{len(calls.acquires)} requests instead of one")
    _expect_ended(bench, answers, began_s, 0.0, "with a timeout of 0")
    provider.release(lease)
    manager.lock(bench.scope(), timeout_s=0).release()


def _expect_ended(bench: Bench, answers: list[Any], began_s: float, after_s: float, said: str) -> None:
    for answer in answers:
        took_s = answer.ended_s - began_s
        bench.expect(after_s - 0.002 <= took_s, f"{said}: took {took_s:.3f} s")
        bench.expect_in_time(took_s, after_s, f"{said}: took {took_s:.3f} s")


@check(
    "D2", "timeout-is-kept", why="a commit's budget of time is lost where waits end early or late", mode=Mode.VIRTUAL
)
def timeout_is_kept(bench: Bench) -> None:
    """A wait of t ends at t: not before, not after. A provider that does not claim TIMED_WAIT answers at once."""
    provider = bench.provider()
    lease = bench.acquire(provider, bench.scope())
    began_s = bench.clock.monotonic()
    other, manager = bench.provider(), bench.manager()
    direct = bench.run(lambda: other.try_acquire(bench.scope(), bench.owner("b"), _SHORT_S))
    bench.expect(
        direct[0].error is None and direct[0].value is None, f"answered {direct[0].error or direct[0].value!r}"
    )
    _expect_ended(bench, direct, began_s, _SHORT_S if _waits(bench) else 0.0, "the provider's wait")
    began_s = bench.clock.monotonic()
    managed = bench.run(lambda: manager.lock(bench.scope(), timeout_s=_SHORT_S))
    bench.expect(isinstance(managed[0].error, AcquireTimeout), "the manager did not say AcquireTimeout")
    _expect_ended(bench, managed, began_s, _SHORT_S, "the manager's wait")
    provider.release(lease)


@check("D3", "never-later-than-one-call", why="a slow lock service must not stretch a bounded wait", mode=Mode.VIRTUAL)
def never_later_than_one_call(bench: Bench) -> None:
    """Even when every request is slow, the wait ends within the timeout and one request."""
    lease = bench.acquire(provider := bench.provider(), bench.scope())
    slow_s = 0.3
    calls = Calls(before_acquire=lambda: bench.clock.sleep(slow_s))
    manager = bench.manager(calls=calls)
    began_s = bench.clock.monotonic()
    answer = bench.run(lambda: manager.lock(bench.scope(), timeout_s=_SHORT_S))[0]
    bench.expect(isinstance(answer.error, AcquireTimeout), "the manager did not say AcquireTimeout")
    took_s = answer.ended_s - began_s
    bench.expect_in_time(took_s, _SHORT_S + slow_s, f"took {took_s:.3f} s")
    provider.release(lease)


@check("D4", "wakes-soon-after-release", why="every second that a free lock is not taken is lost to all writers")
def wakes_soon_after_release(bench: Bench) -> None:
    """A waiter has the lock within one pause of its release."""
    provider, manager = bench.provider(), bench.manager()
    lease = bench.acquire(provider, bench.scope())
    waiter = bench.start(lambda: manager.lock(bench.scope(), timeout_s=60))
    waiter.settle()
    provider.release(lease)
    released_s = bench.clock.monotonic()
    (answer,) = bench.finish(waiter, step_s=_PAUSE_S)
    bench.expect(isinstance(answer.value, Held), f"the waiter ended with {answer.error!r}")
    bench.expect_in_time(answer.ended_s - released_s, 0.04, f"{answer.ended_s - released_s:.3f} s later")
    answer.value.release()


@check("D5", "odd-timeouts", why="a computed timeout may come out negative or not a number", mode=Mode.VIRTUAL)
def odd_timeouts(bench: Bench) -> None:
    """Negative, NaN, infinite, huge and absent timeouts have a defined answer on a free lock, and never hang."""
    provider, manager = bench.provider(), bench.manager()
    for timeout_s in (-1.0, math.nan, math.inf, 1e300):
        answer = bench.run(lambda t=timeout_s: provider.try_acquire(bench.scope(), bench.owner(), t))[0]  # type: ignore[misc]
        defined = answer.value is None or isinstance(answer.value, Lease)
        bench.expect(
            isinstance(answer.error, ConfigError | ValueError) or (answer.error is None and defined),
            f"the provider answered {answer.error!r} to a timeout of {timeout_s}",
        )
        if isinstance(answer.value, Lease):
            provider.release(answer.value)
    for timeout_s in (-1.0, math.nan):
        with bench.expect_raises(ConfigError, f"the manager takes a timeout of {timeout_s}"):
            manager.lock(bench.scope(), timeout_s=timeout_s)
    for timeout in (math.inf, 1e300, None):
        manager.lock(bench.scope(), timeout_s=timeout).release()
    bench.expect_free(bench.scope(), "an odd timeout left the lock taken")


@check("D6", "cancelled-waiter-leaves-nothing", why="a queue with a ghost in it never moves on", mode=Mode.FORCED)
def cancelled_waiter_leaves_nothing(bench: Bench) -> None:
    """A waiter whose client is closed ends with an error, long before its time, and does not get the lock later."""
    provider = bench.provider()
    lease = bench.acquire(provider, bench.scope())
    manager = bench.manager()
    _close_while_waiting(bench, manager, lambda: manager.lock(bench.scope(), timeout_s=_LONG_S))
    if Capability.CANCEL in bench.harness.claims and _waits(bench):
        other = bench.provider()
        _close_while_waiting(bench, other, lambda: other.try_acquire(bench.scope(), bench.owner("b"), _LONG_S))
    provider.release(lease)
    bench.expect_free(bench.scope(), "a cancelled waiter holds the lock")


def _close_while_waiting(bench: Bench, client: Any, wait: Any) -> None:
    waiter = bench.start(wait)
    waiter.settle()
    bench.expect(not waiter.done(), "the waiter did not wait")
    client.close()
    closed_s = bench.clock.monotonic()
    (answer,) = bench.finish(waiter, step_s=_PAUSE_S)
    took_s = answer.ended_s - closed_s
    bench.expect_in_time(
        took_s, _LONG_S / 6, f"a wait of {_LONG_S:g} s ended {took_s:.1f} s after its client was closed"
    )
    bench.expect(isinstance(answer.error, ProviderClosed), f"the wait ended with {answer.error or answer.value!r}")


@check("D7", "interrupt-leaves-nothing", why="Ctrl-C in a waiting job must not block the others", mode=Mode.FORCED)
def interrupt_leaves_nothing(bench: Bench) -> None:
    """A wait that is interrupted leaves neither a place in a queue nor a lock behind."""
    lease = bench.acquire(provider := bench.provider(), bench.scope())
    manager = bench.manager(clock=(clock := _InterruptedClock(bench.clock)))
    answer = bench.run(lambda: _interrupted_lock(manager, clock, bench))[0]
    bench.expect(isinstance(answer.error, KeyboardInterrupt), f"the interrupt came out as {answer.error!r}")
    provider.release(lease)
    bench.expect_free(bench.scope(), "an interrupted waiter holds the lock")
    manager.lock(bench.scope(), timeout_s=0).release()


class _InterruptedClock(OwnClock):
    """Interrupts the first wait of one thread."""

    victim: threading.Thread | None = None

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        if self.victim is threading.current_thread():
            self.victim = None
            raise KeyboardInterrupt
        return super().wait(event, timeout_s)


def _interrupted_lock(manager: LockManager, clock: _InterruptedClock, bench: Bench) -> Held:
    clock.victim = threading.current_thread()
    return manager.lock(bench.scope(), timeout_s=60)


@check("D8", "close-ends-a-wait", why="a job that shuts down must not hang on a lock", mode=Mode.FORCED)
def close_ends_a_wait(bench: Bench) -> None:
    """Closing the manager ends all its waits with `ProviderClosed`, those in the local queue among them."""
    lease = bench.acquire(provider := bench.provider(), bench.scope())
    manager = bench.manager()
    waiters = bench.start(*[lambda: manager.lock(bench.scope(), timeout_s=60)] * 3)
    waiters.settle()
    manager.close()
    ends = [answer.error or answer.value for answer in bench.finish(waiters, step_s=_PAUSE_S)]
    closed = all(isinstance(end, ProviderClosed) for end in ends)
    bench.expect(closed, f"the waits ended with {', '.join(map(repr, ends))}")
    provider.release(lease)
    bench.expect_free(bench.scope(), "a wait that was ended holds the lock")


@check(
    "D9",
    "late-grant-is-no-orphan",
    why="a lock granted to somebody who gave up is held by nobody, for ever",
    mode=Mode.FORCED,
)
def late_grant_is_no_orphan(bench: Bench) -> None:
    """A request that is answered after its caller's time is held by the caller or by nobody."""
    for round_number in range(8):
        scope = bench.scope(round_number)
        lease = bench.acquire(provider := bench.provider(), scope)
        other = bench.provider()
        waiter = bench.start(lambda o=other, s=scope: o.try_acquire(s, bench.owner("b"), 0.1))  # type: ignore[misc]
        waiter.settle()
        bench.let_pass(0.1)
        provider.release(lease)
        (answer,) = bench.finish(waiter, step_s=_PAUSE_S)
        bench.expect_no_error([answer], "a wait for a lock that became free late")
        if isinstance(answer.value, Lease):
            other.release(answer.value)
        bench.expect_free(scope, "a waiter whose time was over holds the lock")
    late = Calls(before_acquire=lambda: bench.clock.sleep(0.2))
    manager = bench.manager(calls=late)
    answer = bench.run(lambda: manager.lock(bench.scope(99), timeout_s=0.1))[0]
    if isinstance(answer.value, Held):
        answer.value.release()
    bench.expect_free(bench.scope(99), "a lock granted after the manager's time is held by nobody")


def _refused(bench: Bench, **options: object) -> tuple[Calls, Any, float]:
    """What a manager asks of a lock that stays taken: its calls, its answer, and how long it took."""
    held = bench.manager().lock(bench.scope())  # renewed, however long the kit takes
    calls = Calls()
    manager = bench.manager({f"{_LOCK}{name}": value for name, value in options.items()}, calls=calls)
    began_s = bench.clock.monotonic()
    answer = bench.run(lambda: manager.lock(bench.scope()))[0]
    bench.expect(isinstance(answer.error, AcquireTimeout), f"ended with {answer.error or answer.value!r}")
    held.release()
    return calls, answer.error, answer.ended_s - began_s


def _attempt_ms(bench: Bench) -> int:
    """How long one attempt may take where requests are counted; who waits in a request waits for all of it."""
    return 30 if _waits(bench) else _LONG_MS


@check(
    "D10a", "attempts-are-retries-plus-one", why="Hudi's client.num_retries must mean what it says", mode=Mode.VIRTUAL
)
def attempts_are_retries_plus_one(bench: Bench) -> None:
    """A lock that stays taken is tried exactly client.num_retries + 1 times."""
    for retries in (0, 1, 3):
        options = {"client.num_retries": retries, "num_retries": 0, "wait_time_ms": _attempt_ms(bench)}
        calls, error, _ = _refused(bench, **options)
        bench.expect(error.attempts == retries + 1, f"{error.attempts} attempts with {retries} retries")
        bench.expect(len(calls.acquires) == retries + 1, f"{len(calls.acquires)} requests with {retries} retries")


@check(
    "D10b", "native-times-client-retries", why="both kinds of retries multiply, as Hudi documents", mode=Mode.VIRTUAL
)
def native_times_client_retries(bench: Bench) -> None:
    """A polled provider is asked (num_retries + 1) times in each of (client.num_retries + 1) attempts; else once."""
    for native, client in ((0, 2), (2, 0), (2, 2)):
        options = {
            "num_retries": native,
            "client.num_retries": client,
            "wait_time_ms": _attempt_ms(bench),
        }
        calls, _, _ = _refused(bench, **options)
        expected = (client + 1) * (1 if _waits(bench) else native + 1)
        bench.expect(len(calls.acquires) == expected, f"{len(calls.acquires)} requests instead of {expected}")


@check("D10c", "wait-time-bounds-one-attempt", why="wait_time_ms is the longest wait of one attempt", mode=Mode.VIRTUAL)
def wait_time_bounds_one_attempt(bench: Bench) -> None:
    """One attempt lasts wait_time_ms, however many requests are allowed in it; n attempts last n times that."""
    for retries in (0, 2):
        options = {"wait_time_ms": 300, "num_retries": 100_000, "client.num_retries": retries}
        _, _, took_s = _refused(bench, **options, **{"client.wait_time_ms_between_retry": 0})
        said = f"{took_s:.3f} s for {retries + 1} attempts"
        bench.expect((retries + 1) * 0.3 - 0.01 <= took_s, said)
        bench.expect_in_time(took_s, (retries + 1) * 0.3 + retries * bench.slack_s, said)


@check("D10d", "permanent-error-is-one-attempt", why="a wrong permission must be told at once, not after an hour")
def permanent_error_is_one_attempt(bench: Bench) -> None:
    """An error that no retry heals ends the wait after one request, and the client is usable afterwards."""
    calls = Calls(answers=[BackendRefused("planted by the conformance kit: no permission")])
    manager = bench.manager({f"{_LOCK}client.num_retries": 5}, calls=calls)
    answer = bench.run(lambda: manager.lock(bench.scope()))[0]
    bench.expect(isinstance(answer.error, BackendRefused), f"came out as {answer.error or answer.value!r}")
    bench.expect(len(calls.acquires) == 1, f"{len(calls.acquires)} requests after a permanent error")
    manager.lock(bench.scope(), timeout_s=0).release()


@check(
    "D10e",
    "pauses-are-bounded-and-jittered",
    why="contenders in step storm the lock service together",
    mode=Mode.VIRTUAL,
)
def pauses_are_bounded_and_jittered(bench: Bench) -> None:
    """Pauses lie between their least and longest value and differ from each other."""
    options = {"wait_time_ms_between_retry": 100, "max_wait_time_ms_between_retry": 400, "num_retries": 12}
    calls, _, _ = _refused(bench, **options, wait_time_ms=60_000 if not _waits(bench) else 30)
    gaps = [after[0] - before[0] for before, after in pairwise(calls.acquires)]
    if _waits(bench):
        bench.expect(not gaps, "a provider that waits by itself was polled")
        return
    said = f"pauses of {min(gaps)} to {max(gaps)} s"
    bench.expect(min(gaps) >= 0.1 - 0.002, said)
    bench.expect_in_time(max(gaps), 0.4, said)
    bench.expect(len(gaps) == 12, f"{len(gaps)} pauses instead of 12")
    bench.expect(len({round(gap, 6) for gap in gaps}) > 6, "the pauses do not differ")


@check(
    "D11",
    "wall-clock-jumps-change-nothing",
    why="a corrected clock must neither end nor stretch a wait",
    mode=Mode.VIRTUAL,
)
def wall_clock_jumps_change_nothing(bench: Bench) -> None:
    """A wall clock that jumps during a wait changes neither its length nor its outcome.

    It jumps an hour ahead, and back in another wait; five seconds where NEEDS_CLOCK_SYNC is claimed.
    """
    lease = bench.acquire(provider := bench.provider(), bench.scope())
    far_ms = 5_000 if Capability.NEEDS_CLOCK_SYNC in bench.harness.claims else 3_600_000
    for by_ms in (far_ms, -far_ms):
        _wait_while_it_jumps(bench, _JumpingClock(bench.clock, by_ms))
    provider.release(lease)


def _wait_while_it_jumps(bench: Bench, jumping: Clock) -> None:
    other, manager = bench.provider(clock=jumping), bench.manager(clock=jumping)
    calls: list[Callable[[], object]] = [lambda: manager.lock(bench.scope(), timeout_s=_SHORT_S)]
    if _waits(bench):
        calls.append(lambda: other.try_acquire(bench.scope(), bench.owner("b"), _SHORT_S))
    began_s = bench.clock.monotonic()
    answers = bench.run(*calls)
    bench.expect(all(answer.value is None for answer in answers), "a jump of the wall clock granted a taken lock")
    _expect_ended(bench, answers, began_s, _SHORT_S, "with a jumping wall clock")


class _JumpingClock(OwnClock):
    """Its wall clock jumps once, a quarter of the wait after it was made."""

    def __init__(self, base: Clock, by_ms: int) -> None:
        super().__init__(base)
        self._by_ms = by_ms
        self._jumps_s = base.monotonic() + _SHORT_S / 4

    def wall_ms(self) -> int:
        return super().wall_ms() + (self._by_ms if self.monotonic() >= self._jumps_s else 0)
