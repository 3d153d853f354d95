"""Many contenders at once, as processes where the provider reaches that far, else as threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

from hudi_locks import BackendUnavailable, Capability, LockScope, SystemClock
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Late, NotRun, Violation
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.history import History
from hudi_locks_conformance.limits import Patience
from hudi_locks_conformance.worker import WorkSpec, work

__all__ = [
    "Storm",
    "explain_failure",
    "find_storms",
    "finish_process",
    "open_gate",
    "reaches_beyond_process",
    "run_in_process",
    "run_storm",
    "start_process",
]

_HOLDS: Final = 15
_PATIENCE_S: Final = 180.0
"""For the process that is the last to get its turns: it waits for those of all others."""
_POLL_S: Final = 0.005


class _Other(Protocol):
    """A contender that is no Python process."""

    def has_ended(self) -> bool: ...


@dataclass(frozen=True)
class Storm:
    """What came of it.

    Attributes:
        history: All operations.
        expected: How often the lock was to be held.
        counter: What the protected counter came to.
        occupied: Entries that met somebody inside.
        listed: Entries of the protected list.
    """

    history: History
    expected: int
    counter: int
    occupied: tuple[str, ...]
    listed: tuple[str, ...]


def run_storm(bench: Bench, *, beyond_process: bool) -> Storm:
    """The storm of this run, on the table's lock; made once and judged by several checks."""
    key = f"storm {beyond_process}"
    if key not in bench.harness.shared:
        with tempfile.TemporaryDirectory(prefix="hudi-locks-conformance-") as folder:
            bench.harness.shared[key] = _storm(bench, Path(folder), beyond_process=beyond_process)
    storm: Storm = bench.harness.shared[key]
    bench.history.merge(storm.history.operations)
    return storm


def find_storms(harness: Harness) -> list[Storm]:
    """The storms that were run with this provider so far."""
    return [found for found in harness.shared.values() if isinstance(found, Storm)]


def _storm(bench: Bench, folder: Path, *, beyond_process: bool) -> Storm:
    for name in ("counter", "listed"):
        (folder / name).touch()
    specs = [_spec(bench, f"contender-{number}", folder) for number in range(bench.harness.contenders)]
    histories = _run_processes(specs) if beyond_process else _run_threads(bench, specs)
    history = History()
    history.merge([operation for one in histories for operation in one.operations])
    occupied = folder / "occupied"
    return Storm(
        history,
        len(specs) * _HOLDS,
        int((folder / "counter").read_text() or 0),
        tuple(occupied.read_text().split()) if occupied.exists() else (),
        tuple((folder / "listed").read_text().split()),
    )


def _spec(bench: Bench, name: str, folder: Path) -> WorkSpec:
    scope, harness = LockScope.table(), bench.harness
    return WorkSpec(
        name=name,
        provider=harness.name,
        options=harness.options,
        partition=scope.partition,
        file_id=scope.file_id,
        holds=_HOLDS,
        folder=str(folder),
        seed=harness.seed,
    )


def _run_threads(bench: Bench, specs: list[WorkSpec]) -> list[History]:
    histories: list[History] = []

    failed: list[Exception] = []

    def contend(spec: WorkSpec) -> None:
        try:
            histories.append(work(spec, bench.provider(clock=SystemClock())))
        except Exception as error:  # noqa: BLE001  # told below
            failed.append(error)

    threads = [threading.Thread(target=contend, args=(spec,)) for spec in specs]
    for thread in threads:
        thread.start()
    patience = Patience(_PATIENCE_S)
    for thread in threads:
        patience.await_end(thread, "a contender did not finish")
    if failed:
        raise Violation(f"{len(failed)} of {len(specs)} contenders failed, the first with {failed[0]!r}")
    return histories


def _run_processes(specs: list[WorkSpec]) -> list[History]:
    module = ["-m", "hudi_locks_conformance.worker"]
    running = [start_process([*module, json.dumps(asdict(spec))]) for spec in specs]
    open_gate(Path(specs[0].folder), running)
    for process in running:
        finish_process(process)
    return [History.load(Path(spec.folder, f"{spec.name}.jsonl")) for spec in specs]


def open_gate(folder: Path, running: Sequence[subprocess.Popen[str]], others: Sequence[_Other] = ()) -> None:
    """Let contenders begin together, once each has told in `folder` that it is ready; at once if one has ended.

    Without it those that are quick to start are done before the others begin.
    """
    clock = SystemClock()
    ends_s = clock.monotonic() + _PATIENCE_S
    while sum(1 for _ in folder.glob("*.ready")) < len(running) + len(others) and clock.monotonic() < ends_s:
        if any(process.poll() is not None for process in running) or any(other.has_ended() for other in others):
            break
        clock.sleep(_POLL_S)
    (folder / "gate").touch()


def run_in_process(arguments: list[str]) -> str:
    """Run Python with these arguments, on the same import path; what it printed.

    Raises:
        Violation: It failed.
        NotRun: It could not import the provider.
    """
    return finish_process(start_process(arguments))


def start_process(arguments: list[str]) -> subprocess.Popen[str]:
    """Start Python with these arguments, on the same import path."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(  # noqa: S603  # our own module
        [sys.executable, *arguments],
        env=env,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish_process(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a process of `start_process`; what it printed.

    Raises:
        Violation: It failed.
        BackendUnavailable: It failed since the lock service did not answer.
        Late: It did not end, or did not get the lock, in time.
        NotRun: It could not import the provider.
    """
    try:
        printed, errors = process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Late(f"a process did not end within {_PATIENCE_S:.0f} s") from None
    if process.returncode or "ProviderLoadError" in errors:
        raise explain_failure(errors)
    return printed


def explain_failure(errors: str) -> Exception:
    """What the last line of a process's standard error means for a check; see `finish_process`."""
    said = (errors.strip().splitlines() or ["no message"])[-1]
    if "ProviderLoadError" in errors:
        return NotRun(f"another process cannot import the provider: {said}")
    raised = said.partition(":")[0].rpartition(".")[2]
    kinds: dict[str, type[Exception]] = {"BackendUnavailable": BackendUnavailable}
    kinds |= dict.fromkeys(("AcquireTimeout", "TimeoutError"), Late)
    return kinds.get(raised, Violation)(f"a process failed: {said}")


def reaches_beyond_process(bench: Bench) -> bool:
    """Whether exclusion of processes is claimed."""
    return bool({Capability.SCOPE_PROCESSES, Capability.SCOPE_HOSTS} & bench.harness.claims)
