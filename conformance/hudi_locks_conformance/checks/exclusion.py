"""Group B: exclusion."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from hudi_locks import BackendUnavailable, Capability, Lease, LockProvider, LockScope, SystemClock
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, Mode, NotRun, check
from hudi_locks_conformance.history import find_overlaps, is_linearizable
from hudi_locks_conformance.limits import PATIENCE_S, Patience
from hudi_locks_conformance.storm import Storm, reaches_beyond_process, run_storm

_RACERS: Final = 6
_ROUNDS: Final = 25
_MANY: Final = 3
_WHY: Final = "two writers would both complete instants on one table, and one's rows would be lost"


@check("B1", "second-client-is-refused", why=_WHY)
def second_client_is_refused(bench: Bench) -> None:
    """While one client holds it, another gets neither the table's lock nor a file group's."""
    for scope in bench.scopes():
        provider, other = bench.provider(), bench.provider()
        lease = bench.acquire(provider, scope)
        for _ in range(3):
            bench.expect(
                other.try_acquire(scope, bench.owner("b"), 0.0) is None, f"the taken lock on {scope} was granted again"
            )
        provider.release(lease)


def _race(bench: Bench, rounds: int, clients: Callable[[int], list[LockProvider]], scopes: list[LockScope]) -> None:
    """Let clients ask at one moment; more than one winner, or none at all in every round, is a failure.

    So is an error that none expects; one of the lock service is told if nobody wins.
    """
    won, failed = 0, list[Exception]()
    for round_number in range(rounds):
        racing = clients(round_number)
        winners = _race_once(bench, racing, scopes[round_number % len(scopes)], failed)
        bench.expect(len(winners) <= 1, f"{len(winners)} winners in round {round_number + 1}")
        strange = [error for error in failed if not isinstance(error, BackendUnavailable)]
        bench.expect(not strange, f"an acquire raised {strange[0]!r} in round {round_number + 1}" if strange else "")
        won += len(winners)
        for provider, lease in winners:
            provider.release(lease)
    said = f": {len(failed)} acquires failed, the first with {failed[0]!r}" if failed else ""
    bench.expect(won, f"nobody ever won although the lock was free{said}")


def _race_once(
    bench: Bench, racing: list[LockProvider], scope: LockScope, failed: list[Exception]
) -> list[tuple[LockProvider, Lease]]:
    """Who won; what was raised goes to `failed`."""
    barrier = threading.Barrier(len(racing), timeout=PATIENCE_S)
    winners: list[tuple[LockProvider, Lease]] = []

    def run(provider: LockProvider, name: str) -> None:
        try:
            barrier.wait()
            lease = provider.try_acquire(scope, bench.owner(name), 0.0)
        except Exception as error:  # noqa: BLE001  # told by the caller
            failed.append(error)
            return
        if lease is not None:
            winners.append((provider, lease))

    threads = [threading.Thread(target=run, args=(provider, f"racer-{i}")) for i, provider in enumerate(racing)]
    for thread in threads:
        thread.start()
    patience = Patience()
    for thread in threads:
        patience.await_end(thread, "a call did not come back")
    return winners


@check("B2", "threads-of-one-client", why=_WHY)
def threads_of_one_client(bench: Bench) -> None:
    """Of many threads that ask one client at one moment, exactly one wins."""
    provider = bench.provider()
    _race(bench, _ROUNDS, lambda _: [provider] * _RACERS, [LockScope.table(), bench.scope()])


@check("B3", "clients-in-threads", why=_WHY)
def clients_in_threads(bench: Bench) -> None:
    """Of many clients that ask at one moment, exactly one wins; definite holds never overlap."""
    clients = [bench.provider() for _ in range(_RACERS)]
    _race(bench, _ROUNDS, lambda _: clients, [LockScope.table(), bench.scope()])
    _expect_no_overlap(bench, run_storm(bench, beyond_process=False))


def _expect_no_overlap(bench: Bench, storm: Storm) -> None:
    overlaps = find_overlaps(storm.history)
    bench.expect(not overlaps, f"{overlaps[0]} ({len(overlaps)} overlaps in all)" if overlaps else "")
    held = len(storm.history.holds())
    bench.expect(held == storm.expected, f"{held} holds completed instead of {storm.expected}")


@check("B4", "processes-never-overlap", why=_WHY, mode=Mode.REAL, beyond_process=True)
def processes_never_overlap(bench: Bench) -> None:
    """Holds of several processes never overlap, and all of them complete."""
    _expect_no_overlap(bench, run_storm(bench, beyond_process=True))


@check("B5", "no-lost-update", why=_WHY, mode=Mode.REAL)
def no_lost_update(bench: Bench) -> None:
    """A counter that is read and written back under the lock counts every hold."""
    storm = run_storm(bench, beyond_process=reaches_beyond_process(bench))
    bench.expect(storm.counter == storm.expected, f"the counter came to {storm.counter}, not {storm.expected}")


@check("B6", "nobody-else-inside", why=_WHY, mode=Mode.REAL)
def nobody_else_inside(bench: Bench) -> None:
    """A flag that is set while inside is never found set by the next one."""
    storm = run_storm(bench, beyond_process=reaches_beyond_process(bench))
    bench.expect(not storm.occupied, f"{len(storm.occupied)} met somebody inside, first {storm.occupied[:1]}")


@check("B7", "read-modify-write-survives", why=_WHY, mode=Mode.REAL)
def read_modify_write_survives(bench: Bench) -> None:
    """A list that is read and written back under the lock, with a pause in between, keeps every entry once."""
    storm = run_storm(bench, beyond_process=reaches_beyond_process(bench))
    missing = storm.expected - len(set(storm.listed))
    bench.expect(missing == 0, f"{missing} entries are missing from the list")
    bench.expect(len(storm.listed) == storm.expected, "an entry is there twice")


@check("B8", "history-is-linearizable", why="an order that no single lock could have is two locks in truth")
def history_is_linearizable(bench: Bench) -> None:
    """Acquires and releases of several clients have one order that explains every answer."""
    clock = SystemClock()
    barrier = threading.Barrier(4, timeout=PATIENCE_S)

    def contend(name: str) -> None:
        provider, scope, owner = bench.provider(clock=clock), bench.scope(), bench.owner(name)
        barrier.wait()
        for _ in range(6):
            bench.history.add(name, "acquire", "invoke", t_s=clock.monotonic())
            lease = provider.try_acquire(scope, owner, 0.0)
            bench.history.add(name, "acquire", "ok" if lease else "fail", t_s=clock.monotonic())
            clock.sleep(bench.rng.uniform(0, 0.0005))
            if lease is not None:
                bench.history.add(name, "release", "invoke", t_s=clock.monotonic())
                provider.release(lease)
                bench.history.add(name, "release", "ok", t_s=clock.monotonic())

    answers = bench.run(*[lambda n=name: contend(n) for name in ("a", "b", "c", "d")])
    bench.expect_no_error(answers, "a contender's call")
    verdict = is_linearizable(bench.history)
    if verdict is None:
        raise NotRun("the search for an order gave up")
    bench.expect(verdict, "no order of acquires and releases explains the answers")


def _fresh(bench: Bench, name: str) -> dict[str, str]:
    made: dict[str, str] = bench.need_hook("fresh_options")(bench.harness.options, f"{name}-{bench.scope().file_id}")
    return made


@check(
    "B10", "simultaneous-first-use", why=_WHY, level=Level.EXTRA, mode=Mode.FORCED, needs=[Capability.CREATES_BACKEND]
)
def simultaneous_first_use(bench: Bench) -> None:
    """Of many clients that ask at one moment where nothing was made yet, exactly one wins."""

    def clients(round_number: int) -> list[LockProvider]:
        options = _fresh(bench, f"first-{round_number}")
        return [bench.provider(options) for _ in range(_RACERS)]

    _race(bench, 10, clients, [LockScope.table()])


@check("B11", "creation-of-parents", why=_WHY, level=Level.EXTRA, mode=Mode.FORCED, needs=[Capability.CREATES_BACKEND])
def creation_of_parents(bench: Bench) -> None:
    """Clients that make the folders or tables of many scopes at one moment all succeed, each with its own scope."""
    options = _fresh(bench, "parents")
    barrier = threading.Barrier(_RACERS, timeout=PATIENCE_S)
    clients = [bench.provider(options) for _ in range(_RACERS)]

    def contend(number: int) -> Lease | None:
        barrier.wait()
        return clients[number].try_acquire(bench.scope(number), bench.owner(f"racer-{number}"), 0.0)

    answers = bench.run(*[lambda n=number: contend(n) for number in range(_RACERS)])
    failed = [repr(answer.error) for answer in answers if not isinstance(answer.value, Lease)]
    bench.expect(not failed, f"{len(failed)} of {_RACERS} free scopes were not granted: {failed[:1]}")


@check(
    "B12",
    "many-or-none",
    why="a writer that holds half of what it needs blocks others, and publishes nothing",
)
def many_or_none(bench: Bench) -> None:
    """Many locks at once are all granted, or none of them is; let go of together, all of them are free."""
    scopes = [bench.scope(number) for number in range(_MANY)]
    provider, other = bench.provider(), bench.provider()
    taken = bench.acquire(other, scopes[1], "b")
    granted = provider.acquire_many(scopes, bench.owner(), 0.0)
    bench.expect(granted is None, "many locks were granted although another client holds one of them")
    for scope in scopes:
        if scope != taken.scope:
            bench.expect_free(scope, f"{scope} stayed locked although not all of many were granted")
    other.release(taken)
    leases = provider.acquire_many(scopes, bench.owner(), 0.0) or []
    bench.expect({lease.scope for lease in leases} == set(scopes), "many free locks were not all granted")
    for scope in scopes:
        bench.expect_taken(scope, f"{scope} was granted twice: once among many, once alone")
    provider.release_many(leases)
    for scope in scopes:
        bench.expect_free(scope, f"{scope} is not free after all were let go of together")
