"""Bytes that were read and do not say what they should."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from hudi_locks.errors import DamagedTable, NoSuchFile, StorageError

__all__ = ["AMISS", "interpreting", "reading_parquet"]

AMISS: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError, StopIteration, struct.error,
    TypeError, ValueError, zlib.error,
)  # fmt: skip
"""What a field that is missing, is of another type or out of bounds, or is nested too deeply, comes out as."""


@contextmanager
def interpreting(content: str, path: str) -> Iterator[None]:
    """Read `content` out of what `path` holds.

    Raises:
        DamagedTable: The block met a field that is missing or of another type; it names `path`.
    """
    try:
        yield
    except AMISS as error:
        raise DamagedTable(f"{path} holds no {content}: {type(error).__name__}: {error}", path=path) from error


@contextmanager
def reading_parquet(what: str, path: str) -> Iterator[None]:
    """Read Parquet that is `what` out of `path`. Arrow tells damage by an OSError without a number, too.

    Raises:
        DamagedTable: The bytes are no such Parquet, or the file is not there; it names `path`.
        StorageError: The store failed to give them.
    """
    try:
        yield
    except NoSuchFile as error:
        raise DamagedTable(f"{path} is gone: cleaned or removed since the timeline was loaded", path=path) from error
    except StorageError:
        raise
    except (pa.ArrowException, OSError, *AMISS) as error:
        if isinstance(error, OSError) and error.errno:
            raise StorageError(f"cannot read {path}: {error}", path=path, errno=error.errno) from error
        message = f"{path}: {what} cannot be read as Parquet: {type(error).__name__}: {error}"
        raise DamagedTable(message, path=path) from error
