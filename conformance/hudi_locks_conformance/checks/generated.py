"""Group N: walks and interleavings that a seed draws, which find what nobody thought of."""

from __future__ import annotations

import itertools
from typing import Final

from hudi_locks import Capability, LockProvider, LockScope
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, Violation, check
from hudi_locks_conformance.faults.meddler import Meddler
from hudi_locks_conformance.faults.scheduler import Scheduler
from hudi_locks_conformance.history import find_overlaps
from hudi_locks_conformance.machine import Machine

_WALKS: Final = 6
_STEPS: Final = 40
_SCHEDULES: Final = 12
_CLIENTS: Final = ("a", "b", "c")
_TRIES: Final = 4
_WHY: Final = "the faults that cost data are those of orders that nobody tried"


@check("N1", "random-walks", why=_WHY, level=Level.EXTRA, mode=Mode.VIRTUAL, beyond_process=True)
def random_walks(bench: Bench) -> None:
    """Whatever clients do, at most one holds validly, tokens grow, and what was let go of is granted.

    They acquire, renew, release and close; where the time is virtual, also let time pass, lose and regain their links,
    and have their leases ended. The order is the seed's.
    """
    for number in range(1, _WALKS + 1):
        Machine(bench, bench.scope(number), number).walk(_STEPS)


@check("N2", "random-interleavings", why=_WHY, level=Level.EXTRA, mode=Mode.FORCED, beyond_process=True)
def random_interleavings(bench: Bench) -> None:
    """However the requests of three clients are interleaved, holds never overlap, and tokens grow.

    One client goes on at a time, by one request; the order is the seed's.
    """
    bench.need_hook("tamper")
    clients = {name: Meddler() for name in _CLIENTS}
    providers = {name: meddler.watch(bench, bench.provider()) for name, meddler in clients.items()}
    for name, provider in providers.items():
        provider.release(bench.acquire(provider, bench.scope(), name))  # what is done once only is done
    for number in range(1, _SCHEDULES + 1):
        _interleave(bench, clients, providers, number)


def _interleave(bench: Bench, clients: dict[str, Meddler], providers: dict[str, LockProvider], number: int) -> None:
    scheduler = Scheduler(bench, bench.rng)
    inside = _Inside(bench, scheduler, number)
    for meddler in clients.values():
        meddler.always = lambda send: scheduler.meddle("request", send)
    try:
        scheduler.run({name: _Contender(inside, provider, name).work for name, provider in providers.items()})
    finally:
        for meddler in clients.values():
            meddler.rest()
    overlaps = find_overlaps(bench.history)
    bench.expect(not overlaps, f"{overlaps[0] if overlaps else ''} {inside.place}")


class _Inside:
    """What all contenders of one schedule share: the lock, and who is inside."""

    def __init__(self, bench: Bench, scheduler: Scheduler, number: int) -> None:
        self.bench = bench
        self.scheduler = scheduler
        self.scope: LockScope = bench.scope(number)
        self.place = f"(seed {bench.harness.seed}, schedule {number})"
        self._ticks = itertools.count(len(bench.history.operations))
        self._last_token = 0

    def record(self, name: str, verb: str, kind: str, token: int | None = None) -> None:
        """Note an event; its time is its place in the order."""
        self.bench.history.add(name, verb, kind, t_s=next(self._ticks) / 1000, token=token)

    def see(self, token: int | None) -> None:
        """Fail unless the token is greater than all before it."""
        if Capability.FENCING in self.bench.harness.claims:
            if (token or 0) <= self._last_token:
                raise Violation(f"token {token} after token {self._last_token} {self.place}")
            self._last_token = token or 0


class _Contender:
    """Takes the lock once, in a few tries, and lets go of it after two steps."""

    def __init__(self, inside: _Inside, provider: LockProvider, name: str) -> None:
        self._inside = inside
        self._provider = provider
        self._name = name

    def work(self) -> None:
        """All of it."""
        inside, name = self._inside, self._name
        for _ in range(_TRIES):
            inside.record(name, "acquire", "invoke")
            lease = self._provider.try_acquire(inside.scope, inside.bench.owner(name), 0.0)
            inside.record(name, "acquire", "ok" if lease else "fail", lease.token if lease else None)
            if lease is None:
                continue
            inside.see(lease.token)
            for _ in range(2):
                inside.scheduler.step("inside")
            inside.record(name, "release", "invoke")
            self._provider.release(lease)
            inside.record(name, "release", "ok")
            return
