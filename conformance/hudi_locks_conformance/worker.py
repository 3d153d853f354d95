"""One contender of a storm: takes the lock again and again, and does within it what only exclusion keeps right.

Run as `python -m hudi_locks_conformance.worker SPEC`, SPEC being the JSON of a `WorkSpec`; also called on threads.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hudi_locks import BackendUnavailable, Capability, Lease, LockProvider, LockScope, Owner, SystemClock
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.history import History

__all__ = ["WorkSpec", "work"]

_PATIENCE_S: Final = 120.0
_PAUSE_S: Final = 0.002
_GATE_S: Final = 0.001


@dataclass(frozen=True)
class WorkSpec:
    """What a contender does.

    Attributes:
        name: Who it is in the history.
        provider: As in `hoodie.write.lock.provider`.
        options: For the provider.
        partition: Of the scope contended for; None for the table's lock.
        file_id: Likewise.
        holds: How often it takes the lock.
        folder: Where the things lie that the lock protects.
        seed: For its pauses.
    """

    name: str
    provider: str
    options: dict[str, str]
    partition: str | None
    file_id: str | None
    holds: int
    folder: str
    seed: int


def _await_gate(spec: WorkSpec) -> None:
    """Tell that all is loaded, and begin when all others are ready too; see `open_gate`."""
    clock = SystemClock()
    ends_s = clock.monotonic() + _PATIENCE_S
    Path(spec.folder, f"{spec.name}.ready").touch()
    while not Path(spec.folder, "gate").exists() and clock.monotonic() < ends_s:
        clock.sleep(_GATE_S)


def work(spec: WorkSpec, provider: LockProvider) -> History:
    """Hold the lock `spec.holds` times; the history of it."""
    history, clock = History(), SystemClock()
    rng = random.Random(f"{spec.seed} {spec.name}")  # noqa: S311  # repeatable, guards nothing
    owner = Owner(f"{spec.name}-{os.getpid()}", "conformance-host", os.getpid(), spec.name, "conformance kit")
    scope = LockScope(spec.partition, spec.file_id)
    for number in range(spec.holds):
        lease = _acquire(provider, scope, owner, record=_recorder(history, spec.name, clock), rng=rng)
        _protected(Path(spec.folder), f"{spec.name}:{number}", clock)
        history.add(spec.name, "release", "invoke", t_s=clock.monotonic(), token=lease.token)
        _release(provider, lease)
        history.add(spec.name, "release", "ok", t_s=clock.monotonic(), token=lease.token)
    return history


def _recorder(history: History, name: str, clock: SystemClock) -> Callable[..., None]:
    def record(kind: str, **facts: Any) -> None:
        history.add(name, "acquire", kind, t_s=clock.monotonic(), **facts)

    return record


def _acquire(
    provider: LockProvider, scope: LockScope, owner: Owner, *, record: Callable[..., None], rng: random.Random
) -> Lease:
    clock = SystemClock()
    timeout_s = 1.0 if Capability.TIMED_WAIT in provider.capabilities else 0.0
    ends_s = clock.monotonic() + _PATIENCE_S
    while clock.monotonic() < ends_s:
        record("invoke")
        try:
            lease = provider.try_acquire(scope, owner, timeout_s)
        except BackendUnavailable as error:
            record("info", error=str(error))
            lease = None
        else:
            record("ok" if lease else "fail", **({"token": lease.token} if lease else {}))
        if lease is not None:
            return lease
        clock.sleep(rng.uniform(0, _PAUSE_S))
    raise TimeoutError(f"{owner.thread} did not get {scope} within {_PATIENCE_S} s")


def _release(provider: LockProvider, lease: Lease) -> None:
    """Release, again and again where the lock service does not answer: a starved machine keeps it from answering."""
    clock = SystemClock()
    ends_s = clock.monotonic() + _PATIENCE_S
    while True:
        try:
            return provider.release(lease)
        except BackendUnavailable:
            if clock.monotonic() > ends_s:
                raise
        clock.sleep(_PAUSE_S)


def _protected(folder: Path, entry: str, clock: SystemClock) -> None:
    """Three things that go wrong when two are inside: an occupancy flag, a counter, a list read and written back."""
    inside = folder / "inside"
    try:
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        with (folder / "occupied").open("a") as file:
            file.write(f"{entry}\n")
    counter, listed = folder / "counter", folder / "listed"
    count, entries = int(counter.read_text() or 0), listed.read_text()
    clock.sleep(0.0005)
    counter.write_text(str(count + 1))
    listed.write_text(f"{entries}{entry}\n")
    inside.unlink(missing_ok=True)


def main(arguments: list[str]) -> None:
    """Work in a process of one's own; the history goes to `<folder>/<name>.jsonl`."""
    spec = WorkSpec(**json.loads(arguments[0]))
    kind = Harness(spec.provider).kind
    provider = kind(spec.options, clock=SystemClock(), on_lost=lambda *_: None)
    try:
        _await_gate(spec)
        work(spec, provider).dump(Path(spec.folder, f"{spec.name}.jsonl"))
    finally:
        provider.close()


if __name__ == "__main__":
    main(sys.argv[1:])
