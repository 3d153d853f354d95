"""Columns that Parquet files have as dictionaries. Texts are merged as such: four bytes for each row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_locks.table.meta_columns import COMMIT_SEQNO, RECORD_KEY

__all__ = ["find_encoded", "find_repetitive"]

_UNIQUE: Final = (RECORD_KEY, COMMIT_SEQNO)
_SAMPLE_ROWS: Final = 1 << 15
_MOST_DISTINCT: Final = 0.5
_LENGTH_BYTES: Final = 4
"""What a text that is not in a dictionary takes at least."""


def find_encoded(metadata: pq.FileMetaData, names: Collection[str]) -> list[str]:
    """Those of these columns that are text, and in dictionaries throughout, as far as their sizes tell."""
    found = []
    for place in range(metadata.num_columns):
        column = metadata.schema.column(place)
        if column.path in names and column.logical_type.type == "STRING" and _is_encoded(metadata, place):
            found.append(str(column.path))
    return found


def _is_encoded(metadata: pq.FileMetaData, place: int) -> bool:
    chunks = [metadata.row_group(group).column(place) for group in range(metadata.num_row_groups)]
    return all(
        chunk.has_dictionary_page and chunk.total_uncompressed_size < _LENGTH_BYTES * chunk.num_values
        for chunk in chunks
    )


def find_repetitive(rows: pa.Table) -> list[str]:
    """Columns that a dictionary makes smaller; on others it makes files larger and Spark's reads slower."""
    some = rows.slice(0, _SAMPLE_ROWS)
    most = some.num_rows * _MOST_DISTINCT
    return [name for name in some.schema.names if name not in _UNIQUE and _count_distinct(some.column(name)) <= most]


def _count_distinct(column: pa.ChunkedArray) -> int:
    return 0 if pa.types.is_nested(column.type) else int(pc.count_distinct(column).as_py())
