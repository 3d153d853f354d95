"""What a write does with its rows."""

from __future__ import annotations

import enum

__all__ = ["Operation"]


class Operation(enum.Enum):
    """The operations; the values are Hudi's, of `hoodie.datasource.write.operation`."""

    INSERT = "insert"
    UPSERT = "upsert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
