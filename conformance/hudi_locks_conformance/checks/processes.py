"""Group J, first part: processes, threads, pickles."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Final

from hudi_locks import HudiLocksError, LockManager, SystemClock
from hudi_locks.config import lock_keys, redact
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Mode, Violation, check
from hudi_locks_conformance.observation import ThreadWatch
from hudi_locks_conformance.storm import run_in_process

_ACQUIRE_AND_EXIT: Final = """
import json, sys
from hudi_locks import LockManager, LockScope
provider, options, partition, file_id = json.loads(sys.argv[1])
held = LockManager(provider, options).lock(LockScope.file_group(partition, file_id), timeout_s=0)
print(held.state.name)
"""
_THREADS: Final = 8
_PATIENT: Final = {lock_keys.WAIT_TIME_MS.name: 30_000, lock_keys.CLIENT_NUM_RETRIES.name: 20}
"""In real time: seven others come first, and each may meet a service that is slow, or that cuts a connection off."""


@check(
    "J2",
    "exit-without-release",
    why="a job that forgets to release stops the next one",
    mode=Mode.REAL,
    beyond_process=True,
)
def exit_without_release(bench: Bench) -> None:
    """A process that ends normally without a release frees its lock."""
    scope = bench.scope()
    arguments = json.dumps([bench.harness.name, bench.harness.options, scope.partition, scope.file_id])
    printed = run_in_process(["-c", _ACQUIRE_AND_EXIT, arguments])
    bench.expect(printed.strip() == "HELD", f"the other process did not hold the lock: {printed!r}")
    bench.expect_free(scope, "the lock outlived a process that ended normally")


@check("J5", "pickle-is-refused-or-unheld", why="a lock that is sent to an executor must not be held twice")
def pickle_is_refused_or_unheld(bench: Bench) -> None:
    """Pickling a client is refused with advice, or gives one that holds nothing; its options survive."""
    provider = bench.provider()
    lease = bench.acquire(provider, bench.scope())
    try:
        copy = pickle.loads(pickle.dumps(provider))  # noqa: S301  # our own bytes
    except TypeError as error:
        bench.expect("pickle" in str(error), f"pickling fails without advice: {error}")
    else:
        bench.expect(copy.try_acquire(bench.scope(), bench.owner("copy"), 0.0) is None, "the copy took a taken lock")
        copy.close()
    bench.expect_taken(bench.scope(), "pickling the client freed its lock")
    copied = pickle.loads(pickle.dumps(provider.options))  # noqa: S301  # our own bytes
    bench.expect(redact(copied) == redact(provider.options), "the options changed")
    provider.release(lease)


@check("J6", "eight-threads", why="a driver uses one manager from many threads")
def eight_threads(bench: Bench) -> None:
    """Eight threads share one manager: no deadlock, no two inside, no thread left."""
    with ThreadWatch() as threads:
        manager = bench.manager(_PATIENT, clock=SystemClock())
        _contend(bench, manager)
        manager.close()
    bench.expect(threads.count() == 0, "a thread outlived the manager")


def _contend(bench: Bench, manager: LockManager) -> None:
    inside: list[int] = []
    met: list[int] = []

    def contend(number: int) -> None:
        for _ in range(5):
            _enter(bench, manager, number, inside=inside, met=met)

    answers = bench.run(*[lambda n=number: contend(n) for number in range(_THREADS)])
    bench.expect(all(answer.error is None for answer in answers), f"{[repr(a.error) for a in answers if a.error][:1]}")
    bench.expect(not met, f"{len(met)} times two threads were inside")


def _enter(bench: Bench, manager: LockManager, number: int, *, inside: list[int], met: list[int]) -> None:
    with manager.lock(bench.scope()):
        met += [number] if inside else []
        inside.append(number)
        SystemClock().sleep(0.0002)
        inside.remove(number)


@check("J9", "errors-survive-pickling", why="an error that cannot come back from an executor hangs or hides it")
def errors_survive_pickling(bench: Bench) -> None:
    """What the provider raises is the same after pickling: its class, and what it says."""
    provider = bench.provider()
    lease = bench.acquire(provider, bench.scope())
    provider.release(lease)
    raised = [_catch(lambda: provider.renew(lease))]
    provider.close()
    raised.append(_catch(lambda: provider.try_acquire(bench.scope(), bench.owner(), 0.0)))
    for error in filter(None, raised):
        try:
            copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
        except Exception as failure:  # told
            raise Violation(f"{error!r} does not survive pickling: {failure!r}") from failure
        same = type(copy) is type(error) and str(copy) == str(error)
        bench.expect(same, f"{error!r} came back from pickling as {copy!r}")


def _catch(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except HudiLocksError as error:
        return error
    return None
