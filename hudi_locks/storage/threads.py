"""Many requests to a store side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

__all__ = ["map_in_threads"]

_THREADS: Final = 16

T = TypeVar("T")
R = TypeVar("R")


def map_in_threads(call: Callable[[T], R], arguments: Iterable[T], *, threads: int = _THREADS) -> list[R]:
    """The results of `call` for each argument, in order; the first error is raised once all calls have ended."""
    work = list(arguments)
    if len(work) < 2:
        return [call(argument) for argument in work]
    with ThreadPoolExecutor(min(threads, len(work))) as pool:
        return list(pool.map(call, work))
