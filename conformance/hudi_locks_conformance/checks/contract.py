"""Group A: the shape of the contract."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any, Final

from hudi_locks import Capability, LockError, LockScope, ProviderClosed
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import check
from hudi_locks_conformance.observation import LogCapture, ThreadWatch, count_descriptors
from hudi_locks_conformance.secrets import find_secrets

_SCOPES: Final = {Capability.SCOPE_THREADS, Capability.SCOPE_PROCESSES, Capability.SCOPE_HOSTS}
_ROUNDS: Final = 100
_MORE_LOOKS: Final = 2
_SECRET: Final = "s3cr3t-of-the-kit"  # noqa: S105  # planted, to be looked for


@check("A0", "claims-are-consistent", why="a caller that requires a capability must be able to believe the claim")
def claims_are_consistent(bench: Bench) -> None:
    """Exactly one SCOPE is claimed, and not both REENTRANT and REACQUIRE, nor NEEDS_CLOCK_SYNC and CLOCK_FREE."""
    claims = bench.harness.claims
    bench.expect(len(_SCOPES & claims) == 1, f"{len(_SCOPES & claims)} SCOPE claims instead of one, the widest")
    for pair in (
        {Capability.REENTRANT, Capability.REACQUIRE},
        {Capability.NEEDS_CLOCK_SYNC, Capability.CLOCK_FREE},
    ):
        bench.expect(not pair <= claims, f"claims both of {', '.join(sorted(claim.name for claim in pair))}")


@check("A1", "fresh-holds-nothing", why="a client that believes it holds what it never acquired writes unprotected")
def fresh_holds_nothing(bench: Bench) -> None:
    """A lock that nobody acquired has no holder, and a new client holds nothing."""
    provider = bench.provider()
    bench.expect(provider.holder(bench.scope()) is None, "a lock that nobody acquired has a holder")
    provider.close()
    bench.expect_free(bench.scope(), "a client that held nothing kept the lock from others")


@check("A2", "acquire-then-release", why="a lock that stays behind stops every writer of the table")
def acquire_then_release(bench: Bench) -> None:
    """An acquired lock is held until its release, and free at once afterwards; the table's and a file group's."""
    for scope in bench.scopes():
        provider = bench.provider()
        lease = bench.acquire(provider, scope)
        bench.expect((lease.scope, lease.owner) == (scope, bench.owner()), "the lease names another scope or owner")
        provider.renew(lease)
        bench.expect_taken(scope, f"the lock on {scope} was granted twice")
        provider.release(lease)
        bench.expect_free(scope, f"the lock on {scope} is not free after its release")


@check("A3", "hundred-rounds-leave-nothing", why="a writer that leaks for every commit dies after some thousands")
def hundred_rounds_leave_nothing(bench: Bench) -> None:
    """A hundred rounds of acquire and release leave no record, thread or descriptor behind."""
    with ThreadWatch() as threads:
        provider = bench.provider()
        _rounds(bench, provider, 3)
        grown = _grow(bench, provider, threads)
        bench.expect(provider.holder(bench.scope()) is None, "a record is left")
        for _ in range(_MORE_LOOKS):
            # A client's pool may open one more connection at any time; a leak goes on with every hundred.
            grown = grown and _grow(bench, provider, threads)
    bench.expect(not grown, grown)


def _grow(bench: Bench, provider: Any, threads: ThreadWatch) -> str:
    """What is more after a hundred rounds than before them; an empty text where nothing is."""
    before, descriptors = threads.count(), count_descriptors() or 0
    _rounds(bench, provider, _ROUNDS)
    more_threads, more_descriptors = threads.count() - before, (count_descriptors() or 0) - descriptors
    found = [f"{more_threads} more threads"] * (more_threads > 0)
    found += [f"{more_descriptors} more open descriptors"] * (more_descriptors > 0)
    return " and ".join([*found, f"after {_ROUNDS} rounds"]) if found else ""


def _rounds(bench: Bench, provider: Any, number: int) -> None:
    for _ in range(number):
        provider.release(bench.acquire(provider, bench.scope()))


@check("A4", "release-without-hold", why="a writer's clean-up must not free the lock of another one")
def release_without_hold(bench: Bench) -> None:
    """Releasing a lease that was released before does nothing to the next holder."""
    provider, other = bench.provider(), bench.provider()
    old = bench.acquire(provider, bench.scope())
    provider.release(old)
    new = bench.acquire(other, bench.scope(), "b")
    provider.release(old)
    bench.expect_taken(bench.scope(), "a second release of an old lease freed the lock of its next holder")
    other.renew(new)


@check("A5", "release-twice", why="clean-up code runs twice when errors meet")
def release_twice(bench: Bench) -> None:
    """Releasing twice is quiet, through the provider and through the manager."""
    provider = bench.provider()
    lease = bench.acquire(provider, bench.scope())
    provider.release(lease)
    provider.release(lease)
    held = bench.manager().lock(bench.scope(1))
    held.release()
    held.release()
    bench.expect_free(bench.scope(1), "the lock is not free after two releases")


@check("A6", "close-releases", why="a job that ends must not leave its lock behind")
def close_releases(bench: Bench) -> None:
    """Close before release frees every lock of the client, ends all threads, and may be called twice."""
    with ThreadWatch() as threads:
        _close_before_release(bench)
    bench.expect(threads.count() == 0, "a thread outlived the close of its client")


def _close_before_release(bench: Bench) -> None:
    provider = bench.provider()
    scopes = (*bench.scopes(), bench.scope(1))
    leases = [bench.acquire(provider, scope, f"owner-{number}") for number, scope in enumerate(scopes)]
    provider.close()
    for number, scope in enumerate(scopes, 1):
        bench.expect_free(scope, f"lock {number} of {len(scopes)} outlived the close of its holder's client")
    for lease in leases:
        provider.release(lease)
    provider.close()


@check("A7", "acquire-after-close", why="a closed client that answers 'taken' makes its writer wait for nothing")
def acquire_after_close(bench: Bench) -> None:
    """Acquiring after close raises `ProviderClosed`; it never answers."""
    provider = bench.provider()
    provider.close()
    with bench.expect_raises(ProviderClosed, "an acquire after close did not raise ProviderClosed"):
        provider.try_acquire(bench.scope(), bench.owner(), 0.0)
    manager = bench.manager()
    manager.close()
    with bench.expect_raises(ProviderClosed, "a lock() after close did not raise ProviderClosed"):
        manager.lock(bench.scope())


@check(
    "A8", "two-names-are-independent", why="file groups that share a lock by accident make writers queue or deadlock"
)
def two_names_are_independent(bench: Bench) -> None:
    """Two scopes are two locks, the table's own among them."""
    provider, other = bench.provider(), bench.provider()
    scopes = (LockScope.table(), bench.scope(1), bench.scope(2))
    clients = zip((provider, other, provider), scopes, ("a", "b", "c"), strict=True)
    leases = [bench.acquire(client, scope, name) for client, scope, name in clients]
    provider.release(leases[2])
    bench.expect_taken(scopes[1], "releasing one scope freed another")
    provider.release(leases[0])
    other.release(leases[1])


@check("A10", "block-keeps-its-exception", why="an error that is replaced by a lock error hides what went wrong")
def block_keeps_its_exception(bench: Bench) -> None:
    """A `with` block releases when it raises, and its own exception comes out."""
    manager = bench.manager()
    with bench.expect_raises(ZeroDivisionError, "the block's own exception was replaced"), manager.lock(bench.scope()):
        _fail()
    bench.expect_free(bench.scope(), "the lock outlived its block")


def _fail() -> None:
    raise ZeroDivisionError


@check("A11", "no-secret-shown", why="locks are logged, and logs are read by many")
def no_secret_shown(bench: Bench) -> None:
    """No secret option appears in a repr, a holder record, an error or a log; the provider's own are among them."""
    options, secrets = _with_secrets(bench)
    with LogCapture(logging.DEBUG) as captured:
        provider = bench.provider(options)
        manager = bench.manager(options)
        with manager.lock(bench.scope()) as held:
            holder = provider.holder(bench.scope())
            shown = [repr(provider), str(provider), repr(manager), repr(held), repr(held.lease), repr(holder)]
            with bench.expect_raises(LockError, "a taken lock was granted") as refused:
                bench.manager(options).lock(bench.scope(), timeout_s=0)
    shown += [str(refused.error), repr(provider.options), captured.text(), _say_unreachable(bench, options)]
    bench.expect(not any(secret in text for text in shown for secret in secrets), "a secret option is shown")


def _with_secrets(bench: Bench) -> tuple[dict[str, str], frozenset[str]]:
    """The options with secrets planted, and all secrets in them.

    Where there are some already none is planted: others in their place would be refused by the lock service.
    """
    options, own = bench.harness.options, bench.harness.kind.secret_options
    if not find_secrets(options, own):
        options = {**options, **dict.fromkeys(("hoodie.aws.secret.key", "hoodie.aws.session.token", *own), _SECRET)}
    return options, find_secrets(options, own)


def _say_unreachable(bench: Bench, options: dict[str, str]) -> str:
    """What the provider says where its lock service cannot be reached; empty where the kit cannot bring that about."""
    find_options = getattr(bench.harness.hooks, "unreachable_options", None)
    if find_options is None:
        return ""
    try:
        bench.provider(find_options(options)).try_acquire(bench.scope(1), bench.owner(), 0.0)
    except Exception as error:  # noqa: BLE001  # H5 judges which it is
        return f"{error!r} {error} {error.__cause__}"
    return ""


@check(
    "A12", "constructor-does-no-io", why="building a manager on a driver must not hang on a lock service that is down"
)
def constructor_does_no_io(bench: Bench) -> None:
    """The constructor opens no file and no connection, and starts no thread."""
    bench.provider()
    _AUDIT.begin()
    try:
        bench.provider()
    finally:
        events = _AUDIT.end()
    bench.expect(not events, f"the constructor does I/O: {', '.join(events[:5])}")


class _Audit:
    """Sees what Python tells its audit hooks; such a hook stays for ever, so there is one, and it is mostly off."""

    _WATCHED: Final = ("open", "os.mkdir", "os.link", "os.rename", "os.listdir", "os.scandir", "socket.connect")
    _MORE: Final = ("socket.getaddrinfo", "subprocess.Popen", "_thread.start_new_thread")

    def __init__(self) -> None:
        self._installed = False
        self._thread: int | None = None
        self._events: list[str] = []

    def begin(self) -> None:
        if not self._installed:
            sys.addaudithook(self._hear)
            self._installed = True
        self._events = []
        self._thread = threading.get_ident()

    def end(self) -> list[str]:
        self._thread = None
        return self._events

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._thread != threading.get_ident() or event not in (*self._WATCHED, *self._MORE):
            return
        if event == "open" and Path(str(arguments[0])).suffix in (".py", ".pyc"):
            return
        self._events.append(f"{event} {arguments[:1]}")


_AUDIT: Final = _Audit()
