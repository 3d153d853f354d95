"""A process that forks, spawns, forgets, or ends while one of its threads waits; and tells what it saw.

Run as `python -m hudi_locks_conformance.offspring MODE SPEC`, SPEC being JSON: provider, options, and the names of some
scopes. It prints one JSON object.
"""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final

from hudi_locks import Held, Lease, LockError, LockManager, LockProvider, LockScope, Owner, SystemClock
from hudi_locks.lock import load_provider_class
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Late
from hudi_locks_conformance.storm import explain_failure, start_process

__all__ = ["FORGET", "FORK", "SPAWN", "Ended", "run_offspring"]

FORK, SPAWN, FORGET = "fork", "spawn", "forget"
_PATIENCE_S: Final = 30.0
_END_S: Final = 90.0
_LONG_S: Final = 600.0
_OWNER: Final = Owner("parent", "conformance-host", 4711, "main", "conformance kit")


@dataclass(frozen=True)
class Ended:
    """How such a process ended.

    Attributes:
        told: What it saw.
        errors: What it wrote to its standard error.
        status: Its exit status.
    """

    told: dict[str, Any]
    errors: str
    status: int


def run_offspring(bench: Bench, mode: str, scopes: list[LockScope]) -> Ended:
    """Run such a process to its end.

    Raises:
        Violation: It failed.
        BackendUnavailable: It failed since the lock service did not answer.
        Late: It does not end, or did not get the lock, in time.
        NotRun: It could not import the provider.
    """
    spec = json.dumps([bench.harness.name, bench.harness.options, [[one.partition, one.file_id] for one in scopes]])
    warn = ["-W", "always::ResourceWarning"]
    process = start_process([*warn, "-m", "hudi_locks_conformance.offspring", mode, spec])
    try:
        printed, errors = process.communicate(timeout=_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Late(f"a process did not end within {_END_S:.0f} s of its work") from None
    if not printed.strip() or "ProviderLoadError" in errors:
        raise explain_failure(errors)
    return Ended(json.loads(printed), errors, process.returncode)


def _say(call: Callable[[], object]) -> str:
    """The name of the error that a call raises; empty if it raises none."""
    try:
        call()
    except Exception as error:  # noqa: BLE001  # told to the parent, which judges it
        return type(error).__name__
    return ""


def _fork(name: str, options: dict[str, str], scopes: list[LockScope]) -> dict[str, Any]:
    """Fork while a manager holds the first scope, and a bare client the second."""
    manager = LockManager(name, options)
    provider = load_provider_class(name)(manager.options, clock=SystemClock(), on_lost=lambda *_: None)
    held, lease = manager.lock(scopes[0], timeout_s=_PATIENCE_S), provider.try_acquire(scopes[1], _OWNER, 0.0)
    if lease is None:
        sys.exit("a free lock was not granted")
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(writing, json.dumps(_look(manager, held, provider, lease)).encode())
        sys.exit()  # with all that happens at the end of a process
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told: dict[str, Any] = {"child": json.loads(pipe.read() or "{}")}
    os.waitpid(pid, 0)
    told |= {"verify": _say(held.verify), "renew": _say(lambda: provider.renew(lease))}
    told["free"] = _find_free(name, options, scopes)
    held.release()
    provider.close()
    return told


def _look(manager: LockManager, held: Held, provider: LockProvider, lease: Lease) -> dict[str, Any]:
    """What a forked child finds, and what becomes of its attempts to use or to end what it finds."""
    told = {
        "reason": held.reason.name if held.reason else "",
        "lock": _say(lambda: manager.lock(held.scope, timeout_s=0)),
        "threads": threading.active_count(),
        "renew": _say(lambda: provider.renew(lease)),
    }
    told["ends"] = [
        _say(held.release),
        _say(manager.close),
        _say(lambda: provider.release(lease)),
        _say(provider.close),
    ]
    return told


def _find_free(name: str, options: dict[str, str], scopes: list[LockScope]) -> list[bool]:
    with LockManager(name, options) as other:
        return [other.try_lock(scope) is not None for scope in scopes[:2]]


def _spawn(name: str, options: dict[str, str], scopes: list[LockScope]) -> dict[str, object]:
    """Let a spawned child ask for the lock while it is held here, and afterwards; and try to send it the hold."""
    with LockManager(name, options) as manager, multiprocessing.get_context("spawn").Pool(1) as pool:
        held = manager.lock(scopes[0], timeout_s=_PATIENCE_S)
        told: dict[str, object] = {
            "sent": [_say(lambda: ForkingPickler.dumps(held)), _say(lambda: ForkingPickler.dumps(manager))]
        }
        told["held"] = pool.apply(_ask_in_child, (name, options, scopes[0]))
        held.release()
        told["free"] = pool.apply(_ask_in_child, (name, options, scopes[0]))
    return told


def _ask_in_child(name: str, options: dict[str, str], scope: LockScope) -> str:
    def ask() -> None:
        with LockManager(name, options) as manager, manager.lock(scope, timeout_s=0):
            pass

    return _say(ask)


def _forget(name: str, options: dict[str, str], scopes: list[LockScope]) -> dict[str, Any]:
    """Forget a hold, and a client that holds; let another thread wait for the hold; and come to an end."""
    _hold_and_forget(name, options, scopes)
    gc.collect()
    kept = LockManager(name, options)
    clock = _HeardClock()
    waiting = LockManager(name, options, clock=clock)

    def wait() -> None:
        with contextlib.suppress(LockError):
            waiting.lock(scopes[0], timeout_s=_LONG_S)

    threading.Thread(target=wait, daemon=True).start()
    return {"taken": kept.try_lock(scopes[0]) is None, "waits": clock.heard.wait(_PATIENCE_S)}


def _hold_and_forget(name: str, options: dict[str, str], scopes: list[LockScope]) -> None:
    LockManager(name, options).lock(scopes[0], timeout_s=_PATIENCE_S)
    provider = load_provider_class(name)(options, clock=SystemClock(), on_lost=lambda *_: None)
    provider.try_acquire(scopes[1], _OWNER, 0.0)


class _HeardClock(SystemClock):
    """Tells when somebody waits."""

    def __init__(self) -> None:
        self.heard = threading.Event()

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        """See `Clock.wait`."""
        self.heard.set()
        return super().wait(event, timeout_s)

    def sleep(self, duration_s: float) -> None:
        """See `Clock.sleep`."""
        self.heard.set()
        super().sleep(duration_s)


_MODES: Final = {FORK: _fork, SPAWN: _spawn, FORGET: _forget}


def main(arguments: list[str]) -> None:
    """Do what the mode says, and print what was seen."""
    name, options, named = json.loads(arguments[1])
    told = _MODES[arguments[0]](name, options, [LockScope(*one) for one in named])
    print(json.dumps(told), flush=True)  # noqa: T201  # the protocol with the parent


if __name__ == "__main__":
    main(sys.argv[1:])
