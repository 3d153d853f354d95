"""Many requests to a store side by side, and one ahead of its use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Final, TypeVar

__all__ = ["map_in_threads", "reading_ahead"]

_THREADS: Final = 16

T = TypeVar("T")
R = TypeVar("R")


def map_in_threads(call: Callable[[T], R], arguments: Iterable[T], *, threads: int = _THREADS) -> list[R]:
    """The results of `call` for each argument, in order; the first error is raised once all calls have ended."""
    work = list(arguments)
    if len(work) < 2 or threads < 2:
        return [call(argument) for argument in work]
    with ThreadPoolExecutor(min(threads, len(work))) as pool:
        return list(pool.map(call, work))


@contextmanager
def reading_ahead(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """The same items, each made in a thread while the one before it is used; the first is begun at once."""
    with ThreadPoolExecutor(1) as pool:
        yield _take_ahead(pool, items)


def _take_ahead(pool: ThreadPoolExecutor, items: Iterator[T]) -> Iterator[T]:
    def take() -> list[T]:
        return list(islice(items, 1))

    return _drain(pool.submit(take), lambda: pool.submit(take))


def _drain(first: Future[list[T]], begin_next: Callable[[], Future[list[T]]]) -> Iterator[T]:
    coming = first
    while taken := coming.result():
        coming = begin_next()
        yield from taken
