"""How a planted fault lets others go on between two of its requests."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["await_others"]


def await_others(is_met: Callable[[], bool]) -> None:
    """Let others go on between two requests, until they have done something, or for a second where nobody does."""
    for _ in range(500):
        if is_met():
            return
        threading.Event().wait(0.002)
