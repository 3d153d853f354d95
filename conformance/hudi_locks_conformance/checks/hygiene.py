"""Group L: what a good guest leaves behind, and says."""

from __future__ import annotations

import contextlib
import gc
import inspect
import io
import locale
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from hudi_locks import Capability, LockProvider, SystemClock
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, NotRun, check
from hudi_locks_conformance.isolation import try_without_extras
from hudi_locks_conformance.limits import Patience
from hudi_locks_conformance.observation import LogCapture, ThreadWatch, count_descriptors

_PATIENCE_S: Final = 20.0
_LOOK_S: Final = 0.01
_RENEWALS: Final = 50
_GROWTH: Final = 32
"""By so many bytes a number in a record may become longer."""


def _script(bench: Bench) -> None:
    """An ordinary life: two managers, a hold, a refusal, a verification, a release, a close."""
    manager, other = bench.manager(), bench.manager()
    with manager.lock(bench.scope()) as held:
        bench.expect(other.try_lock(bench.scope()) is None, "a taken lock was granted")
        held.verify()
        other.holder(bench.scope())
    manager.close()
    other.close()


@check("L1", "nothing-is-left", why="a long job that leaks threads and connections ends at a limit")
def nothing_is_left(bench: Bench) -> None:
    """After an ordinary life no thread and no descriptor is left."""
    with ThreadWatch() as threads:
        _script(bench)
        before, descriptors = threads.count(), count_descriptors()
        for _ in range(3):
            _script(bench)
    gone = _comes_true(lambda: threads.count() <= before)
    bench.expect(gone, f"{threads.count() - before} threads are left")
    if descriptors is not None:
        closed = _comes_true(lambda: (count_descriptors() or 0) <= descriptors)
        bench.expect(closed, "descriptors are left open")


def _comes_true(condition: Callable[[], bool]) -> bool:
    """At once, or within seconds: a library may close its connections on a thread of its own."""
    patience = Patience(_PATIENCE_S)
    while not (holds := condition()) and not patience.is_over:
        SystemClock().sleep(_LOOK_S)
    return holds


@check("L2", "no-print-no-root-logger", why="a library that prints breaks the output of every tool around it")
def no_print_no_root_logger(bench: Bench) -> None:
    """Nothing is printed, and nothing logged under the root logger's own name."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), LogCapture(logging.DEBUG) as captured:
        _script(bench)
    bench.expect(not out.getvalue() and not err.getvalue(), f"printed {(out.getvalue() + err.getvalue())[:80]!r}")
    rooted = [record for record in captured.records if record.name == "root"]
    bench.expect(not rooted, f"logged by the root logger: {[record.getMessage() for record in rooted[:1]]}")


@check("L3", "no-warning", why="users run with warnings as errors")
def no_warning(bench: Bench) -> None:
    """An ordinary life raises no Python warning."""
    caught = _gather_warnings(bench)
    if caught and all(issubclass(one.category, ResourceWarning) for one in caught):
        caught = _gather_warnings(bench)  # what others had left in this process is gone now
    bench.expect(not caught, f"warned: {[str(one.message) for one in caught[:1]]}")


def _gather_warnings(bench: Bench) -> list[warnings.WarningMessage]:
    """What a life warns of; what others left open, and the collector finds meanwhile, is found before it."""
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _script(bench)
        gc.collect()
    return caught


@check("L4", "metrics-count-right", why="contention that no counter shows is found by users first")
def metrics_count_right(bench: Bench) -> None:
    """A known script gives known counts of attempts, successes, failures, releases, waits and holds."""
    manager, other = bench.manager(), bench.manager()
    for _ in range(3):
        with manager.lock(bench.scope()):
            bench.expect(other.try_lock(bench.scope()) is None, "a taken lock was granted")
    mine, theirs = manager.metrics.snapshot(), other.metrics.snapshot()
    counts = {name: mine.get(f"lock.{name}", 0) for name in ("acquire.attempts", "acquire.success", "release.success")}
    bench.expect(set(counts.values()) == {3}, f"the holder's counts are {counts}, not 3 each")
    bench.expect((theirs.get("lock.acquire.attempts"), theirs.get("lock.acquire.failure")) == (3, 3), f"{theirs}")
    timed = [getattr(mine.get(name), "count", 0) for name in ("lock.acquire.duration", "lock.request.latency")]
    bench.expect(timed == [3, 3], f"{timed} holds and waits were timed, not 3 each")


@check("L5", "logs-say-who-and-how-long", why="a log that does not say who and which lock explains nothing")
def logs_say_who_and_how_long(bench: Bench) -> None:
    """Logs of acquire and release hold owner, lock, attempt and duration."""
    with LogCapture(logging.DEBUG) as captured:
        _script(bench)
    lines = [line for line in captured.text().splitlines() if str(bench.scope()) in line]
    for words in (("holds", "attempt 1", "conformance kit", " s"), ("did not get", "attempt 1"), ("let go of", " s")):
        bench.expect(any(all(word in line for word in words) for line in lines), f"no line says {words}")


@check("L6", "typed", why="a consumer that is type-checked needs the provider's types")
def typed(bench: Bench) -> None:
    """Every public method and the constructor are annotated, and the package says so with py.typed."""
    bare = [name for name, method in _methods(bench.harness.kind) if not _is_annotated(method)]
    bench.expect(not bare, f"without annotations: {', '.join(bare)}")
    top = bench.harness.kind.__module__.partition(".")[0]
    found = getattr(__import__(top), "__file__", None)
    if found is None:
        raise NotRun(f"{top} has no __init__.py: where its py.typed would have to be cannot be told")
    module_file = Path(found)
    if module_file.name != "__init__.py":
        bench.note(f"{top} is a single module, which cannot carry py.typed")
    else:
        bench.expect((module_file.parent / "py.typed").exists(), f"{top} has no py.typed")


def _methods(kind: type[LockProvider]) -> list[tuple[str, Callable[..., Any]]]:
    own = [(name, value) for name, value in vars(kind).items() if not name.startswith("_") or name == "__init__"]
    return [(name, value) for name, value in own if isinstance(value, FunctionType)]


def _is_annotated(method: Callable[..., Any]) -> bool:
    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    everything = [parameter.annotation for parameter in parameters] + [signature.return_annotation]
    return inspect.Signature.empty not in everything


@check("L7", "import-needs-no-extra", why="listing providers must not fail because one of them lacks a package")
def import_needs_no_extra(bench: Bench) -> None:
    """Importing the provider's module works where no optional package is installed; only its use may fail."""
    said = try_without_extras(bench)["import"]
    bench.expect(not said, f"the import failed: {said}")


@check("L8", "process-is-left-alone", why="a library that changes what all share breaks programs that use it")
def process_is_left_alone(bench: Bench) -> None:
    """An ordinary life changes nothing that the whole process shares: environment, folder, timeouts, signals, hooks."""
    before = _shared_state()
    _script(bench)
    after = _shared_state()
    changed = sorted(name for name in before if before[name] != after[name])
    bench.expect(not changed, f"changed of the process: {', '.join(changed)}")


def _shared_state() -> dict[str, object]:
    return {
        "environment": dict(os.environ),
        "folder": Path.cwd(),
        "timeout of sockets": socket.getdefaulttimeout(),
        "locale": locale.setlocale(locale.LC_ALL),
        "signal handlers": [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        "excepthooks": (sys.excepthook, threading.excepthook),
        "root logger": (logging.root.level, logging.root.disabled, tuple(logging.root.handlers)),
    }


@check(
    "L9",
    "record-does-not-grow",
    why="a job that holds a lock for days ends at the limit of what a record may be",
    level=Level.EXTRA,
    needs=[Capability.RENEWAL],
)
def record_does_not_grow(bench: Bench) -> None:
    """After many renewals the record is hardly longer than after the first."""
    provider = bench.provider()
    peek = bench.hook(provider, "peek")
    lease = provider.renew(bench.acquire(provider, bench.scope()))
    first = len(peek(bench.scope()) or b"")
    for _ in range(_RENEWALS):
        lease = provider.renew(lease)
    last = len(peek(bench.scope()) or b"")
    bench.expect(last <= first + _GROWTH, f"the record grew from {first} to {last} bytes in {_RENEWALS} renewals")
    provider.release(lease)
