"""Group H, second part: single requests that are repeated, late, refused, or answered to nobody."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

from hudi_locks import BackendRefused, BackendUnavailable, Lease, LockError, LockProvider, LockScope
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Inapplicable, Level, Mode, check
from hudi_locks_conformance.faults.meddler import Action, Meddler, Send, fail_with, lose_answer, send_twice

_FILE_ERRORS: Final = (errno.ENOSPC, errno.EROFS, errno.ENOENT, errno.ESTALE, errno.EIO, errno.EACCES)
_LEASES: Final = 3
_LOOKS: Final = 20


class _Life:
    """A client whose requests are meddled with, and how many of them each part of a lock's life takes.

    Attributes:
        meddler: Stands before the client.
        provider: The client.
        requests: The names of the requests of each part.
        to: How the names of the requests begin that are meddled with now.
        lease_s: How long its locks are granted for; None if they do not end.
    """

    def __init__(self, bench: Bench, door: str = "tamper") -> None:
        self.bench = bench
        self._door = door
        self._number = 0
        self.to = ""
        lease = self.begin()
        self.requests: dict[str, list[str]] = {}
        self.lease_s = None if lease.deadline_s is None else lease.deadline_s - bench.clock.monotonic()
        self.requests["renew"] = self._observe(lambda: self.provider.renew(lease))
        self.requests["release"] = self._observe(lambda: self.provider.release(lease))
        leases: list[Lease] = []
        self.requests["acquire"] = self._observe(lambda: leases.append(self.acquire()))
        self.provider.release(leases[0])

    def _observe(self, call: Callable[[], Any]) -> list[str]:
        self.meddler.begin()
        call()
        return self.meddler.names

    def begin(self) -> Lease:
        """A new client with a lock on a scope of its own."""
        self.meddler = Meddler()
        self.provider: LockProvider = self.meddler.watch(
            self.bench, self.bench.provider(_leased(self.bench)), self._door
        )
        return self.acquire()

    @property
    def scope(self) -> LockScope:
        """The scope of the client's present lock."""
        return self.bench.scope(self._number)

    def acquire(self) -> Lease:
        """The next scope's lock, which nobody has."""
        self._number += 1
        return self.bench.acquire(self.provider, self.scope)

    def each(self, part: str, to: str = "") -> Iterator[int]:
        """The numbers of a part's requests among those whose names begin with `to`, a new client for each."""
        self.to = to
        for number in range(sum(name.startswith(to) for name in self.requests[part])):
            self.provider.close()
            self.provider.release(self.begin())
            yield number

    def try_to(self, call: Callable[[], Any], at: dict[int, Action]) -> Any:
        """What comes of a call whose numbered requests are meddled with: its value, or its `LockError`."""
        self.meddler.begin(at, self.to)
        try:
            return call()
        except LockError as error:
            return error
        finally:
            self.meddler.rest()

    def try_acquire(self, at: dict[int, Action]) -> Any:
        """The same for an acquire of the next scope."""
        self._number += 1
        return self.try_to(lambda: self.provider.try_acquire(self.scope, self.bench.owner(), 0.0), at)

    def expect_no_orphan(self, said: str) -> None:
        """Fail unless the lock is free at once, or when the client closes, or with the end of a lease."""
        if self.bench.is_free(self.scope):
            return None
        with contextlib.suppress(LockError):
            self.provider.close()
        watcher, owner = self.bench.provider(_leased(self.bench)), self.bench.owner("watcher")
        for _ in range(_LOOKS):
            lease = watcher.try_acquire(self.scope, owner, 0.0)
            if lease is not None:
                return watcher.release(lease)
            self.bench.let_pass(_LEASES * (self.lease_s or 0.0) / _LOOKS)
        self.bench.expect(self.bench.is_free(self.scope), said)
        return None


def _leased(bench: Bench) -> dict[str, str]:
    return {**bench.harness.options, **(getattr(bench.harness.hooks, "lease_options", None) or {})}


def _refuse_where(bench: Bench, promise: str, told: str) -> None:
    """End the check where the way to the service keeps a promise, by the hooks."""
    if getattr(bench.hooks(), promise, False):
        raise Inapplicable(f"{told} (hooks: {promise})")


@check(
    "H3",
    "repeated-request",
    why="a network that delivers a request twice must not leave a lock to nobody",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    beyond_process=True,
)
def repeated_request(bench: Bench) -> None:
    """Requests that are all delivered twice do what they do once, whichever of the answers arrives."""
    bench.need_hook("tamper")
    _refuse_where(bench, "delivers_once", "no request of it arrives twice")
    for keep_first in (True, False):
        life = _Life(bench)
        life.meddler.always = send_twice(keep_first=keep_first)
        lease = life.acquire()
        lease = life.provider.renew(lease)
        bench.expect_taken(life.scope, "held, and yet free, after every request came twice")
        life.provider.release(lease)
        bench.expect_free(life.scope, "the lock outlived its release, after every request came twice")


class _Late:
    """Keeps one request back until it is delivered."""

    def __init__(self) -> None:
        self._kept: Send | None = None

    def keep(self, send: Send) -> Any:
        """Answer nothing, and keep the request."""
        self._kept = send
        raise TimeoutError("planted by the conformance kit: no answer yet")

    def deliver(self) -> None:
        """Let it take effect now; its answer goes to nobody."""
        if self._kept is not None:
            with contextlib.suppress(Exception):
                self._kept()


@check(
    "H4",
    "late-request",
    why="a request that arrives after its client gave up must neither take the lock nor free another one's",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    beyond_process=True,
)
def late_request(bench: Bench) -> None:
    """A request that is delivered after its caller gave up leaves no lock to nobody, and no successor without its own.

    Each request of an acquire and of a release in turn. A lock that a late acquire makes may stay until its client
    closes, or until a lease is over.
    """
    bench.need_hook("tamper")
    _refuse_where(bench, "delivers_in_order", "no request of it arrives after its client gave up")
    life = _Life(bench)
    for number in life.each("acquire"):
        late = _Late()
        found = life.try_acquire({number: late.keep})
        if isinstance(found, Lease):
            life.provider.release(found)
        late.deliver()
        life.expect_no_orphan(f"request {number + 1} of an acquire, delivered late, left the lock to nobody")
    for number in life.each("release"):
        _release_late(bench, life, number)


def _release_late(bench: Bench, life: _Life, number: int) -> None:
    late, lease = _Late(), life.acquire()
    life.try_to(lambda: life.provider.release(lease), {number: late.keep})
    life.provider.release(lease)
    successor = bench.provider(_leased(bench))
    new = bench.acquire(successor, life.scope, "b")
    late.deliver()
    bench.expect_taken(life.scope, f"request {number + 1} of a release, delivered late, freed the successor's lock")
    successor.release(successor.renew(new))


def _faults(bench: Bench, *, passing: bool) -> list[tuple[Exception, str]]:
    """Errors of the service, and the beginning of the names of the requests that they may answer."""
    faults: list[tuple[Exception, bool, str]] = bench.need_hook("faults")()
    return [(error, to) for error, heals, to in faults if heals is passing]


@check(
    "H9a",
    "passing-refusals-are-retried",
    why="a lock service that is busy for a second must not end an hour's job",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    beyond_process=True,
)
def passing_refusals_are_retried(bench: Bench) -> None:
    """Throttling, conflicts and failing servers, at any request, are waited out, and never told as final."""
    life = _Life(bench)
    for error, to in _faults(bench, passing=True):
        for number in life.each("acquire", to):
            _expect_waited_out(bench, life, {number: fail_with(error)}, f"{error!r} at request {number + 1}")
        _expect_unharmed(bench, life, error, to)


def _expect_waited_out(bench: Bench, life: _Life, at: dict[int, Action], said: str) -> None:
    found = life.try_acquire(at)
    fair = found is None or isinstance(found, Lease | BackendUnavailable)
    bench.expect(fair, f"{said} of an acquire is told as {found!r}")
    if isinstance(found, Lease):
        life.provider.release(found)
    life.expect_no_orphan(f"{said} of an acquire left the lock to nobody")
    manager, meddler = bench.manager({"hoodie.write.lock.client.num_retries": 3}), Meddler()
    meddler.watch(bench, manager.provider)
    meddler.begin(at, life.to)
    answer = bench.run(lambda: manager.lock(life.scope, timeout_s=30))[0]
    meddler.rest()
    bench.expect(answer.error is None, f"{said}: the manager gave up with {answer.error!r}")
    answer.value.release()
    manager.close()


def _expect_unharmed(bench: Bench, life: _Life, error: Exception, to: str) -> None:
    """A hold survives the error at any of its renewal's requests, and its release can be asked for again."""
    for number in life.each("renew", to):
        lease = life.acquire()
        found = life.try_to(lambda held=lease: life.provider.renew(held), {number: fail_with(error)})  # type: ignore[misc]
        bench.expect(isinstance(found, Lease | BackendUnavailable), f"{error!r} in a renewal is told as {found!r}")
        lease = life.provider.renew(found if isinstance(found, Lease) else lease)
        life.provider.release(lease)
    for number in life.each("release", to):
        lease = life.acquire()
        found = life.try_to(lambda held=lease: life.provider.release(held), {number: fail_with(error)})  # type: ignore[misc]
        bench.expect(found is None or isinstance(found, BackendUnavailable), f"{error!r} in a release: {found!r}")
        life.provider.release(lease)
        bench.expect_free(life.scope, f"{error!r} in a release left the lock taken, though the release was repeated")


@check(
    "H9b",
    "final-refusals-are-immediate",
    why="a missing permission must be told at once, and by its name",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    beyond_process=True,
)
def final_refusals_are_immediate(bench: Bench) -> None:
    """A refusal that no retry heals, at any request of an acquire, is `BackendRefused` with the place or right."""
    life = _Life(bench)
    for error, to in _faults(bench, passing=False):
        for number in life.each("acquire", to):
            found = life.try_acquire({number: fail_with(error)})
            said = f"{error!r} at request {number + 1}"
            bench.expect(isinstance(found, Lease | BackendRefused), f"{said} is told as {found!r}")
            if isinstance(found, Lease):  # of a request that is not needed for the lock
                life.provider.release(found)
            else:
                named = [fact for fact in found.facts.values() if isinstance(fact, str) and fact in str(found)]
                bench.expect(any(named), f"{said} is told without a place or a right: {found}")
            life.expect_no_orphan(f"{said} left the lock to nobody")


@check(
    "H9c",
    "lost-answers-anywhere",
    why="networks lose answers of all requests, not only of the one that counts",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    beyond_process=True,
)
def lost_answers_anywhere(bench: Bench) -> None:
    """A request that took effect and lost its answer, whichever it is, leaves no lock to nobody, and loses no hold."""
    bench.need_hook("tamper")
    life = _Life(bench)
    for number in life.each("acquire"):
        found = life.try_acquire({number: lose_answer})
        if isinstance(found, Lease):
            life.provider.renew(found)
            bench.expect_taken(life.scope, f"the answer to request {number + 1} was lost: held, and yet free")
            life.provider.release(found)
        life.expect_no_orphan(f"the answer to request {number + 1} of an acquire was lost: the lock is nobody's")
    _expect_lossless(bench, life)


def _expect_lossless(bench: Bench, life: _Life) -> None:
    for number in life.each("renew"):
        lease = life.acquire()
        found = life.try_to(lambda held=lease: life.provider.renew(held), {number: lose_answer})  # type: ignore[misc]
        bench.expect(isinstance(found, Lease | BackendUnavailable), f"a renewal without an answer is told as {found!r}")
        life.provider.release(life.provider.renew(lease))
    for number in life.each("release"):
        lease = life.acquire()
        life.try_to(lambda held=lease: life.provider.release(held), {number: lose_answer})  # type: ignore[misc]
        life.provider.release(lease)
        bench.expect_free(life.scope, f"the answer to request {number + 1} of a release was lost: still taken")


@check(
    "H15",
    "file-system-errors",
    why="a full disk or a stale mount must not leave half a lock, nor pass for a lock that is taken",
    level=Level.EXTRA,
    mode=Mode.FORCED,
    beyond_process=True,
)
def file_system_errors(bench: Bench) -> None:
    """An error of the file system, at any call, is an error that names the place, and leaves nothing behind.

    Disk full, read-only, no such file, stale handle, I/O error, no permission.
    """
    bench.need_hook("tamper_os")
    life = _Life(bench, "tamper_os")
    if not life.requests["acquire"]:
        raise Inapplicable("it makes no calls of this machine's file system")
    for number_of_error in _FILE_ERRORS:
        error = OSError(number_of_error, os.strerror(number_of_error))
        for number in life.each("acquire"):
            _expect_clean_acquire(bench, life, {number: fail_with(error)}, f"{error.strerror} at call {number + 1}")
        for number in life.each("release") if number_of_error != errno.ENOENT else ():  # which says that it is gone
            lease = life.acquire()
            life.try_to(lambda held=lease: life.provider.release(held), {number: fail_with(error)})  # type: ignore[misc]
            life.provider.release(lease)
            said = f"{error.strerror} in a release left the lock taken, though the release was repeated"
            bench.expect_free(life.scope, said)


def _expect_clean_acquire(bench: Bench, life: _Life, at: dict[int, Action], said: str) -> None:
    found = life.try_acquire(at)
    if isinstance(found, Lease):
        life.provider.renew(found)
        bench.expect_taken(life.scope, f"{said} of an acquire: held, and yet free")
        life.provider.release(found)
    elif found is not None:
        fair = isinstance(found, BackendUnavailable | BackendRefused)
        bench.expect(fair and str(found.facts.get("key")) in str(found), f"{said} of an acquire is told as {found!r}")
    life.expect_no_orphan(f"{said} of an acquire left the lock to nobody")
