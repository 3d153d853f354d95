"""Many requests at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

__all__ = ["run_all", "unwrap"]

T = TypeVar("T")
_MOST_AT_ONCE: Final = 64


def run_all(calls: Iterable[Callable[[], T]]) -> list[T | Exception]:
    """Call all, most of them at the same time; what each returned or raised, in their order."""
    given = list(calls)
    if len(given) < 2:  # a thread for one call would be one too many
        return [_catch(call) for call in given]
    try:
        with ThreadPoolExecutor(min(_MOST_AT_ONCE, len(given)), thread_name_prefix="hudi-locks") as pool:
            return list(pool.map(_catch, given))
    except RuntimeError:  # the interpreter is about to end, and starts no more threads
        return [_catch(call) for call in given]


def _catch(call: Callable[[], T]) -> T | Exception:
    try:
        return call()
    except Exception as error:  # noqa: BLE001  # handed to the caller, who settles all of them first
        return error


def unwrap(results: Iterable[T | Exception]) -> list[T]:
    """The results of `run_all`; raises the first error among them."""
    values = []
    for result in results:
        if isinstance(result, Exception):
            raise result
        values.append(result)
    return values
