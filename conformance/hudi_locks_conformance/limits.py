"""An end for calls that have none: a check that does not come back is a finding, and the run goes on."""

from __future__ import annotations

import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from hudi_locks import SystemClock
from hudi_locks_conformance.check import Late, Stuck

__all__ = ["NO_LIMIT", "PATIENCE_S", "Hung", "Limit", "Patience", "StallWatch", "call_within"]

T = TypeVar("T")
PATIENCE_S: Final = 90.0
"""Real seconds without any progress after which the kit waits no longer: a starved service has taken a third of it."""
_STALL_S: Final = 0.25
"""Without running for so long, a process may lose a short session or lease that it would have kept alive."""
_LOOK_S: Final = 0.05
_MOST_FRAMES: Final = 3
_WAITING: Final = ("threading.py", "clock.py", "clocks.py")
"""Files in which a call merely waits: what called them says more."""


class Hung(Exception):  # an outcome, not an error
    """A call did not come back in time; says where it was."""


@dataclass(frozen=True)
class Limit:
    """How long a call may take, and who hears meanwhile that it is still under way.

    Attributes:
        longest_s: Real seconds.
        every_s: Real seconds between two words about it.
        on_wait: Told how long it has taken so far, in seconds.
    """

    longest_s: float
    every_s: float = 10.0
    on_wait: Callable[[float], None] = field(default=lambda _: None)


NO_LIMIT: Final = Limit(float("inf"))


class Patience:
    """An end, in real time, for a loop that looks again and again: a busy machine lets it look often, or hardly ever.

    Args:
        longest_s: Real seconds from now, or from the last `renew`; by default `PATIENCE_S`.
    """

    def __init__(self, longest_s: float | None = None) -> None:
        self._longest_s = PATIENCE_S if longest_s is None else longest_s
        self._ends_s = 0.0
        self.renew()

    def renew(self) -> None:
        """Begin anew, since something went on."""
        self._ends_s = SystemClock().monotonic() + self._longest_s

    @property
    def is_over(self) -> bool:
        """Whether it is over."""
        return SystemClock().monotonic() >= self._ends_s

    def expect_left(self, said: str, kind: type[Late] = Late) -> None:
        """Return while it lasts.

        Raises:
            Late: It is over; `kind` may be a narrower one, such as `Stuck`.
        """
        if self.is_over:
            raise kind(f"{said} within {self._longest_s:g} s")

    def await_end(self, thread: threading.Thread, said: str) -> None:
        """Return when a thread has ended.

        Raises:
            Stuck: It does not in time.
        """
        thread.join(max(0.0, self._ends_s - SystemClock().monotonic()))
        if thread.is_alive():
            raise Stuck(f"{said} within {self._longest_s:g} s")


class StallWatch:
    """Watches, while its block runs, whether this process runs.

    Attributes:
        longest_s: The longest time in which it did not, in real seconds.
    """

    def __init__(self) -> None:
        self.longest_s: float = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stall watch", daemon=True)

    def __enter__(self) -> StallWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def has_stalled(self) -> bool:
        """Whether the machine may be the reason of a hold that ended too early."""
        return self.longest_s >= _STALL_S

    def _watch(self) -> None:
        clock = SystemClock()
        looked_s = clock.monotonic()
        while not clock.wait(self._over, _LOOK_S):
            now_s = clock.monotonic()
            self.longest_s = max(self.longest_s, now_s - looked_s - _LOOK_S)
            looked_s = now_s


class _Call(Generic[T]):
    def __init__(self, wanted: Callable[[], T]) -> None:
        self._wanted = wanted
        self.values: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.values.append(self._wanted())
        except BaseException as error:  # noqa: BLE001  # handed to who asked
            self.error = error


def call_within(limit: Limit, wanted: Callable[[], T]) -> T:
    """What a call answers or raises, which runs on a thread of its own.

    Raises:
        Hung: It takes longer than the limit. Its thread is left alone; what it did to the process's output is undone.
    """
    call = _Call(wanted)
    thread = threading.Thread(target=call.run, name="conformance check", daemon=True)
    with _kept_output(thread):
        thread.start()
        _await(thread, limit)
        if thread.is_alive():
            raise Hung(f"did not come back within {limit.longest_s:g} s; it was at {_say_place(thread)}")
    if call.error is not None:
        raise call.error
    return call.values[0]


def _await(thread: threading.Thread, limit: Limit) -> None:
    clock = SystemClock()
    began_s = clock.monotonic()
    while thread.is_alive():
        left_s = limit.longest_s - (clock.monotonic() - began_s)
        thread.join(max(0.0, min(limit.every_s, left_s)))
        took_s = clock.monotonic() - began_s
        if took_s >= limit.longest_s:
            return
        if thread.is_alive():
            limit.on_wait(took_s)


@contextmanager
def _kept_output(thread: threading.Thread) -> Iterator[None]:
    """Give the process its output and its warnings back where the thread, which had replaced them, does not end."""
    output, filters, show = (sys.stdout, sys.stderr), warnings.filters, warnings.showwarning
    try:
        yield
    finally:
        if thread.is_alive():
            sys.stdout, sys.stderr = output
            warnings.filters, warnings.showwarning = filters, show  # as `catch_warnings` does


def _say_place(thread: threading.Thread) -> str:
    """Where a thread is: the innermost lines that are not mere waiting, the last call first."""
    frame: Any = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  # the one way to see it
    if frame is None:
        return "its end"
    lines = [one for one in traceback.extract_stack(frame) if Path(one.filename).name not in _WAITING]
    return " < ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in lines[: -1 - _MOST_FRAMES : -1])
