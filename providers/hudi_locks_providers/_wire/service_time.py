"""The clock of a service, as its answers tell it."""

from __future__ import annotations

import threading
from email.utils import parsedate_to_datetime
from typing import Final

from hudi_locks.clock import Clock

__all__ = ["ServiceTime"]

_FRESH_S: Final = 30.0
_REST_OF_SECOND_MS: Final = 999.0


class ServiceTime:
    """A service's time, by the `Date` of its answers and what passed since. Thread-safe.

    Args:
        clock: Counts on between answers.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ahead_ms: float | None = None
        self._heard_at_s = float("-inf")

    def note(self, date: str | None) -> None:
        """Take up the date of an answer, which has whole seconds: the time is kept within the second that it names."""
        if not date:
            return
        self._take(parsedate_to_datetime(date).timestamp() * 1000, _REST_OF_SECOND_MS)

    def note_ms(self, told_ms: int) -> None:
        """Take up a time that the service told to the millisecond, ms since the epoch."""
        self._take(told_ms, 0)

    def _take(self, told_ms: float, rest_ms: float) -> None:
        with self._lock:
            self._heard_at_s = self._clock.monotonic()
            ahead_ms = told_ms - self._heard_at_s * 1000
            known_ms = ahead_ms if self._ahead_ms is None else self._ahead_ms
            self._ahead_ms = min(max(known_ms, ahead_ms), ahead_ms + rest_ms)

    def read_ms(self) -> int | None:
        """Milliseconds since the epoch, up to a second late; None if the service said nothing for half a minute."""
        with self._lock:
            now_s = self._clock.monotonic()
            if self._ahead_ms is None or now_s - self._heard_at_s >= _FRESH_S:
                return None
            return round(now_s * 1000 + self._ahead_ms)
