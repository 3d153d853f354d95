"""Group F: tokens that tell a late holder from the present one."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final
from unittest import mock

from hudi_locks import Capability, Lease, LockProvider, LockScope
from hudi_locks.storage import MemoryStorage
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Inapplicable, Level, Mode, NotRun, Violation, check
from hudi_locks_conformance.clocks import OwnClock
from hudi_locks_conformance.leases import lease_length_s, leased_options, wait_until
from hudi_locks_conformance.register import FencedRegister
from hudi_locks_conformance.storm import reaches_beyond_process, run_in_process, run_storm

_WHY: Final = "a holder that lost the lock without knowing must be recognised where it writes"
_HOLDS: Final = 10
_SKEW_S: Final = 2
"""Within what a provider must survive whose leases are judged by wall clocks."""
_TIMES: Final = ("20240101000000000", "20240101000000001")
_ACQUIRE_AND_TELL: Final = """
import json, sys
from hudi_locks import LockManager, LockScope
provider, options, partition, file_id = json.loads(sys.argv[1])
with LockManager(provider, options).lock(LockScope.file_group(partition, file_id), timeout_s=10) as held:
    print(held.token)
"""


def _token(lease: Lease) -> int:
    if not isinstance(lease.token, int) or isinstance(lease.token, bool):
        raise Violation(f"a lease carries the token {lease.token!r}, which is no number, although FENCING is claimed")
    return lease.token


def _hold_once(bench: Bench, provider: LockProvider, scope: LockScope) -> int:
    lease = bench.acquire(provider, scope)
    provider.release(lease)
    return _token(lease)


def _expect_growth(bench: Bench, tokens: list[int], between: str) -> None:
    wrong = [(before, after) for before, after in itertools.pairwise(tokens) if after <= before]
    bench.expect(not wrong, f"tokens do not grow {between}: {wrong[:1]} among {tokens}")


@check("F1", "every-hold-has-a-token", why=_WHY, level=Level.FENCING, needs=[Capability.FENCING])
def every_hold_has_a_token(bench: Bench) -> None:
    """Every lease carries a number, the table's and each file group's; also through the manager."""
    provider = bench.provider()
    for scope in bench.scopes():
        _hold_once(bench, provider, scope)
    with bench.manager().lock(bench.scope(1)) as held:
        bench.expect(isinstance(held.token, int), f"a hold of the manager carries the token {held.token!r}")


@check("F2a", "tokens-grow-over-holds", why=_WHY, level=Level.FENCING, needs=[Capability.FENCING])
def tokens_grow_over_holds(bench: Bench) -> None:
    """Each hold has a greater token than the one before it, of one client and of several in turn."""
    clients = [bench.provider(), bench.provider()]
    for scope in bench.scopes():
        tokens = [_hold_once(bench, clients[number // 2 % 2], scope) for number in range(_HOLDS)]
        _expect_growth(bench, tokens, "from hold to hold")


@check(
    "F2b",
    "tokens-grow-over-processes",
    why=_WHY,
    level=Level.FENCING,
    mode=Mode.REAL,
    needs=[Capability.FENCING],
    beyond_process=True,
)
def tokens_grow_over_processes(bench: Bench) -> None:
    """A process that was started later gets greater tokens."""
    scope, tokens = bench.scope(), []
    arguments = json.dumps([bench.harness.name, bench.harness.options, scope.partition, scope.file_id])
    for _ in range(2):
        tokens.append(_hold_once(bench, bench.provider(), scope))
        tokens.append(int(run_in_process(["-c", _ACQUIRE_AND_TELL, arguments])))
    _expect_growth(bench, tokens, "from process to process")


@check("F2c", "tokens-grow-over-a-deleted-record", why=_WHY, level=Level.FENCING, needs=[Capability.FENCING])
def tokens_grow_over_a_deleted_record(bench: Bench) -> None:
    """After the record was deleted under its holder the next hold has a greater token."""
    bench.need_hook("remove")
    lost, successor = bench.provider(), bench.provider()
    first = _token(bench.acquire(lost, bench.scope()))
    bench.hook(lost, "remove")(bench.scope())
    _expect_growth(bench, [first, _hold_once(bench, successor, bench.scope())], "over a deleted record")


@check(
    "F2d",
    "tokens-grow-over-a-broken-hold",
    why=_WHY,
    level=Level.FENCING,
    needs=[Capability.FENCING, Capability.BREAK, Capability.OWNER_INFO],
)
def tokens_grow_over_a_broken_hold(bench: Bench) -> None:
    """After an administrator removed a hold the next one has a greater token."""
    lost, successor = bench.provider(), bench.provider()
    first = _token(bench.acquire(lost, bench.scope()))
    holder = successor.holder(bench.scope())
    if holder is None:
        raise Violation("a held lock has no holder")
    bench.expect(successor.break_if(bench.scope(), holder.token), "break_if removed nothing")
    _expect_growth(bench, [first, _hold_once(bench, successor, bench.scope())], "over a hold that was broken")


@check(
    "F2e",
    "tokens-grow-over-a-takeover",
    why=_WHY,
    level=Level.FENCING,
    mode=Mode.VIRTUAL,
    needs=[Capability.FENCING, Capability.LEASE],
)
def tokens_grow_over_a_takeover(bench: Bench) -> None:
    """Whoever takes a lock over from a holder whose lease is over gets a greater token."""
    if Capability.SESSION in bench.harness.claims:
        raise Inapplicable("the lock service ends a session, and no contender takes it over")
    options = leased_options(bench)
    dead, taker = bench.provider(options), bench.provider(options)
    first = bench.acquire(dead, bench.scope())
    lease_s, taken = lease_length_s(bench, first), list[Lease]()

    def ask() -> bool:
        taken.extend(filter(None, [taker.try_acquire(bench.scope(), bench.owner("b"), 0.0)]))
        return bool(taken)

    bench.expect(wait_until(bench, ask, step_s=lease_s * 1.1, steps=3), "a dead holder's lock never became free")
    _expect_growth(bench, [_token(first), _token(taken[0])], "over a takeover")


@check("F8", "tokens-come-from-no-clock", why=_WHY, level=Level.FENCING, needs=[Capability.FENCING])
def tokens_come_from_no_clock(bench: Bench) -> None:
    """A later hold has a greater token also where the wall clock of its client is behind that of the one before."""
    tokens = []
    for skew_s in (_SKEW_S, -_SKEW_S):
        client = bench.provider(clock=OwnClock(bench.clock, skew_ms=1000 * skew_s))
        with _shifted(skew_s):
            tokens.append(_hold_once(bench, client, bench.scope()))
    _expect_growth(bench, tokens, f"over a wall clock that is {2 * _SKEW_S} s behind")


@contextmanager
def _shifted(by_s: int) -> Iterator[None]:
    """Move Python's own wall clock, for providers that ask it and not theirs."""
    told_s = partial(_add, time.time, by_s)  # noqa: TID251  # to be replaced
    told_ns = partial(_add, time.time_ns, by_s * 1_000_000_000)
    with mock.patch("time.time", told_s), mock.patch("time.time_ns", told_ns):
        yield


def _add(tell: Callable[[], float], more: int) -> float:
    return tell() + more


@check(
    "F3",
    "one-hold-one-token",
    why="a store that saw the first token would refuse the second half of one write",
    level=Level.FENCING,
    needs=[Capability.FENCING],
)
def one_hold_one_token(bench: Bench) -> None:
    """A renewed lease keeps its token."""
    if Capability.RENEWAL not in bench.harness.claims:
        return
    provider = bench.provider()
    lease = bench.acquire(provider, bench.scope())
    first = _token(lease)
    for _ in range(3):
        lease = provider.renew(lease)
        bench.expect(lease.token == first, f"the token changed from {first} to {lease.token} by a renewal")
    provider.release(lease)


@check("F4", "late-holder-is-refused", why=_WHY, level=Level.FENCING, needs=[Capability.FENCING])
def late_holder_is_refused(bench: Bench) -> None:
    """A store that compares tokens takes the successor's write, and refuses the one that comes after it from before."""
    bench.need_hook("remove")
    register, late, successor = FencedRegister(), bench.provider(), bench.provider()
    before = _token(bench.acquire(late, bench.scope()))
    bench.expect(register.write(before), "the store refused the first holder")
    bench.hook(late, "remove")(bench.scope())
    after = _token(bench.acquire(successor, bench.scope(), "b"))
    bench.expect(register.write(after), f"the store refused the successor: {after} after {before}")
    bench.expect(not register.write(before), "the store took the write of a holder that had lost the lock")


@check("F6", "tokens-order-a-storm", why=_WHY, level=Level.FENCING, mode=Mode.REAL, needs=[Capability.FENCING])
def tokens_order_a_storm(bench: Bench) -> None:
    """Among many contenders tokens grow in the order of the holds."""
    storm = run_storm(bench, beyond_process=reaches_beyond_process(bench))
    granted = [one for one in storm.history.operations if (one.f, one.type) == ("acquire", "ok")]
    if not granted:
        raise NotRun("nobody held the lock in the storm")
    tokens = [one.token for one in granted if one.token is not None]
    bench.expect(len(tokens) == len(granted), "a hold of the storm has no token")
    _expect_growth(bench, tokens, "in the order of a storm's holds")


@check(
    "F7",
    "what-remains-without-fencing",
    why="without a token only the timeline can stop a writer that lost the lock without knowing",
    level=Level.EXTRA,
)
def what_remains_without_fencing(bench: Bench) -> None:
    """Without FENCING, of two writers who both believe that they hold only one gets the next place in the claim log.

    Tells what a late writer may do besides. Where FENCING is claimed F4 judges instead.
    """
    if Capability.FENCING in bench.harness.claims:
        bench.note("claims FENCING: a store that compares tokens refuses a late holder's write, as F4 shows")
        return
    late, successor = bench.provider(), bench.provider()
    bench.acquire(late, bench.scope())
    bench.hook(late, "remove")(bench.scope())
    bench.acquire(successor, bench.scope(), "b")
    storage = MemoryStorage(bench.clock)
    refused = [_publish_both(bench, storage, late_is_first=first) for first in (False, True)]
    bench.expect(refused == [True, True], "the claim log gave one place to two writers")
    free = storage.create_if_absent(".hoodie/timeline/20240101000000000_20240101000000001.commit", b"of a late holder")
    bench.note(
        f"without FENCING: {len(refused)} of {len(refused)} late writes met the successor's in the claim log, and one"
        f" was refused; an instant under a name of its own, as JVM Hudi writes it, is {'taken' if free else 'refused'}"
    )


def _publish_both(bench: Bench, storage: MemoryStorage, *, late_is_first: bool) -> bool:
    """Whether the second of two writers, who both saw the same end of the claim log, is refused."""
    from hudi_locks.format.claim import Claim, ClaimKind  # these bring Arrow along, which no other check needs
    from hudi_locks.timeline.claims import ClaimLog

    logs = [ClaimLog(storage, bench.clock) for _ in range(2)]
    drafts = [
        log.draft(log.read_head(), Claim(ClaimKind.PUBLISH, time, "commit", time))
        for log, time in zip(logs, _TIMES, strict=True)
    ]
    order = (0, 1) if late_is_first else (1, 0)
    first, second = (logs[place].append(drafts[place]) for place in order)
    return first is not None and second is None
