"""Faults in names, settings and imports."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import ClassVar, Final

from hudi_locks import Clock, ConfigError, Holder, LockScope
from hudi_locks.config import Key
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = ["ClaimsSlips", "GoesByAnotherName", "ImportsLate", "ReadsLoosely"]

_TRIES: Final = Key("hoodie.sample.tries", int, 3, "how often it tries", aliases=("hoodie.sample.attempts",))


class ClaimsSlips(SampleLockProvider):
    """Claims as its own a key that is a slip."""

    short_options: ClassVar[dict[str, str]] = {
        **SampleLockProvider.short_options,
        "wait": "hoodie.write.lock.wait_tme_ms",
    }


class ReadsLoosely(SampleLockProvider):
    """Takes the default where a setting cannot be read, or is given twice."""

    short_options: ClassVar[dict[str, str]] = {
        **SampleLockProvider.short_options,
        "tries": _TRIES.name,
        "attempts": _TRIES.aliases[0],
    }

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.tries = _TRIES.default
        with contextlib.suppress(ConfigError):
            self.tries = self.options.find(_TRIES)


class ImportsLate(SampleLockProvider):
    """Imports an optional package when it is used, and lets the bare error out."""

    def holder(self, scope: LockScope) -> Holder | None:
        """Need pytest for nothing."""
        import pytest

        del pytest
        return super().holder(scope)


class GoesByAnotherName(SampleLockProvider):
    """Says that it is called as another class is."""


GoesByAnotherName.__module__ = SampleLockProvider.__module__
GoesByAnotherName.__qualname__ = SampleLockProvider.__qualname__
