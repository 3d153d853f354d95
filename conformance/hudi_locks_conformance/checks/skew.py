"""Group I: clocks that are wrong, each client's in its own way.

What NEEDS_CLOCK_SYNC must survive is what the manager's safety margin covers: a tenth of the lease, five seconds at
most. What CLOCK_FREE must survive is anything.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hudi_locks import Capability, Held, Lease, LockError, LockLost, LockProvider, LockScope, Owner
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, Violation, check
from hudi_locks_conformance.clocks import OwnClock
from hudi_locks_conformance.leases import (
    advance,
    hold_lease,
    is_granted,
    is_lost,
    lease_length_s,
    leased_options,
    watch_takeover,
)
from hudi_locks_conformance.tracing import Calls

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_MARGIN_PART: Final = 0.1
_MOST_MARGIN_S: Final = 5.0
_COVERED: Final = 0.9
"""Which part of the margin is used up: the rest is for the steps of the kit."""
_DRIFT: Final = 0.1
_STEPS: Final = 24
_WHY: Final = "no two hosts agree on the time, and some are far off"


def _margin_s(lease_s: float) -> float:
    return _COVERED * min(_MARGIN_PART * lease_s, _MOST_MARGIN_S)


def _limit_ms(bench: Bench, lease_s: float) -> int:
    """Which skew the claims say is survived."""
    if Capability.CLOCK_FREE in bench.harness.claims:
        return _DAY_MS
    bench.expect(
        Capability.NEEDS_CLOCK_SYNC in bench.harness.claims,
        "claims LEASE, but neither NEEDS_CLOCK_SYNC nor CLOCK_FREE: nobody knows which skew it survives",
    )
    return int(1000 * _margin_s(lease_s))


def _expect_kept(bench: Bench, held: Held, contender: LockProvider, said: str) -> None:
    bench.expect(not is_granted(bench, contender, held.scope), f"a contender got the lock of a living holder {said}")
    bench.expect(not is_lost(held), f"a living holder lost the lock {said}")


def _live(bench: Bench, held: Held, contender: LockProvider, *, calls: Calls, lease_s: float, said: str) -> None:
    """Two leases of a living holder; a moment where the lock service keeps a time of its own."""
    for _ in range(4):
        _expect_kept(bench, held, contender, said)
        if bench.is_virtual:
            advance(bench, lease_s / 2, calls=calls)


@check(
    "I1",
    "skewed-contender-waits",
    why=_WHY,
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def skewed_contender_waits(bench: Bench) -> None:
    """A contender whose wall clock is off by what is survived enters neither beside a living holder, nor too early.

    Too early is before a holder whose renewals fail knows that it lost the lock.
    """
    probe = bench.provider(leased_options(bench))
    lease_s = lease_length_s(bench, bench.acquire(probe, bench.scope(9)))
    limit_ms = _limit_ms(bench, lease_s)
    drawn = [round(bench.rng.uniform(-limit_ms, limit_ms)) for _ in range(2)]
    for number, skew_ms in enumerate((limit_ms, -limit_ms, *drawn)):
        bench.retire()
        calls, clock = Calls(), OwnClock(bench.clock, skew_ms=skew_ms)
        contender = bench.provider(leased_options(bench), clock=clock)
        held = hold_lease(bench, calls, number=number)
        said = f"by a wall clock that is {skew_ms} ms ahead"
        _live(bench, held, contender, calls=calls, lease_s=lease_s, said=said)
        if bench.is_virtual:
            watch_takeover(bench, held, contender, calls=calls, lease_s=lease_s)
        else:
            held.release()
            bench.expect(is_granted(bench, contender, held.scope), f"a free lock was not granted {said}")


@check(
    "I2",
    "wrong-clock-is-noticed",
    why="a host with a wrong clock robs the others, and they must not publish after it",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL, Capability.NEEDS_CLOCK_SYNC],
)
def wrong_clock_is_noticed(bench: Bench) -> None:
    """Whoever was robbed by a contender whose wall clock is an hour ahead learns it by the next renewal, at the latest.

    Where FENCING is claimed the robber's token is greater.
    """
    robber = bench.provider(leased_options(bench), clock=OwnClock(bench.clock, skew_ms=_HOUR_MS))
    held = hold_lease(bench, Calls())
    robbed = robber.try_acquire(bench.scope(), bench.owner("b"), 0.0)
    if robbed is None:
        bench.note("a contender whose clock is an hour ahead is kept out")
        held.verify()
        return
    with bench.expect_raises(LockLost, "a holder that was robbed renewed the lock of the robber"):
        held.verify()
    bench.expect(is_lost(held), "a holder that was robbed believes that it holds")
    if Capability.FENCING in bench.harness.claims:
        bench.expect(
            (robbed.token or 0) > (held.token or 0), f"the robber's token is {robbed.token} after {held.token}"
        )


@check(
    "I3",
    "drifting-clocks",
    why="a clock in a hot rack or a virtual machine runs too fast or too slow",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def drifting_clocks(bench: Bench) -> None:
    """Monotonic clocks a tenth too fast or too slow cost a living holder nothing.

    A holder whose renewals fail knows in time if its clock is not slower than the safety margin covers.
    """
    for number, drift in enumerate((_DRIFT, -_DRIFT)):
        bench.retire()
        calls, own = Calls(), OwnClock(bench.clock, rate=1 - drift)
        contender = bench.provider(leased_options(bench), clock=OwnClock(bench.clock, rate=1 + drift))
        held = hold_lease(bench, calls, number=number, clock=own)
        lease_s = lease_length_s(bench, held.lease, own)
        _live(bench, held, contender, calls=calls, lease_s=lease_s, said=f"while clocks drift by {2 * drift:.0%}")
    if bench.is_virtual:
        bench.retire()
        calls, own = Calls(), OwnClock(bench.clock, rate=1 - _margin_s(lease_s) / lease_s)
        held = hold_lease(bench, calls, number=2, clock=own)
        watch_takeover(bench, held, bench.provider(leased_options(bench)), calls=calls, lease_s=lease_s)


@check(
    "I4",
    "holder-whose-clock-jumps",
    why="a clock that was corrected must not end a commit, nor let another one in",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.RENEWAL],
)
def holder_whose_clock_jumps(bench: Bench) -> None:
    """A wall clock that jumps an hour ahead or back ends no hold; a jump within what is survived lets nobody in."""
    calls, clock = Calls(), OwnClock(bench.clock)
    held = hold_lease(bench, calls, clock=clock)
    contender = bench.provider(leased_options(bench))
    lease_s = lease_length_s(bench, held.lease, clock)
    for by_ms in (_HOUR_MS, -2 * _HOUR_MS, _HOUR_MS):
        clock.jump_wall(by_ms)
        bench.expect(not is_lost(held), f"a jump of the wall clock by {by_ms} ms ended the hold")
        held.verify()
    limit_ms = _limit_ms(bench, lease_s)
    for by_ms in (limit_ms, -2 * limit_ms):
        clock.jump_wall(by_ms)
        said = f"after its wall clock had jumped by {by_ms} ms"
        _live(bench, held, contender, calls=calls, lease_s=lease_s, said=said)
    if bench.is_virtual:
        watch_takeover(bench, held, contender, calls=calls, lease_s=lease_s)


@check(
    "I5",
    "time-zones-do-not-matter",
    why="a record in local time is hours wrong for everybody else, and for its writer when summer ends",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE],
)
def time_zones_do_not_matter(bench: Bench) -> None:
    """A lock is as taken, and told to be as old, in the zone fourteen hours ahead as in the one twelve hours behind."""
    zones = ("EAST-14", "WEST+12")
    for number, (own, other) in enumerate((zones, zones[::-1])):
        scope, contender = bench.scope(number), bench.provider(leased_options(bench))
        with _in_zone(own):
            bench.acquire(bench.provider(leased_options(bench)), scope)
            told = _tell(contender, scope)
        with _in_zone(other):
            bench.expect(not is_granted(bench, contender, scope), f"the lock was granted in the zone {other}")
            bench.expect(
                _tell(contender, scope) == told, f"the holder's times differ between the zones {own} and {other}"
            )


def _tell(client: LockProvider, scope: LockScope) -> list[int | None]:
    """When the lock was acquired, and in how many minutes others may have it, as far as is told."""
    holder = client.holder(scope)
    if holder is None:
        return []
    minutes = None if holder.expires_in_ms is None else round(holder.expires_in_ms / 60_000)
    return [holder.since_ms, minutes]


@contextmanager
def _in_zone(name: str) -> Iterator[None]:
    """This process in another time zone, as long as the block lasts."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


@check(
    "I6",
    "expiry-is-told-by-no-wall-clock",
    why="a person whose laptop is an hour ahead must not be told that a living holder is dead",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.CLOCK_FREE, Capability.OWNER_INFO],
)
def expiry_is_told_by_no_wall_clock(bench: Bench) -> None:
    """A client whose wall clock is an hour off tells the same time until others may take over."""
    lease_s = lease_length_s(bench, bench.acquire(bench.provider(leased_options(bench)), bench.scope()))
    told: list[int | None] = []
    for skew_ms in (0, _HOUR_MS, -_HOUR_MS):
        holder = bench.provider(clock=OwnClock(bench.clock, skew_ms=skew_ms)).holder(bench.scope())
        if holder is None:
            raise Violation(f"a held lock has no holder for a client whose clock is {skew_ms} ms ahead")
        told.append(holder.expires_in_ms)
    known = [left_ms for left_ms in told if left_ms is not None]
    same = len(known) in (0, len(told)) and max(known, default=0) - min(known, default=0) <= lease_s * 500
    bench.expect(same, f"told {told} ms by clocks that are right, an hour ahead, and an hour behind")


@check(
    "I7",
    "any-skew-same-result",
    why="what is claimed to need no clock must not look at one",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE, Capability.CLOCK_FREE],
)
def any_skew_same_result(bench: Bench) -> None:
    """Two clients get the same answers to the same requests, whatever their wall clocks say; all drawn by the seed."""
    probe = bench.provider(leased_options(bench))
    lease_s = lease_length_s(bench, bench.acquire(probe, bench.scope(9)))
    script = [_draw_step(bench, lease_s) for _ in range(_STEPS)]
    right = _play(bench, script, (0, 0), 0)
    for number in range(1, 4):
        skews = (bench.rng.randint(-_DAY_MS, _DAY_MS), bench.rng.randint(-_DAY_MS, _DAY_MS))
        found = _play(bench, script, skews, number)
        bench.expect(found == right, f"with wall clocks {skews} ms ahead: {found} instead of {right}")


_Step = tuple[str, int, float]


def _draw_step(bench: Bench, lease_s: float) -> _Step:
    """What is asked, of which client, and how much time passes before it."""
    pause_s = bench.rng.choice((0.0, 0.3, 0.6, 1.2)) * lease_s if bench.is_virtual else 0.0
    return bench.rng.choice(("acquire", "acquire", "renew", "release")), bench.rng.randrange(2), pause_s


def _play(bench: Bench, script: list[_Step], skews: tuple[int, int], number: int) -> list[str]:
    """The answers of two clients with these skews."""
    clients = [bench.provider(leased_options(bench), clock=OwnClock(bench.clock, skew_ms=skew)) for skew in skews]
    leases: list[Lease | None] = [None, None]
    answers: list[str] = []
    for verb, who, pause_s in script:
        bench.let_pass(pause_s)
        try:
            leases[who] = _ask(clients[who], verb, leases[who], scope=bench.scope(number), owner=bench.owner(str(who)))
            answers.append("granted" if leases[who] else "none")
        except LockError as error:
            answers.append(type(error).__name__)
    return answers


def _ask(client: LockProvider, verb: str, lease: Lease | None, *, scope: LockScope, owner: Owner) -> Lease | None:
    """What the client has of the lock after one request."""
    if verb == "acquire":
        return client.try_acquire(scope, owner, 0.0) or lease
    if lease is None:
        return None
    if verb == "renew":
        return client.renew(lease)
    client.release(lease)
    return None
