"""What must happen although nobody calls: removing orphans, watching held nodes, giving up a silent session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.redaction import open_log

__all__ = ["Keeper"]

_logger = open_log(__name__)
_TICK_S: Final = 0.1
_JOIN_S: Final = 5.0


class Keeper:
    """A daemon thread that calls `tend` ten times a second while there is something to do, and sleeps otherwise.

    Args:
        tend: Returns whether there is more to do soon.
    """

    def __init__(self, tend: Callable[[], bool], clock: Clock) -> None:
        self._tend = tend
        self._clock = clock
        self._wake = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._idle = True
        self._closed = threading.Event()

    def nudge(self) -> None:
        """There is something to do; cheap when it is awake already."""
        if self._idle and not self._closed.is_set():
            self._idle = False
            if self._thread is None:
                self._start()
            self._wake.set()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._work, name="hudi-locks-zookeeper", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while not self._closed.is_set():
            self._clock.wait(self._wake, None)
            self._wake.clear()
            while not self._closed.is_set() and self._tend_once():
                self._clock.wait(self._closed, _TICK_S)
            self._idle = True
            if self._tend_once():
                self.nudge()

    def _tend_once(self) -> bool:
        try:
            return self._tend()
        except Exception:  # whatever it is, what it looks after must not be left alone
            _logger.exception("looking after ZooKeeper locks failed; it is tried again")
            return True

    def close(self) -> None:
        """End the thread. May be called from any thread, also while another one starts it."""
        self._closed.set()
        self._wake.set()
        with self._starting:  # a thread that was made and not yet started cannot be joined
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_S)
