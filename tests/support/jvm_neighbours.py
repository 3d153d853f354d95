"""What every lock provider is asked for beside a JVM holder of the same lock, whatever service they meet at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pytest
from hudi_locks_conformance.history import find_overlaps
from hudi_locks_conformance.partners import JvmContender, Partner, run_mixed_storm
from waiting import until

from hudi_locks import Holder, Lease, LockLost, LockManager, LockProvider, LockScope, Owner, SystemClock

__all__ = [
    "ADA",
    "TABLE",
    "expect_no_overlap",
    "expect_our_death_noticed",
    "expect_our_hold_kept",
    "expect_their_hold_kept",
    "makes",
    "poll",
]

TABLE = LockScope.table()
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ADA = Owner("ada", "host-a", 11, "main", "etl", trace=TRACE)
_HOLDS, _OURS = 15, 4
_START_S = 60
AnyProvider = TypeVar("AnyProvider", bound=LockProvider)


@contextmanager
def makes(kind: type[AnyProvider], options: Mapping[str, str]) -> Iterator[Callable[..., AnyProvider]]:
    """A maker of clients, given more options by name; all are closed at the end."""
    made: list[AnyProvider] = []

    def make_one(**more: str) -> AnyProvider:
        made.append(kind({**options, **more}, clock=SystemClock(), on_lost=lambda *_: None))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


def poll(provider: LockProvider, patience_s: float) -> Lease | None:
    """Ask for the table as a manager does."""
    got: list[Lease | None] = [None]

    def ask() -> bool:
        got[0] = provider.try_acquire(TABLE, ADA, 0)
        return got[0] is not None

    until(ask, patience_s, every_s=0.05)
    return got[0]


def expect_our_hold_kept(name: str, options: Mapping[str, str], partner: Partner, *, watch_s: float) -> None:
    """It stays outside for `watch_s` seconds, longer than our lease, and comes in after our release."""
    with LockManager(name, options) as manager:
        held = manager.lock()
        with JvmContender(partner, "hold", 0.1) as theirs:
            assert not theirs.wait_held(watch_s), "it entered although we renewed our lease"
            held.verify()
            freeing_s = SystemClock().monotonic()
            held.release()
            assert theirs.wait_held(_START_S)
            (hold,) = theirs.finish().holds()
    assert hold.begin_ns / 1e9 >= freeing_s


def expect_their_hold_kept(provider: LockProvider, partner: Partner, *, hold_s: float) -> Holder:
    """We stay outside until its release; whom we took for the holder meanwhile."""
    with JvmContender(partner, "hold", hold_s, until_told=True) as theirs:
        assert theirs.wait_held(_START_S)
        holder = provider.holder(TABLE)
        theirs.let_go()
        assert poll(provider, _START_S) is not None
        acquired_ns = SystemClock().monotonic() * 1e9
        (hold,) = theirs.finish().holds()
    assert acquired_ns >= hold.end_ns
    assert holder is not None
    assert holder.owner.host
    return holder


def expect_our_death_noticed(provider: LockProvider, partner: Partner) -> float:
    """It enters after a lease of ours that nobody renews, and we learn of it; seconds from our grant to its hold."""
    lease = provider.try_acquire(TABLE, ADA, 0)
    assert lease is not None
    began_s = SystemClock().monotonic()
    with JvmContender(partner, "hold", 0.1) as theirs:
        assert theirs.wait_held(_START_S)
        held_s = SystemClock().monotonic() - began_s
        with pytest.raises(LockLost):
            provider.renew(lease)
        provider.release(lease)
        assert len(theirs.finish().holds()) == 1
    return held_s


def expect_no_overlap(name: str, options: Mapping[str, str], partners: Sequence[Partner]) -> None:
    """Processes of both kinds never hold it at one time, and all get it as often as they want it."""
    history = run_mixed_storm(name, options, partners, ours=_OURS, holds=_HOLDS)
    assert len(history.holds()) == (_OURS + len(partners)) * _HOLDS
    assert find_overlaps(history) == []
