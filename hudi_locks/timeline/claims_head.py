"""Where the claim log ends: a hint, galloping, bisection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.errors import StorageError
from hudi_locks.format.claim import PRIVATE_FOLDER, claim_path
from hudi_locks.redaction import open_log
from hudi_locks.storage import Storage

__all__ = ["HeadHint", "find_last", "find_last_claim"]

_PATH: Final = f"{PRIVATE_FOLDER}/head"
_MOST_DIGITS: Final = 20
"""A claim's number has no more."""
_SPACING_S: Final = 1.0
"""Object stores limit how often one object may change; GCS to once a second."""
_log = open_log(__name__)


def find_last(is_there: Callable[[int], bool], start: int) -> int:
    """The last number that is there, given that there are no gaps; 0 if none is.

    Gallops from `start`, then bisects; a start beyond the end costs a second gallop from 0.
    """
    low = start if start == 0 or is_there(start) else 0
    step = 1
    while is_there(low + step):
        low, step = low + step, step * 2
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_there(middle) else (low, middle)
    return low


def find_last_claim(storage: Storage) -> int:
    """The number of the last claim; 0 if there is none."""
    return find_last(lambda number: storage.exists(claim_path(number)), _read_hint(storage))


def _read_hint(storage: Storage) -> int:
    text = (storage.read(_PATH) or b"").strip()
    return int(text) if text.isdigit() and len(text) <= _MOST_DIGITS else 0


class HeadHint:
    """The file that says where the head was lately. A stale, missing or damaged one costs requests, nothing else."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._lock = threading.Lock()
        self._next_s = float("-inf")

    def read(self) -> int:
        """Some number near the head; 0 when nothing is known."""
        return _read_hint(self._storage)

    def write(self, number: int) -> None:
        """Tell the others that `number` is there, at most once a second."""
        if not self._is_due():
            return
        try:
            self._storage.replace(_PATH, b"%d\n" % number)
        except StorageError as error:
            _log.info("the hint file of the claim log was not written, the next head search takes longer: %s", error)

    def _is_due(self) -> bool:
        with self._lock:
            now_s = self._clock.monotonic()
            due = now_s >= self._next_s
            if due:
                self._next_s = now_s + _SPACING_S
            return due
