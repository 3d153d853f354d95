"""Rows that are deletes: by the column `_hoodie_is_deleted`, or by a marker of the table (Hudi's DeleteContext).

Such a row takes out the row of its key as any row replaces another: its ordering value has to be as great. It is never
written to a base file. One that lies in a base file nevertheless, as bulk inserts of the JVM leave them, is a row like
any other to every reader, until a write touches its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.config import Options, table_keys
from hudi_locks.errors import ConfigError

__all__ = ["IS_DELETED", "DeleteMarker", "drop_deletes", "find_deletes", "read_delete_marker"]


@dataclass(frozen=True)
class DeleteMarker:
    """A column whose value says that a row is a delete.

    Attributes:
        column: Its name; a table may lack it.
        value: The value, as text; None for a column of booleans that is true.
    """

    column: str
    value: str | None = None


IS_DELETED: Final = DeleteMarker("_hoodie_is_deleted")
"""What every table has, if it has a column of booleans of this name."""


def read_delete_marker(options: Options) -> DeleteMarker | None:
    """The marker that a table's properties, or a writer's options, name.

    Raises:
        ConfigError: Only one of column and value is there.
    """
    column, value = options.find(table_keys.DELETE_FIELD), options.find(table_keys.DELETE_MARKER)
    if bool(column) != bool(value):
        given, lacking = (table_keys.DELETE_FIELD, table_keys.DELETE_MARKER)[:: 1 if column else -1]
        raise ConfigError(f"{given.name} needs {lacking.name} beside it: a column and its value", key=lacking.name)
    return DeleteMarker(column, value) if column and value else None


def find_deletes(rows: pa.Table, markers: Sequence[DeleteMarker]) -> npt.NDArray[np.bool_] | None:
    """Where rows are deletes; None if nowhere."""
    masks = [mask for marker in markers if (mask := _find(rows, marker)) is not None]
    if not masks:
        return None
    found = reduce(np.logical_or, masks)
    return found if found.any() else None


def drop_deletes(rows: pa.Table, markers: Sequence[DeleteMarker]) -> pa.Table:
    """The rows that are none."""
    deletes = find_deletes(rows, markers)
    return rows if deletes is None else rows.filter(pa.array(~deletes))


def _find(rows: pa.Table, marker: DeleteMarker) -> npt.NDArray[np.bool_] | None:
    if marker.column not in rows.schema.names:
        return None
    column = rows.column(marker.column)
    if marker.value is None and not pa.types.is_boolean(column.type):
        return None
    marked = column if marker.value is None else pc.equal(column.cast(pa.string()), marker.value)
    return np.asarray(pc.fill_null(marked, fill_value=False).to_numpy(), np.bool_)
