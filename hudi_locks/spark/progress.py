"""What a person at a terminal sees while a write runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

__all__ = ["show_progress"]


@contextmanager
def show_progress(title: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done, if that is a terminal; nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    console = Console(stderr=True)
    with console.status(title) as status:
        yield lambda step: status.update(f"{title}: {step}")
