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
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"

    @property
    def replaces(self) -> bool:
        """Whether it ends every file group of a partition instead of looking for keys."""
        return self in (Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE, Operation.DELETE_PARTITION)

    @property
    def action(self) -> str:
        """Action of its instants on the timeline."""
        return "replacecommit" if self.replaces else "commit"
