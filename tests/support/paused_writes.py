"""A write on a thread of its own that waits at a named point until it is let go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hudi_locks.transaction import StopPoint

DEADLINE_S = 600
"""Long, for a machine that does much else."""


class PausedWrite:
    """A write that has come to its point.

    Attributes:
        result: What it returned, after `finish`; None if it raised.
        error: What it raised.
    """

    def __init__(self, table: Any, point: StopPoint, write: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self._reached, self._go = threading.Event(), threading.Event()
        context = table._open().transactions.coordinator
        object.__setattr__(context, "trace", lambda at: self._stop() if at is point else None)
        self._thread = threading.Thread(target=self._run, args=(write,))
        self._thread.start()
        assert self._reached.wait(DEADLINE_S), f"the write never came to {point.value}: {self.error}"

    def resume(self) -> None:
        """Let it go on."""
        self._go.set()

    def finish(self) -> Any:
        """Let it go on, and wait for its end."""
        self.resume()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        return self.result

    def _stop(self) -> None:
        if not self._reached.is_set():
            self._reached.set()
            self._go.wait(DEADLINE_S)

    def _run(self, write: Callable[[], Any]) -> None:
        try:
            self.result = write()
        except BaseException as error:
            self.error = error


@contextmanager
def paused(table: Any, point: StopPoint, write: Callable[[], Any]) -> Iterator[PausedWrite]:
    """Begin `write`, which `table` does, and have it wait at `point` until it is told to finish, or the block ends."""
    pause = PausedWrite(table, point, write)
    try:
        yield pause
    finally:
        pause.finish()
