"""Avro records in bytes, and bytes of any kind that do not say what they should."""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from hudi_locks.errors import DamagedTable, NoSuchFile, StorageError

__all__ = ["AMISS", "MAGIC", "UNREADABLE", "decode_record", "encode_record", "interpreting", "reading_parquet"]

MAGIC: Final = b"Obj\x01"
"""How an Avro object container begins."""

AMISS: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError, StopIteration, struct.error,
    TypeError, ValueError, zlib.error,
)  # fmt: skip
"""What a field that is missing, is of another type or out of bounds, or is nested too deeply, comes out as."""
UNREADABLE: Final = (*AMISS, SchemaParseException, UnknownType)
"""What fastavro raises on bytes that are no container: it has no root of its own."""


def encode_record(schema: Any, record: Mapping[str, Any]) -> bytes:
    """One datum in an Avro object container, codec null. The same record always gives the same bytes."""
    out = io.BytesIO()
    marker = hashlib.sha256(schema["name"].encode()).digest()[:16]
    fastavro.writer(out, schema, [record], codec="null", sync_marker=marker)
    return out.getvalue()


def decode_record(data: bytes, path: str) -> dict[str, Any]:
    """The only datum of an Avro object container, read by the schema that it brings along, up to its last byte.

    Raises:
        DamagedTable: The bytes are no such container; it names `path`.
    """
    try:
        reader = fastavro.reader(io.BytesIO(data))
        record = next(reader)
        if next(reader, None) is not None:  # which looks for the mark behind the first
            raise ValueError("a second record")
    except UNREADABLE as error:
        found = f"{len(data)} bytes" if data else "an empty file"
        message = f"{path} holds {found} and no Avro record that can be read ({type(error).__name__}: {error})"
        raise DamagedTable(message, path=path) from error
    if not isinstance(record, dict):
        raise DamagedTable(f"{path} holds no Avro record but {type(record).__name__}", path=path)
    return record


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
        said = f"{type(error).__name__}: {error}"
        message = f"{path}: {what} cannot be read as Parquet ({said}); bring it back from a copy, or restore the table"
        raise DamagedTable(message, path=path) from error
