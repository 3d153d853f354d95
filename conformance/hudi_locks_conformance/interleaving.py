"""One call that is stopped at a line of the provider's own code, while another client does as it likes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeAlias

from hudi_locks import LockProvider
from hudi_locks_conformance.bench import Answer
from hudi_locks_conformance.limits import Patience

__all__ = ["Line", "find_lines", "stop_at", "thin_out"]

Line: TypeAlias = tuple[str, int]
"""A file and a line of it."""
_PATIENCE_S: Final = 0.25
"""How long the call stays stopped where the other client waits for it: it may have a lock of the operating system."""


def find_lines(kind: type[LockProvider], call: Callable[[], Any]) -> list[Line]:
    """The lines of the provider's own package that a call passes, in the order of the first pass."""
    seen: dict[Line, None] = {}
    with _traced(kind, lambda line: seen.setdefault(line)):
        call()
    return list(seen)


def thin_out(lines: list[Line], most: int) -> list[Line]:
    """At most so many of them, evenly spread, the first among them."""
    return lines[:: max(1, -(-len(lines) // most))]


def stop_at(
    line: Line,
    kind: type[LockProvider],
    call: Callable[[], Any],
    meanwhile: Callable[[], Any],
    *,
    patience_s: float = _PATIENCE_S,
) -> list[Answer]:
    """How `call` ended, which was stopped before `line`, and `meanwhile`, which ran while it was stopped.

    Where `meanwhile` does not come back within `patience_s` of real time, `call` goes on beside it. Where `call` never
    comes to the line, `meanwhile` runs after it.

    Raises:
        Stuck: `meanwhile` does not come back.
    """
    answers, threads = [Answer(), Answer()], list[threading.Thread]()

    def run(number: int, wanted: Callable[[], Any]) -> None:
        try:
            answers[number].value = wanted()
        except Exception as error:  # noqa: BLE001  # handed to the check, which judges it
            answers[number].error = error

    def start(patience_s: float) -> None:
        threads.append(threading.Thread(target=run, args=(1, meanwhile), daemon=True))
        threads[0].start()
        threads[0].join(patience_s)

    def look(reached: Line) -> None:
        if reached == line and not threads:
            start(patience_s)

    with _traced(kind, look):
        run(0, call)
    if not threads:
        start(0.0)
    Patience().await_end(threads[0], "a call that began while another one was stopped did not come back")
    return answers


@contextmanager
def _traced(kind: type[LockProvider], on_line: Callable[[Line], object]) -> Iterator[None]:
    """Tell of each line of the provider's own that this thread is about to run."""
    own = _packages(kind)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not _is_of(frame, own):
            return None
        if event == "line":
            on_line((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def _packages(kind: type[LockProvider]) -> tuple[str, ...]:
    modules = [base.__module__ for base in kind.__mro__ if base not in (object, *LockProvider.__mro__)]
    return tuple({module.rpartition(".")[0] or module for module in modules})


def _is_of(frame: FrameType, packages: tuple[str, ...]) -> bool:
    name = frame.f_globals.get("__name__", "")
    return name != __name__ and any(name == package or name.startswith(f"{package}.") for package in packages)
