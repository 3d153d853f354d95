"""What is left of a command that is told to end."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["told_to_end", "unwind_at_sigterm"]

_SIGNALLED: Final = 128
"""And the signal's number, as shells tell it."""


@contextmanager
def unwind_at_sigterm() -> Iterator[None]:
    """Let SIGTERM raise `SystemExit` inside, with status 143; without that the process ends where it stands.

    Signals reach the main thread alone: beside it nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(_SIGNALLED + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def told_to_end() -> Iterator[threading.Event]:
    """Set when the process is told to end, by SIGTERM or SIGINT."""
    event = threading.Event()
    before = {number: signal.signal(number, lambda *_: event.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
