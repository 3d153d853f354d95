"""The connection of a PySpark worker to its JVM, over which a task comes in several small parts."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["acknowledge_early"]

_AT_ONCE: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
_OPEN_FILES: Final = Path("/proc/self/fd")


def acknowledge_early() -> None:
    """Acknowledge what this process has read so far, and from now on the first part of each of its tasks.

    TCP holds the second part of a small task back until the first is acknowledged, with which Linux waits for 40 ms:
    longer than the task takes. To be called when a task begins, before it asks for rows: with PySpark 4 these are the
    second part. With 3.5 that comes earlier, while a task is set up. Runs on executors. Does nothing on other systems
    than Linux, and for connections other than TCP.
    """
    if _AT_ONCE is None or not _OPEN_FILES.is_dir():
        return
    _acknowledge_all()
    if not any(isinstance(finder, _SetupListener) for finder in sys.meta_path):
        sys.meta_path.append(_SetupListener())


class _SetupListener:
    """Finds no modules: until 4.1 PySpark has every finder forget what it knows while it sets up a task."""

    def find_spec(self, *_: object) -> None:
        """Leave every module to others."""

    def invalidate_caches(self) -> None:
        """Called when the first part of a task was read, and the second is about to be."""
        _acknowledge_all()


def _acknowledge_all() -> None:
    for link in _OPEN_FILES.iterdir():
        with suppress(OSError):  # no TCP connection, or closed meanwhile
            _acknowledge(int(link.name))


def _acknowledge(descriptor: int) -> None:
    borrowed = socket.socket(fileno=descriptor)
    try:
        borrowed.setsockopt(socket.IPPROTO_TCP, _AT_ONCE or 0, 1)
    finally:
        borrowed.detach()
