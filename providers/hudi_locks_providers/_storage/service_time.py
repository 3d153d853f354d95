"""The clock of a service, as its answers tell it."""

from __future__ import annotations

import threading
from email.utils import parsedate_to_datetime
from typing import Final

from hudi_locks.clock import Clock

__all__ = ["ServiceTime"]

_FRESH_S: Final = 30.0
_SECOND_MS: Final = 1000


class ServiceTime:
    """The service's clock, by the dates of its answers and the time since. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._told_ms = 0
        self._told_at_s = float("-inf")
        self._heard_at_s = float("-inf")

    def note(self, date: str) -> None:
        """Take the date of an answer, which has whole seconds: it was that late at least, and less than one more."""
        told_ms, now_s = round(parsedate_to_datetime(date).timestamp() * 1000), self._clock.monotonic()
        with self._lock:
            self._heard_at_s = now_s
            if not told_ms <= self._reckon(now_s) < told_ms + _SECOND_MS:
                self._told_ms, self._told_at_s = told_ms, now_s

    def read_ms(self) -> int | None:
        """Milliseconds since the epoch; None if the service said nothing for half a minute."""
        with self._lock:
            now_s = self._clock.monotonic()
            return round(self._reckon(now_s)) if now_s - self._heard_at_s < _FRESH_S else None

    def _reckon(self, now_s: float) -> float:
        return self._told_ms + (now_s - self._told_at_s) * 1000
