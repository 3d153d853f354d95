"""Places in the logs of a database, such as 000002.1234: which of two is later (Hudi's MySqlDebeziumAvroPayload)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import UnsupportedTable

__all__ = ["find_malformed", "split_places"]

_FORM: Final = r"^(?P<file>[0-9]{1,18})\.(?P<position>[0-9]{1,18})(?:\..*)?$"
"""What stands behind a second point counts for nothing, as in Hudi."""
_PARTS: Final = ("file", "position")


def split_places(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Number of the file and position of each text; null of null.

    Raises:
        UnsupportedTable: A text is no place.
    """
    malformed = find_malformed(column)
    if malformed is not None:
        message = (
            f"{malformed!r} is no place in the log of a database, by which MySqlDebeziumAvroPayload orders rows: a text"
            " such as 000002.1234, of the number of a file and a position in it, is wanted; JVM Hudi fails at it too"
        )
        raise UnsupportedTable(message, value=malformed)
    found = _match(column)
    return [pc.struct_field(found, name).cast(pa.int64()) for name in _PARTS]


def find_malformed(column: pa.ChunkedArray) -> str | None:
    """A text that is no place; None if there is none."""
    strange = pc.and_(column.is_valid(), pc.is_null(_match(column)))
    return str(column.filter(strange)[0].as_py()) if pc.any(strange).as_py() else None


def _match(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.extract_regex(column.cast(pa.string()), pattern=_FORM)
