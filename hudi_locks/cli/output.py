"""Where tables are printed."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console

__all__ = ["open_console"]

_WITHOUT_TERMINAL: Final = 100_000
"""Columns of a pipe or file: as many as anything printed takes, so that nothing is cut."""


def open_console() -> Console:
    """Standard output: as wide as the terminal, and without one as wide as it takes."""
    return Console(soft_wrap=True, width=None if sys.stdout.isatty() else _WITHOUT_TERMINAL)
