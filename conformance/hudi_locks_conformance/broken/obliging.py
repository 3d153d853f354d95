"""A module of a lock provider that has whatever it is asked for."""

from __future__ import annotations

from hudi_locks_conformance.sample import SampleLockProvider

__all__ = ["Obliging"]


class Obliging(SampleLockProvider):
    """Is called as anybody likes."""


def __getattr__(name: str) -> type[SampleLockProvider]:
    if name.startswith("__"):
        raise AttributeError(name)
    return Obliging
