"""Bytes that were read and do not say what they should."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hudi_locks.errors import DamagedTable

__all__ = ["interpreting"]

_AMISS: Final = (AttributeError, LookupError, TypeError, ValueError)
"""What a field that is missing, or is of another type, comes out as."""


@contextmanager
def interpreting(content: str, path: str) -> Iterator[None]:
    """Read `content` out of what `path` holds.

    Raises:
        DamagedTable: The block met a field that is missing or of another type; it names `path`.
    """
    try:
        yield
    except _AMISS as error:
        raise DamagedTable(f"{path} holds no {content}: {type(error).__name__}: {error}", path=path) from error
