"""Hearing on the driver of a conflict that a task has found, while the tasks of the write are at work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.early_conflict.early_conflict import find_reported
from hudi_locks.errors import StorageError
from hudi_locks.redaction import open_log
from hudi_locks.storage import Storage

__all__ = ["ConflictWatch"]

_PAUSE_S: Final = 0.25
_log = open_log(__name__)


class ConflictWatch:
    """Calls back once, on a thread of its own, when a task has reported a conflict. A context manager.

    Args:
        storage: Of the table.
        requested: Requested time of the write.
        callback: What ends the work of the write.
        clock: Spaces out the looks.
    """

    def __init__(self, storage: Storage, requested: str, *, callback: Callable[[], None], clock: Clock) -> None:
        self._storage = storage
        self._requested = requested
        self._callback = callback
        self._clock = clock
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"early-conflict-{requested}", daemon=True)

    def _run(self) -> None:
        while not self._clock.wait(self._ended, _PAUSE_S):
            if self._look():
                self._callback()
                return

    def _look(self) -> bool:
        try:
            return find_reported(self._storage, self._requested) is not None
        except StorageError as error:
            _log.warning("%s: looked for reported conflicts in vain, and will again: %s", self._requested, error)
            return False

    def __enter__(self) -> ConflictWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
