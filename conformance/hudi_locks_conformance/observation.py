"""What can be seen of a process from within: logs, output, threads, descriptors."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final

__all__ = ["LogCapture", "ThreadWatch", "count_descriptors"]


class LogCapture(logging.Handler):
    """Hears everything that is logged within its block.

    Args:
        level: From which level on; loggers of this package are opened up to it.
    """

    def __init__(self, level: int = logging.DEBUG) -> None:
        super().__init__(level)
        self.records: list[logging.LogRecord] = []
        self._loggers = (logging.getLogger(), logging.getLogger("hudi_locks"))
        self._levels: list[int] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        self.records.append(record)

    def text(self) -> str:
        """All messages, with the tracebacks that came along."""
        formatter = logging.Formatter("%(name)s %(levelname)s %(message)s")
        return "\n".join(formatter.format(record) for record in self.records)

    def __enter__(self) -> LogCapture:
        self._levels = [logger.level for logger in self._loggers]
        for logger in self._loggers:
            logger.setLevel(self.level)
        self._loggers[0].addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loggers[0].removeHandler(self)
        for logger, level in zip(self._loggers, self._levels, strict=True):
            logger.setLevel(level)


class ThreadWatch:
    """Counts the threads that its block brings about: those that its thread starts, and those that these start in turn.

    What other threads of the process start meanwhile is not counted. Blocks may overlap, and one may never end.
    """

    lock: Final = threading.Lock()
    watching: Final[list[ThreadWatch]] = []
    start: ClassVar[Any] = threading.Thread.start

    def __init__(self) -> None:
        self._own = threading.current_thread()
        self._started: set[threading.Thread] = set()

    def count(self) -> int:
        """How many of them are there now."""
        return sum(thread.is_alive() for thread in self._started)

    def __enter__(self) -> ThreadWatch:
        with self.lock:
            if not self.watching:
                ThreadWatch.start = threading.Thread.start
                threading.Thread.start = _start_noted  # type: ignore[method-assign,assignment]
            self.watching.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.lock:
            self.watching.remove(self)
            if not self.watching:
                threading.Thread.start = ThreadWatch.start  # type: ignore[method-assign]

    def note(self, thread: threading.Thread, starter: threading.Thread) -> None:
        """A thread of the process starts another one."""
        if starter is self._own or starter in self._started:
            self._started.add(thread)


def _start_noted(thread: threading.Thread) -> None:
    with ThreadWatch.lock:
        for watch in ThreadWatch.watching:
            watch.note(thread, threading.current_thread())
    ThreadWatch.start(thread)


def count_descriptors() -> int | None:
    """How many descriptors this process has open; None where that cannot be told."""
    folder = Path("/proc/self/fd")
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else None
