"""The lock client of a Python worker: one for each set of options, since tasks are many and connections cost."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from hudi_locks.lock import LockManager
from hudi_locks.lock.forking import generation

__all__ = ["manager_of"]


def manager_of(options: Mapping[str, object]) -> LockManager:
    """The manager of this process for these options; it lives as long as the process."""
    return _make(generation(), tuple(sorted((name, str(value)) for name, value in options.items())))


@lru_cache(maxsize=8)
def _make(_: int, options: tuple[tuple[str, str], ...]) -> LockManager:
    return LockManager.from_options(dict(options), application="early conflict detection")
