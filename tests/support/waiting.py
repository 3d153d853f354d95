"""The one way in which tests wait for what other threads and processes do."""

from __future__ import annotations

from collections.abc import Callable

from hudi_locks import SystemClock

__all__ = ["until"]

_POLL_S = 0.002
_PATIENCE_S = 60.0


def until(condition: Callable[[], object], patience_s: float = _PATIENCE_S, *, every_s: float = _POLL_S) -> bool:
    """Whether the condition comes true, asked again and again; where others are starved that may take long."""
    clock = SystemClock()
    ends_s = clock.monotonic() + patience_s
    while not condition():
        if clock.monotonic() > ends_s:
            return False
        clock.sleep(every_s)
    return True
