"""The clock of the bench, and one of its own for each client, which goes wrong beside it."""

from __future__ import annotations

import threading
from typing import Final

from hudi_locks import Clock, ManualClock
from hudi_locks_conformance.check import Violation

__all__ = ["BenchClock", "OwnClock"]

_STEP_S: Final = 0.05
_LONGEST_WAIT_S: Final = 3_600.0
_LONGEST_IN_ALL_S: Final = 6 * 3_600.0
"""No check has a reason to let the kit's own thread wait longer; a provider that tries for ever does."""

_ROUNDING_S: Final = 1e-9
"""Waits are longer by this: what was waited for is past also where converting it to and fro is not exact."""


class BenchClock(ManualClock):
    """A virtual clock on which the kit's own thread may wait too: nobody else would let time pass meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self._mover = threading.current_thread()
        self._waited_s = 0.0

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        """See `Clock.wait`.

        Raises:
            Violation: The kit's own thread would wait for longer than an hour, or for more than six in all.
        """
        if threading.current_thread() is not self._mover:
            return super().wait(event, timeout_s)
        began_s = self.monotonic()
        ends_s = began_s + (float("inf") if timeout_s is None else timeout_s)
        while not event.is_set() and self.monotonic() < ends_s:
            if self.monotonic() - began_s >= _LONGEST_WAIT_S:
                raise Violation(f"a call waits for more than {_LONGEST_WAIT_S:.0f} s")
            self._expect_an_end()
            self.advance(min(_STEP_S, ends_s - self.monotonic()))
        return event.is_set()

    def _expect_an_end(self) -> None:
        self._waited_s += _STEP_S
        if self._waited_s > _LONGEST_IN_ALL_S:
            raise Violation(f"a call tries again for more than {_LONGEST_IN_ALL_S / 3600:.0f} hours")


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
