"""A thread of its own for what a process does beside its writes. Runs on the driver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hudi_locks.errors import HudiLocksError
from hudi_locks.redaction import open_log
from hudi_locks.spark.operation import WriteResult

__all__ = ["SERVICE_ERRORS", "BackgroundThread"]

SERVICE_ERRORS: Final[tuple[type[Exception], ...]] = (HudiLocksError, PySparkException, Py4JError)
"""What a table service may fail with after a commit that stands: a warning, since the write need not be repeated."""
_log = open_log(__name__)


class BackgroundThread:
    """Does what it is told to once for each time that it is asked, one after the other. Thread-safe.

    The table lock is taken only to schedule and to publish, so that writes go on meanwhile. When the process ends, what
    is under way dies with it, and the next one plans it anew.

    Args:
        name: Of the service, for a person.
        run: Does it if that is due; None if it was not.

    Attributes:
        results: What was done so far.
        failures: What went wrong so far.
    """

    def __init__(self, name: str, run: Callable[[], WriteResult | None]) -> None:
        self._name = name
        self._do = run
        self._lock = threading.Lock()
        self._is_asked = False
        self._thread: threading.Thread | None = None
        self.results: list[WriteResult] = []
        self.failures: list[BaseException] = []

    def ask(self) -> None:
        """Look, on the thread, whether it is due, once more if the thread is at work."""
        with self._lock:
            self._is_asked = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Return when nothing is asked for any more."""
        with self._lock:  # a thread that was made and not yet started cannot be joined
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while self._take():
            self._work()

    def _work(self) -> None:
        try:
            result = self._do()
        except SERVICE_ERRORS as error:
            self.failures.append(error)
            _log.warning("%s beside the writes failed, the next commit tries again: %s", self._name, error)
        else:
            self.results += [] if result is None else [result]

    def _take(self) -> bool:
        with self._lock:
            is_asked, self._is_asked = self._is_asked, False
            if not is_asked:
                self._thread = None
            return is_asked
