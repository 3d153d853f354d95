"""A module of a lock provider that cannot be imported without an optional package. Not imported by its package."""

from __future__ import annotations

import pytest

from hudi_locks_conformance.sample import SampleLockProvider

__all__ = ["ImportsEagerly"]


class ImportsEagerly(SampleLockProvider):
    """Needs a package that it does not even use."""

    needed: str = pytest.__name__
