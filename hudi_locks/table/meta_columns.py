"""The five columns that Hudi puts before a user's own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.format import META_COLUMNS

__all__ = [
    "COMMIT_SEQNO",
    "COMMIT_TIME",
    "FILE_NAME",
    "PARTITION_PATH",
    "RECORD_KEY",
    "conform",
    "rename_file",
    "stamp_rows",
]

COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME = META_COLUMNS


def stamp_rows(rows: pa.Table, schema: pa.Schema, *, instant: str, seqno_prefix: str, first_seqno: int) -> pa.Table:
    """Give new rows the meta columns of the instant that writes them.

    Args:
        rows: User columns, RECORD_KEY and PARTITION_PATH.
        schema: Of the base file; missing columns become null.
        instant: Requested time of the write.
        seqno_prefix: Middle part of `<instant>_<prefix>_<row>`, unique within the instant for each file.
        first_seqno: Number of the first of these rows.
    """
    numbers = pa.array(np.arange(first_seqno, first_seqno + rows.num_rows)).cast(pa.string())
    stamped = {
        COMMIT_TIME: pa.repeat(instant, rows.num_rows),
        COMMIT_SEQNO: pc.binary_join_element_wise(f"{instant}_{seqno_prefix}", numbers, "_"),
    }
    columns = [stamped[field.name] if field.name in stamped else _column(rows, field) for field in schema]
    return pa.table(columns, schema=schema)


def rename_file(rows: pa.Table, file_name: str) -> pa.Table:
    """Set FILE_NAME: rows that a rewrite leaves alone keep all other meta columns."""
    column = pa.repeat(file_name, rows.num_rows)
    return rows.set_column(rows.schema.get_field_index(FILE_NAME), rows.schema.field(FILE_NAME), column)


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Bring rows of an older schema into `schema`: order, added columns as nulls, types as they are stored."""
    return rows if rows.schema.equals(schema) else pa.table([_column(rows, f) for f in schema], schema=schema)


def _column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    index = rows.schema.get_field_index(field.name)
    if index < 0:
        return pa.nulls(rows.num_rows, field.type)
    column = rows.column(index)
    return column if column.type == field.type else _cast(column, field.type)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """One value in all rows is repeated, which takes less than to look it up for each of them."""
    if pa.types.is_dictionary(column.type) and column.num_chunks == 1 and column.null_count == 0:
        values = column.chunk(0).dictionary
        if len(values) == 1:
            return pa.repeat(values[0], len(column)).cast(kind)
    if pa.types.is_float32(column.type) and pa.types.is_float64(kind):
        return column.cast(pa.string()).cast(kind)  # 0.1 stays 0.1, as for JVM readers
    if pa.types.is_integer(column.type) and pa.types.is_floating(kind):
        return column.cast(kind, safe=False)  # the nearest number, as for JVM readers
    return column.cast(kind)
