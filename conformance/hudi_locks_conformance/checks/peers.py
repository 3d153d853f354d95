"""Group E, fourth part: leases that others wrote, with other settings or with nonsense in them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final

from hudi_locks import Capability, LockError
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, check
from hudi_locks_conformance.holder import HolderProcess
from hudi_locks_conformance.leases import DELTA, is_granted, is_granted_within, lease_length_s, leased_options

_NO_TIMES: Final = ("tomorrow", "", 10**15, None)
_Options = dict[str, str]


@check(
    "E11",
    "lease-of-the-record-counts",
    why="two jobs with different settings share one table",
    level=Level.LEASE,
    mode=Mode.VIRTUAL,
    needs=[Capability.LEASE],
)
def lease_of_the_record_counts(bench: Bench) -> None:
    """A contender goes by the lease of the holder, whether its own is shorter or longer."""
    short = leased_options(bench)
    long = {**short, **bench.need_hook("other_lease_options")}
    lengths = [_measure(bench, options, number) for number, options in enumerate((short, long))]
    alike = abs(lengths[0] - lengths[1]) < lengths[0] * DELTA
    said = f"'other_lease_options' ask for a longer lease, and it lasts {lengths[1]:g} s as before"
    bench.expect(long == short or not alike or not bench.is_virtual, said)
    if long == short or alike:
        bench.note("leases are a setting of the service: peers cannot differ in them")
        return
    bench.expect(lengths[0] < lengths[1], "the hook 'other_lease_options' makes shorter leases")
    if bench.is_virtual:
        _let_expire(bench, short, long, lengths[1])
        _let_expire(bench, long, short, lengths[0])
    else:
        _kill(bench, short, long, lengths[0])


def _measure(bench: Bench, options: _Options, number: int) -> float:
    """From before the request, however long the lock service took to answer it."""
    provider, asked_s = bench.provider(options), bench.clock.monotonic()
    lease = bench.acquire(provider, bench.scope(number))
    took_s = bench.clock.monotonic() - asked_s
    return lease_length_s(bench, lease) + took_s


def _let_expire(bench: Bench, own: _Options, holders: _Options, lease_s: float) -> None:
    """A contender with its own options meets a dead holder with others."""
    scope = bench.scope(round(lease_s * 1000))
    dead, contender = bench.provider(holders), bench.provider(own)
    bench.acquire(dead, scope)
    bench.expect(not is_granted(bench, contender, scope), "a taken lock was granted")
    bench.let_pass(lease_s * (1 - DELTA))
    bench.expect(not is_granted(bench, contender, scope), "the lock was granted by the contender's own lease")
    bench.let_pass(lease_s * 2 * DELTA)
    free = is_granted_within(bench, contender, lease_s, scope)
    bench.expect(free, "the lock is not free after the holder's lease: the contender goes by its own")


def _kill(bench: Bench, own: _Options, holders: _Options, own_s: float) -> None:
    """The same in real time: a session counts from its last sign of life, a third of it before the end at most."""
    contender, scope = bench.provider(own), bench.scope(2)
    with HolderProcess(bench, holders, scope) as holder:
        holder.end()
        killed_s = bench.clock.monotonic()
        bench.expect(is_granted_within(bench, contender, 0.0, scope), "the lock of a killed process never became free")
    bench.expect(bench.clock.monotonic() - killed_s > own_s, "the lock was granted by the contender's own lease")


@check(
    "E15",
    "nonsense-is-no-end",
    why="a lease whose end cannot be read may be a living writer's",
    level=Level.LEASE,
    mode=Mode.FORCED,
    needs=[Capability.LEASE],
    beyond_process=True,
)
def nonsense_is_no_end(bench: Bench) -> None:
    """A record with nonsense, or a far future, in place of a number is no free lock, and breaks nobody.

    Each number of the record in turn, where the record is JSON.
    """
    if not bench.is_virtual:
        bench.note("the lock service keeps the ends of leases itself: no record tells them")
        return
    options = leased_options(bench)
    contender = bench.provider(options)
    provider = bench.provider(options)
    bench.acquire(provider, bench.scope())
    for data in _garble(bench.hook(provider, "peek")(bench.scope())):
        bench.hook(provider, "corrupt")(bench.scope(), data)
        for _ in range(2):
            with contextlib.suppress(LockError):
                bench.expect(not is_granted(bench, contender), f"the lock was granted over the record {data!r}")
            with contextlib.suppress(LockError):
                contender.holder(bench.scope())
        bench.expect(bench.hook(provider, "peek")(bench.scope()) == data, f"the record {data!r} was changed")
    bench.hook(provider, "remove")(bench.scope())


def _garble(raw: bytes) -> Iterator[bytes]:
    """The record with one number after the other replaced; nothing for a record that is no JSON object."""
    try:
        record = json.loads(raw)
    except ValueError:
        return
    for place in _numbers(record):
        for value in _NO_TIMES:
            if isinstance(place[0][place[1]], str) and not isinstance(value, str):
                continue
            before, place[0][place[1]] = place[0][place[1]], value
            yield json.dumps(record, sort_keys=True).encode()
            place[0][place[1]] = before


def _numbers(record: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Where the numbers of a record are, those written as text among them."""
    if not isinstance(record, dict):
        return
    for name, value in list(record.items()):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number or (isinstance(value, str) and value.isdecimal()):
            yield record, name
        yield from _numbers(value)
