"""Time: the only module of this package that reads a clock or sleeps.

Everything that waits or measures takes a `Clock`. `SystemClock` is the real one; `ManualClock` stands still until a
test moves it, so that leases of minutes are judged in milliseconds.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from abc import ABC, abstractmethod
from typing import Final

__all__ = ["Clock", "ManualClock", "SystemClock"]

_POLL_S: Final = 0.0005
"""How often a thread parked on a `ManualClock` looks at its event: in real time, since events know no clocks."""
_SETTLE_LOOKS: Final = 6_000
"""How often `advance` looks whether a woken thread has parked again before it takes it for busy: three seconds. A
starved machine has kept a thread from running for more than half of one."""


_Parked = tuple[float, int, threading.Thread, threading.Event]
"""A thread that waits: until when, which one in order of coming, who, and for what."""


class Clock(ABC):
    """Reads and spends time. Thread-safe."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds on a clock that never jumps; only differences mean something."""

    @abstractmethod
    def wall_ms(self) -> int:
        """Milliseconds since the epoch, UTC; may jump."""

    @abstractmethod
    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        """Wait until `event` is set or `timeout_s` seconds passed (None: for ever); return whether it is set."""

    def sleep(self, duration_s: float) -> None:
        """Let `duration_s` seconds pass."""
        self.wait(threading.Event(), duration_s)


class SystemClock(Clock):
    """The machine's clocks."""

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """See `Clock.wall_ms`."""
        return time.time_ns() // 1_000_000

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        """See `Clock.wait`."""
        return event.wait(None if timeout_s is None else min(max(0.0, timeout_s), threading.TIMEOUT_MAX))

    def sleep(self, duration_s: float) -> None:
        """See `Clock.sleep`."""
        time.sleep(max(0.0, duration_s))


class ManualClock(Clock):
    """A clock that moves only when `advance` is called. For tests and the conformance kit.

    Args:
        wall_ms: Where its wall clock starts; `jump_wall` moves it alone, as a wrong NTP server would.
    """

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._lock = threading.Lock()
        self._now_s = 1_000.0
        self._wall_offset_ms = wall_ms - 1_000_000
        self._parked: list[_Parked] = []
        self._serial = itertools.count()

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        with self._lock:
            return self._now_s

    def wall_ms(self) -> int:
        """See `Clock.wall_ms`."""
        with self._lock:
            return round(self._now_s * 1000) + self._wall_offset_ms

    def jump_wall(self, by_ms: int) -> None:
        """Move the wall clock, and not the monotonic one."""
        with self._lock:
            self._wall_offset_ms += by_ms

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        """See `Clock.wait`; virtual time passes only through `advance`."""
        deadline_s = float("inf") if timeout_s is None else self.monotonic() + max(0.0, timeout_s)
        entry = (deadline_s, next(self._serial), threading.current_thread(), event)
        with self._lock:
            heapq.heappush(self._parked, entry)
        try:
            while not event.is_set() and self.monotonic() < deadline_s:
                event.wait(_POLL_S)
        finally:
            with self._lock:
                self._parked.remove(entry)
                heapq.heapify(self._parked)
        return event.is_set()

    def waits(self, thread: threading.Thread) -> bool:
        """Whether `thread` waits on this clock now, with nothing but time to come for it."""
        with self._lock:
            return any(entry[2] is thread and not entry[3].is_set() for entry in self._parked)

    def parked(self) -> int:
        """How many threads wait on this clock now."""
        with self._lock:
            return len(self._parked)

    def advance(self, duration_s: float) -> None:
        """Let `duration_s` seconds pass, waking waiters in the order of their deadlines.

        After each wake-up the woken threads get a moment to park again, so that periodic work (renewals, retries)
        runs as often as it would in real time.
        """
        end_s = self.monotonic() + duration_s
        while due := self._next_due(end_s):
            self._move_to(due[0][0])
            for entry in due:
                self._settle(entry)
        self._move_to(end_s)

    def _next_due(self, end_s: float) -> list[_Parked]:
        """All that wake at the next moment at which anybody does: they wake by themselves once it has come."""
        with self._lock:
            moment_s = self._parked[0][0] if self._parked else float("inf")
            return sorted(entry for entry in self._parked if entry[0] == moment_s) if moment_s <= end_s else []

    def _move_to(self, now_s: float) -> None:
        with self._lock:
            self._now_s = max(self._now_s, now_s)

    def _settle(self, woken: _Parked) -> None:
        for _ in range(_SETTLE_LOOKS):
            if not woken[2].is_alive():
                break
            with self._lock:
                left = woken not in self._parked
                again = any(entry[2] is woken[2] for entry in self._parked)
            if left and again:
                return
            time.sleep(_POLL_S)
        while self._is_parked(woken):
            time.sleep(_POLL_S)

    def _is_parked(self, entry: _Parked) -> bool:
        with self._lock:
            return entry in self._parked
