"""A clock of one's own for each client: one that goes wrong beside the bench's."""

from __future__ import annotations

import threading
from typing import Final

from hudi_locks import Clock

__all__ = ["OwnClock"]

_ROUNDING_S: Final = 1e-9
"""Waits are longer by this: what was waited for is past also where converting it to and fro is not exact."""


class OwnClock(Clock):
    """A clock made of another one, right at first. Time passes on it when it passes on the other.

    Args:
        base: The other one.
        rate: How many seconds of its monotonic clock pass in one of the other; its wall clock is kept in step.
        skew_ms: By how much its wall clock is ahead.
    """

    def __init__(self, base: Clock, *, rate: float = 1.0, skew_ms: int = 0) -> None:
        self._base = base
        self._rate = rate
        self._began_s = base.monotonic()
        self._ahead_s = 0.0
        self._skew_ms = skew_ms

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return self._began_s + (self._base.monotonic() - self._began_s) * self._rate + self._ahead_s

    def wall_ms(self) -> int:
        """See `Clock.wall_ms`."""
        return self._base.wall_ms() + self._skew_ms

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        """See `Clock.wait`."""
        return self._base.wait(event, None if timeout_s is None else timeout_s / self._rate + _ROUNDING_S)

    def jump_wall(self, by_ms: int) -> None:
        """Move the wall clock alone, as somebody who corrects it does."""
        self._skew_ms += by_ms

    def skip(self, duration_s: float) -> None:
        """Let time pass that only this client notices, as a machine that slept does afterwards."""
        self._ahead_s += duration_s
        self._skew_ms += round(1000 * duration_s)
