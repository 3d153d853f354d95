"""Group M: beside the class of JVM Hudi that the provider is said to exclude."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeVar

from hudi_locks import (
    Capability,
    Held,
    Holder,
    HoldState,
    Lease,
    LockLost,
    LockManager,
    LockProvider,
    LockScope,
    SystemClock,
)
from hudi_locks.cli.options import gather
from hudi_locks.config import lock_keys
from hudi_locks.lock import load_provider_class
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Late, Level, Mode, NotRun, Violation, check
from hudi_locks_conformance.history import Hold, Overlap, find_overlaps
from hudi_locks_conformance.holder import HolderProcess
from hudi_locks_conformance.leases import ask_again
from hudi_locks_conformance.limits import Patience
from hudi_locks_conformance.partners import JvmContender, NoPartner, Partner, find_partners, run_mixed_storm
from hudi_locks_conformance.partners.jvm import HUDI_SETTINGS
from hudi_locks_conformance.partners.matching import find_java_class
from hudi_locks_conformance.servers import ServerUnavailable

_WHY: Final = "a Python and a JVM writer would both complete instants on one table, and one's rows would be lost"
_NEEDS: Final = frozenset({Capability.JVM_COMPATIBLE})
_TABLE: Final = LockScope.table()
_START_S: Final = 60.0
"""Within which a JVM starts and has a free lock."""
_UP_S: Final = 5.0
"""After which a JVM has begun to ask for a lock that is held."""
_MOMENT_S: Final = 0.3
_BOUND_S: Final = 150.0
"""Longest wait for the end of a dead holder's lease."""
_MORE_KILLS: Final = 2
"""JVMs that are killed once more, where the lock service does not answer at the moment of their death."""
_POLL_S: Final = 0.05
_HOLDS: Final = 15
_CALM: Final = {lock_keys.WAIT_TIME_MS.name: "20000"}
"""For a provider whose lease this key is too: the bench's own would make it two seconds."""
_JVMS: Final = 2
T = TypeVar("T")


def _find_partners(bench: Bench, options: Mapping[str, str] | None = None) -> list[Partner]:
    try:
        found = find_partners(bench.harness, options)
        for partner in found:
            partner.command()
    except (NoPartner, ServerUnavailable) as missing:
        raise NotRun(str(missing)) from missing
    return found


@contextmanager
def _run_jvm(
    partner: Partner, work: Literal["hold", "storm"], amount: float, **settings: str
) -> Iterator[JvmContender]:
    """A JVM at work; one that holds does so until it is told to end, or is killed: on a busy machine seconds are short.

    Raises:
        Late: It failed: its own client may have found the machine too busy.
    """
    try:
        with JvmContender(partner, work, amount, settings, until_told=True) as theirs:
            yield theirs
    except RuntimeError as failed:
        raise Late(f"the JVM failed beside the provider: {_shorten(failed)}") from failed


def _shorten(failed: RuntimeError) -> str:
    return " ".join(str(failed).splitlines())[:600]


def _insist(bench: Bench, ask: Callable[[], T]) -> T:
    """What comes of asking, again for a minute where the lock service does not answer: JVMs make a machine busy.

    Raises:
        BackendUnavailable: It never answers.
    """
    return ask_again(bench, ask, within_s=_START_S)


def _use_once(bench: Bench, provider: LockProvider) -> None:
    """Make what the lock needs, such as a table: not every JVM does."""
    lease = _insist(bench, lambda: bench.acquire(provider, _TABLE))
    _insist(bench, lambda: provider.release(lease))


def _ask_once(bench: Bench, provider: LockProvider) -> Lease | None:
    return _insist(bench, lambda: provider.try_acquire(_TABLE, bench.owner(), 0.0))


def _wait_held(theirs: JvmContender, timeout_s: float, said: str) -> None:
    """Return when the JVM has the lock.

    Raises:
        RuntimeError: It failed, with the reason.
        Late: It does not have it in time.
    """
    if not theirs.wait_held(timeout_s):
        if theirs.has_ended():
            theirs.finish()  # tells why it failed
        raise Late(f"{theirs.name} did not get {said} within {timeout_s:.0f} s")


@check("M1", "record-has-the-form-of-the-jvms", why=_WHY, level=Level.INTEROP, mode=Mode.REAL, needs=_NEEDS)
def record_has_the_form_of_the_jvms(bench: Bench) -> None:
    """What we leave while we hold has every part of what the JVM leaves, each in the same form."""
    bench.need_hook("record_form")
    partner = _find_partners(bench)[0]
    provider = bench.provider()
    read_form = bench.hook(provider, "record_form")
    _use_once(bench, provider)
    with _run_jvm(partner, "hold", _MOMENT_S) as theirs:
        _wait_held(theirs, _START_S, "a free lock")
        wanted = dict(_insist(bench, lambda: read_form(_TABLE)))
        theirs.finish()
    lease = _insist(bench, lambda: bench.acquire(provider, _TABLE))
    found = dict(_insist(bench, lambda: read_form(_TABLE)))
    _insist(bench, lambda: provider.release(lease))
    bench.expect(wanted, f"nothing was found of the lock that {partner.name} held")
    wrong = {name: (form, found.get(name)) for name, form in wanted.items() if found.get(name) != form}
    bench.expect(not wrong, f"other than the JVM's (theirs, ours): {wrong}")
    more = sorted(found.keys() - wanted.keys())
    if more:
        bench.note(f"our record has parts that the JVM's lacks: {', '.join(more)}")


@check("M2", "jvm-records-are-read", why=_WHY, level=Level.INTEROP, mode=Mode.REAL, needs=_NEEDS)
def jvm_records_are_read(bench: Bench) -> None:
    """While a JVM of any release holds the lock it is found held, by somebody else; afterwards by nobody."""
    for partner in _find_partners(bench):
        _read_record_of(bench, partner, bench.provider())


def _read_record_of(bench: Bench, partner: Partner, provider: LockProvider) -> None:
    _use_once(bench, provider)
    with _run_jvm(partner, "hold", _MOMENT_S) as theirs:
        _wait_held(theirs, _START_S, "a free lock")
        refused = _ask_once(bench, provider) is None
        _judge_holder(bench, partner, _insist(bench, lambda: provider.holder(_TABLE)))
        bench.expect(refused, f"the lock was granted although {partner.name} held it")
        theirs.finish()
    left = _insist(bench, lambda: provider.holder(_TABLE))
    bench.expect(left is None, f"a lock that {partner.name} released has a holder: {left}")


def _judge_holder(bench: Bench, partner: Partner, holder: Holder | None) -> None:
    if holder is None:
        raise Violation(f"{partner.name} held the lock, and nobody was found")
    ours = bench.owner()
    bench.expect(holder.owner.id != ours.id, f"{partner.name} held the lock, and we were found")
    bench.expect(holder.key and holder.token, f"the hold of {partner.name} has no key or no token: {holder}")


@check("M3", "each-waits-for-the-other", why=_WHY, level=Level.INTEROP, mode=Mode.REAL, needs=_NEEDS)
def each_waits_for_the_other(bench: Bench) -> None:
    """While we hold, the JVM gets no lock; while it holds, we get none; each gets it after the other let go."""
    partner = _find_partners(bench)[0]
    with bench.manager(_CALM) as manager:
        _let_jvm_wait(bench, manager, partner)
        _wait_for_jvm(bench, manager, partner)


def _let_jvm_wait(bench: Bench, manager: LockManager, partner: Partner) -> None:
    held = _insist(bench, lambda: manager.lock(timeout_s=_START_S))
    with _run_jvm(partner, "hold", 0.1, wait_ms="500") as theirs:
        bench.expect(not theirs.wait_held(_UP_S), f"{partner.name} got a lock that we held")
        _verify(held)
        freeing_s = bench.clock.monotonic()
        _insist(bench, held.release)
        _wait_held(theirs, _START_S, "the lock that we had released")
        (hold,) = theirs.finish().holds()
    bench.note(f"{theirs.refusals} attempts of {partner.name} timed out while we held the lock")
    bench.expect(hold.begin_ns / 1e9 >= freeing_s, f"{partner.name} held before we let go")


def _wait_for_jvm(bench: Bench, manager: LockManager, partner: Partner) -> None:
    def wait() -> tuple[Held, float]:
        return _insist(bench, lambda: manager.lock(timeout_s=_START_S)), bench.clock.monotonic()

    with _run_jvm(partner, "hold", _MOMENT_S) as theirs, ThreadPoolExecutor(1) as beside:
        _wait_held(theirs, _START_S, "a free lock")
        early = [_insist(bench, manager.try_lock) for _ in range(3)]
        bench.expect(early == [None] * 3, f"a lock that {partner.name} held was granted to us")
        waiting = beside.submit(wait)
        bench.clock.sleep(_MOMENT_S)
        (hold,) = theirs.finish().holds()
        held, taken_s = waiting.result()
    _verify(held)
    _insist(bench, held.release)
    bench.expect(taken_s >= hold.end_ns / 1e9, f"we held before {partner.name} let go")


def _verify(held: Held) -> None:
    """Ask whether we hold, again where the lock service does not answer at once: a link may break, and be made anew.

    Raises:
        LockLost: We do not, or no answer came in a minute, or before the end of the lease.
    """
    ends_s = SystemClock().monotonic() + _START_S
    while True:
        try:
            return held.verify()
        except LockLost:
            if held.state is HoldState.LOST or SystemClock().monotonic() > ends_s:
                raise
        SystemClock().sleep(_POLL_S)


@check(
    "M4",
    "dead-holders-give-way-to-the-other",
    why="a crash of a writer of one kind must not stop the writers of the other, nor be taken for a release",
    level=Level.INTEROP,
    mode=Mode.REAL,
    needs=[Capability.JVM_COMPATIBLE, Capability.LEASE],
)
def dead_holders_give_way_to_the_other(bench: Bench) -> None:
    """The lock of a killed JVM comes to us when its lease is over, and not at once; and ours to the JVM likewise."""
    options = {**bench.harness.options, **bench.need_hook("short_lease_options")}
    partner, provider = _find_partners(bench, options)[0], bench.provider(options)
    _use_once(bench, provider)
    ask_again(bench, lambda: _kill_jvm(bench, partner, provider), times=_MORE_KILLS)
    with HolderProcess(bench, options, _TABLE) as ours, _run_jvm(partner, "hold", 0.1, wait_ms="500") as theirs:
        if theirs.wait_held(_UP_S):
            kind = Violation if ours.ask() == "HELD" else Late  # a machine that starved our renewals ended the lease
            raise kind(f"{partner.name} got a lock that we held")
        ours.end()
        if theirs.wait_held(_MOMENT_S):
            raise Late(f"{partner.name} got the lock of our killed holder at once")
        _wait_held(theirs, _BOUND_S, "the lock of our killed holder")
        theirs.finish()


def _kill_jvm(bench: Bench, partner: Partner, provider: LockProvider) -> None:
    """See what becomes of the lock of a killed JVM.

    Raises:
        BackendUnavailable: No answer came at the moment of its death, and an answer that comes later says nothing.
        Late: The lock is granted too early, or too late: its lease goes on while a busy machine does other things.
    """
    with _run_jvm(partner, "hold", 60) as theirs:
        _wait_held(theirs, _BOUND_S, "a free lock")
        theirs.kill()
        if provider.try_acquire(_TABLE, bench.owner(), 0.0) is not None:
            raise Late(f"the lock of {partner.name} was granted at the moment when it was killed")
    patience = Patience(_BOUND_S)
    while (lease := _ask_once(bench, provider)) is None:
        patience.expect_left(f"the lock of {partner.name}, which was killed, was not free")
        bench.clock.sleep(_POLL_S)
    _insist(bench, lambda: provider.release(lease))


@check("M5", "mixed-storm-never-overlaps", why=_WHY, level=Level.INTEROP, mode=Mode.REAL, needs=_NEEDS)
def mixed_storm_never_overlaps(bench: Bench) -> None:
    """Holds of Python processes and of JVMs that contend for one lock never overlap, and all of them complete."""
    partners, harness = _find_partners(bench)[:1] * _JVMS, bench.harness
    _use_once(bench, bench.provider())
    try:
        storm = run_mixed_storm(harness.name, harness.options, partners, ours=harness.contenders, holds=_HOLDS)
    except RuntimeError as failed:
        raise Late(f"a JVM failed in the storm: {_shorten(failed)}") from failed
    bench.history.merge(storm.operations)
    wanted = (harness.contenders + _JVMS) * _HOLDS
    names = {partner.name for partner in partners}
    _judge_overlaps(bench, find_overlaps(storm), names)
    sides = [_is_jvm(hold, names) for hold in storm.holds()]
    switches = sum(before != after for before, after in itertools.pairwise(sides))
    bench.note(f"{switches} of {len(sides)} holds followed one of the other kind")
    bench.expect(len(storm.holds()) == wanted, f"{len(storm.holds())} holds completed instead of {wanted}")


def _judge_overlaps(bench: Bench, overlaps: list[Overlap], theirs: set[str]) -> None:
    """Where two JVMs met, their class is at fault, and a person should know."""
    among_jvms = [one for one in overlaps if _is_jvm(one.first, theirs) and _is_jvm(one.second, theirs)]
    if among_jvms:
        bench.note(f"the Java class does not exclude itself: {among_jvms[0]} ({len(among_jvms)} overlaps in all)")
    ours = [one for one in overlaps if one not in among_jvms]
    bench.expect(not ours, f"{ours[0]} ({len(ours)} overlaps in all)" if ours else "")


def _is_jvm(hold: Hold, theirs: set[str]) -> bool:
    return hold.process.rpartition("-")[0] in theirs


@check(
    "M6",
    "java-properties-work-as-they-are",
    why="two writers whose configurations differ by a slip of the pen have two locks",
    level=Level.INTEROP,
    mode=Mode.REAL,
    needs=_NEEDS,
)
def java_properties_work_as_they_are(bench: Bench) -> None:
    """The properties file of a JVM writer, Java class and all, gives the JVM's lock without a word changed."""
    partner, java_class = _find_partners(bench)[0], find_java_class(bench.harness)
    _use_once(bench, bench.provider())  # which makes the table that the JVM expects
    with (
        tempfile.TemporaryDirectory(prefix="hudi-locks-interop-") as folder,
        warnings.catch_warnings(record=True) as told,
    ):
        warnings.simplefilter("always")
        path = Path(folder) / "writer.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in _writer_settings(bench, java_class).items()))
        options = gather(None, None, settings=[], config=path).options
        with (
            LockManager.from_options(options, clock=bench.clock) as manager,
            _run_jvm(partner, "hold", _MOMENT_S) as theirs,
        ):
            _wait_held(theirs, _START_S, "a free lock")
            early = _insist(bench, manager.try_lock)
            bench.expect(early is None, f"a manager made of {partner.name}'s file got a lock that it held")
            theirs.finish()
            _insist(bench, _insist(bench, lambda: manager.lock(timeout_s=_START_S)).release)
    ours = [str(warning.message) for warning in told if not issubclass(warning.category, ResourceWarning)]
    bench.expect(not ours, f"warned: {ours}")  # what the collector finds of others is no word of the manager's


def _writer_settings(bench: Bench, java_class: str) -> dict[str, str]:
    """All of Hudi's lock keys, as a merged write config has them, and ours that are needed to reach the service."""
    is_alias = bool(java_class) and _leads_here(java_class, bench)
    merged = {**HUDI_SETTINGS, **bench.harness.options}
    return {**merged, lock_keys.PROVIDER.name: java_class if is_alias else bench.harness.name}


def _leads_here(java_class: str, bench: Bench) -> bool:
    try:
        return load_provider_class(java_class) is bench.harness.kind
    except ImportError:
        return False
