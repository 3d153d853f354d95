"""What can be seen of a process from within: logs, output, threads, descriptors."""

from __future__ import annotations

import logging
from pathlib import Path
from types import TracebackType

__all__ = ["LogCapture", "count_descriptors"]


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


def count_descriptors() -> int | None:
    """How many descriptors this process has open; None where that cannot be told."""
    folder = Path("/proc/self/fd")
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else None
