"""Group H, third part: links that break, records and places that vanish, servers that start again, failing releases."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

from hudi_locks import (
    BackendUnavailable,
    Capability,
    Held,
    Lease,
    LockError,
    LockLost,
    LockManager,
    LockProvider,
    LockScope,
    SystemClock,
)
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, check
from hudi_locks_conformance.faults.link import Link
from hudi_locks_conformance.limits import Patience

_PATIENCE_S: Final = 60.0
_STEP_S: Final = 0.1
_CUT_S: Final = 0.2
_WAKING_S: Final = 10.0
"""Real time that other threads get where a minute of virtual time has passed."""
_POLL_S: Final = 0.0005


def _link(bench: Bench) -> Link:
    return Link(bench, {**bench.harness.options, **(getattr(bench.harness.hooks, "lease_options", None) or {})})


def _expect_soon(bench: Bench, holds: Callable[[], bool], said: str) -> None:
    """Fail unless it comes true within a minute on the bench's clock, in which other threads get some real time."""
    began_s, waking = bench.clock.monotonic(), Patience(_WAKING_S)
    while not holds():
        if waking.is_over:
            bench.expect_in_time(bench.clock.monotonic() - began_s, _PATIENCE_S, said)
        bench.let_pass(_STEP_S)
        SystemClock().sleep(_POLL_S)


def _settle(bench: Bench, holder: LockProvider, lease: Lease) -> Lease | None:
    """What became of a hold once its service answers again: its lease, or None if it is lost."""
    began_s, said = bench.clock.monotonic(), "it is neither said that the lock is kept nor that it is lost"
    while True:
        with contextlib.suppress(BackendUnavailable):
            return _renew(holder, lease)
        bench.expect_in_time(bench.clock.monotonic() - began_s, _PATIENCE_S, f"after {_PATIENCE_S:.0f} s {said}")
        bench.let_pass(_STEP_S)


def _renew(holder: LockProvider, lease: Lease) -> Lease | None:
    try:
        return holder.renew(lease)
    except LockLost:
        return None


def _expect_one_truth(bench: Bench, holder: LockProvider, lease: Lease | None, scope: LockScope) -> None:
    """Whoever believes to hold keeps others out, and what is lost becomes free."""
    if lease is None:
        _expect_soon(bench, lambda: bench.is_free(scope), "a lock that is said to be lost does not become free")
        return
    bench.expect_taken(scope, "a holder that believes to hold does not keep others out")
    holder.release(lease)
    _expect_soon(bench, lambda: bench.is_free(scope), "the lock outlived its release")


@check(
    "H6",
    "link-cut-while-holding",
    why="whoever goes on after a broken link must hold, or know that it does not",
    level=Level.EXTRA,
    beyond_process=True,
)
def link_cut_while_holding(bench: Bench) -> None:
    """After a short cut of the link the hold is kept, or said to be lost; kept, if SURVIVES_RECONNECT is claimed."""
    link, scope = _link(bench), bench.scope()
    holder = link.provider()
    lease = bench.acquire(holder, scope)
    with link.broken():
        renewal = bench.start(lambda: holder.renew(lease))
        renewal.settle()
        bench.let_pass(_CUT_S)
        told = renewal.answers[0].value
        bench.expect(not renewal.done() or told is None, "a renewal was confirmed over a link that is cut")
    _expect_soon(bench, renewal.done, "a renewal that met a cut link did not come back")
    kept = _settle(bench, holder, lease)
    claimed = Capability.SURVIVES_RECONNECT in bench.harness.claims
    bench.expect(kept is not None or not claimed, "a short cut lost the lock, although SURVIVES_RECONNECT is claimed")
    _expect_one_truth(bench, holder, kept, scope)


@check(
    "H7",
    "link-cut-while-waiting",
    why="a waiter that a broken link turned into a ghost holds everybody up",
    level=Level.EXTRA,
    beyond_process=True,
)
def link_cut_while_waiting(bench: Bench) -> None:
    """A waiter whose link is cut for a moment gets the lock later, or an error; it leaves nothing behind."""
    link, scope, direct = _link(bench), bench.scope(), bench.provider()
    lease, manager = bench.acquire(direct, scope), link.manager()
    waiter = bench.start(lambda: manager.lock(scope, timeout_s=_PATIENCE_S))
    waiter.settle()
    with link.broken():
        bench.let_pass(_CUT_S)
    direct.release(lease)
    began_s = bench.clock.monotonic()
    (answer,) = bench.finish(waiter, step_s=_STEP_S)
    bench.expect_in_time(answer.ended_s - began_s, 2 * _PATIENCE_S, "the waiter came back long after its time")
    bench.expect(isinstance(answer.error, LockError | None), f"the wait ended with {answer.error!r}")
    if isinstance(answer.value, Held):
        answer.value.release()
    _expect_soon(bench, lambda: bench.is_free(scope), "a waiter whose link was cut left the lock taken")


@check(
    "H10",
    "deleted-record-is-a-loss",
    why="somebody else takes a lock whose record is gone, while its holder goes on",
    level=Level.EXTRA,
    mode=Mode.FORCED,
)
def deleted_record_is_a_loss(bench: Bench) -> None:
    """A holder whose record was deleted is told so by `verify`, and once by its callback."""
    manager, told = bench.manager(), list[object]()
    held = manager.lock(bench.scope(), timeout_s=0, on_lost=lambda _, reason: told.append(reason))
    bench.hook(manager.provider, "remove")(bench.scope())
    with bench.expect_raises(LockLost, "a holder whose record was deleted is told that it holds"):
        held.verify()
    _expect_soon(bench, lambda: bool(told), "the callback was not called")
    held.release()
    bench.expect(len(told) == 1, f"the callback was called {len(told)} times")
    bench.expect_free(bench.scope(), "the lock is not free although its record was deleted")


@check(
    "H11",
    "place-removed",
    why="a cleaned-up bucket or folder must not make two writers out of one lock",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    beyond_process=True,
)
def place_removed(bench: Bench) -> None:
    """A holder whose folder, table or node was removed is told; a new client makes it again, or says what is gone."""
    bench.need_hook("remove_parent")
    scope, options = bench.scope(), bench.need_hook("fresh_options")(bench.harness.options, f"gone-{bench.run_name}")
    holder = bench.provider(options)
    lease = bench.acquire(holder, scope)
    bench.hook(holder, "remove_parent")(scope)
    with bench.expect_raises(LockError, "a holder whose place was removed is told that it holds"):
        holder.renew(lease)
    successor = bench.provider(options)
    new: Lease | LockError | None
    try:
        new = successor.try_acquire(scope, bench.owner("b"), 0.0)
    except LockError as error:
        new = error
    granted = isinstance(new, Lease)
    claimed = Capability.CREATES_BACKEND in bench.harness.claims
    bench.expect(granted or (isinstance(new, LockError) and not claimed), f"a new client got {new!r}")
    with contextlib.suppress(LockError):
        holder.release(lease)
    if isinstance(new, Lease):
        successor.release(successor.renew(new))


@check(
    "H12",
    "service-restart",
    why="a lock service that forgets its locks makes two writers of one",
    level=Level.EXTRA,
    mode=Mode.REAL,
    beyond_process=True,
)
def service_restart(bench: Bench) -> None:
    """After a crash and a new start of the service a hold is kept, or said to be lost, and new locks are granted."""
    server = bench.harness.server
    if server is None:
        bench.need_hook("restart")
    holder, scope = bench.provider(), bench.scope()
    lease = bench.acquire(holder, scope)
    if server is None:
        bench.hook(holder, "restart")()
    else:
        server.restart()
        server.kind.prepare(server.port)
    kept = _settle(bench, holder, lease)
    bench.note(f"a hold is {'lost' if kept is None else 'kept'} when the service is killed and started again")
    _expect_one_truth(bench, holder, kept, scope)
    _expect_soon(bench, lambda: bench.is_free(bench.scope(1)), "no lock is granted after the restart")


@check(
    "H13",
    "failing-release-is-told-and-repeated",
    why="a release that failed in silence stops all others, and nobody knows why",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    beyond_process=True,
)
def failing_release_is_told_and_repeated(bench: Bench) -> None:
    """A release that cannot reach the service raises; a release again, `close`, or the next `lock` sees to it later."""
    link = _link(bench)
    direct, manager, other = link.provider(), link.manager(), link.manager()
    lease, held = bench.acquire(direct, bench.scope()), manager.lock(bench.scope(1), timeout_s=0)
    again = other.lock(bench.scope(2), timeout_s=0)
    with link.broken():
        answers = bench.run(lambda: direct.release(lease), held.release, again.release)
    ends = [type(answer.error).__name__ for answer in answers]
    bench.expect(ends == ["BackendUnavailable"] * 3, f"releases over a cut link ended with {' and '.join(ends)}")
    _expect_to_lock_again(bench, other, bench.scope(2))
    _expect_soon(bench, lambda: _released(direct, lease), "a release does not work after the link was healed")
    _expect_soon(bench, lambda: bench.is_free(bench.scope()), "a repeated release did not free the lock")
    _expect_soon(bench, lambda: _answers(manager), "the manager does not find its service again")
    manager.close()
    _expect_soon(bench, lambda: bench.is_free(bench.scope(1)), "close did not repeat a release that had failed")


def _expect_to_lock_again(bench: Bench, manager: LockManager, scope: LockScope) -> None:
    answer = bench.run(lambda: manager.lock(scope, timeout_s=_PATIENCE_S))[0]
    taken = isinstance(answer.value, Held)
    bench.expect(taken, f"a manager whose release had failed asked for the lock again and got {answer.error!r}")
    answer.value.release()


def _answers(manager: LockManager) -> bool:
    try:
        manager.holder()
    except BackendUnavailable:
        return False
    return True


def _released(provider: LockProvider, lease: Lease) -> bool:
    try:
        provider.release(lease)
    except BackendUnavailable:
        return False
    return True


@check(
    "H14",
    "both-failures-are-told",
    why="the first error explains the job's end, the second one why the next job waits",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    beyond_process=True,
)
def both_failures_are_told(bench: Bench) -> None:
    """When a block raises and its release fails too, its own exception comes out, and tells of the other."""
    link = _link(bench)
    manager = link.manager()

    def fail_twice() -> None:
        with manager.lock(bench.scope(), timeout_s=0):
            link.cut()
            raise ZeroDivisionError

    answer = bench.run(fail_twice)[0]
    link.heal()
    bench.expect(isinstance(answer.error, ZeroDivisionError), f"the block's exception came out as {answer.error!r}")
    told = " ".join(getattr(answer.error, "__notes__", []))
    chained = answer.error is not None and isinstance(answer.error.__cause__ or answer.error.__context__, LockError)
    bench.expect(chained or "release" in told, "nothing about the failed release comes with the block's exception")
    _expect_soon(bench, lambda: _answers(manager), "the manager does not find its service again")
    manager.close()
    _expect_soon(bench, lambda: bench.is_free(bench.scope()), "close did not repeat the release")
