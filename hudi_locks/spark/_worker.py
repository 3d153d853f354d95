"""A task as a worker of PySpark runs it, quicker than that would by itself. Runs on executors.

docs/design.md has what each part gains; `hudi_locks.spark._compat` has their switches.
"""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final
from zipimport import zipimporter

import pyarrow as pa

__all__ = ["QUICKENING", "WorkerTask", "acknowledge_early", "forget_archives", "freeze_imported", "run_task"]

_AT_ONCE: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
_OPEN_FILES: Final = Path("/proc/self/fd")
QUICKENING: Final = ("connection", "archives", "freeze")
WorkerTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


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


@cache
def freeze_imported() -> None:
    """Once in a process: PySpark collects garbage between tasks, through all that was ever imported.

    To ask Python whether it was done takes longer than the rest of an empty task.
    """
    gc.freeze()


def forget_archives() -> None:
    """PySpark has every archive that something was imported from read anew for each task: that is most of an empty one.

    Whatever is imported next finds them again.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)


def run_task(
    task: WorkerTask, batches: Iterable[pa.RecordBatch], *, quick: Collection[str] = QUICKENING
) -> Iterator[pa.RecordBatch]:
    """Run a task, and leave the process so that the next one begins sooner. Runs on executors.

    Args:
        task: Made on the driver.
        batches: Its input.
        quick: Which of connection, archives and freeze are quickened.
    """
    if "connection" in quick:
        acknowledge_early()
    try:
        yield from task(batches)
    finally:
        if "archives" in quick:
            forget_archives()
        if "freeze" in quick:
            freeze_imported()
