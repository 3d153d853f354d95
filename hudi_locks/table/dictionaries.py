"""Columns that Parquet files have as dictionaries, or as one value. Texts are merged as such: a few bytes a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_locks.table.meta_columns import COMMIT_SEQNO, RECORD_KEY

__all__ = ["add_single", "find_encoded", "find_repetitive", "find_single"]

_UNIQUE: Final = (RECORD_KEY, COMMIT_SEQNO)
_SAMPLE_ROWS: Final = 1 << 15
_MOST_DISTINCT: Final = 0.5
_LENGTH_BYTES: Final = 4
"""What a text that is not in a dictionary takes at least."""


def find_encoded(metadata: pq.FileMetaData, names: Collection[str]) -> list[str]:
    """Those of these columns that are text, and in dictionaries throughout, as far as their sizes tell."""
    return [name for name, place in _find_texts(metadata, names) if _is_encoded(metadata, place)]


def find_single(metadata: pq.FileMetaData, names: Collection[str]) -> dict[str, pa.Array]:
    """Those of these columns that are one and the same text in every row, each with that text: none need be read.

    Bounds may be wider than the values, since writers shorten long ones; between two that are equal lies one value.
    """
    bounds = {name: _find_bounds(metadata, place) for name, place in _find_texts(metadata, names)}
    return {name: pa.array(ends, pa.binary()).view(pa.string()) for name, ends in bounds.items() if len(ends) == 1}


def add_single(rows: pa.Table, texts: Mapping[str, pa.Array], names: Sequence[str]) -> pa.Table:
    """Rows with the columns that `find_single` found, as dictionaries of one text.

    Args:
        rows: The other columns.
        texts: As found.
        names: Of all columns, in the order that is wanted.
    """
    if not texts:
        return rows
    zeros = pa.array(np.zeros(rows.num_rows, np.int8))
    added = {name: pa.DictionaryArray.from_arrays(zeros, text) for name, text in texts.items()}
    return pa.table({name: added[name] if name in added else rows.column(name) for name in names})


def _find_texts(metadata: pq.FileMetaData, names: Collection[str]) -> Iterator[tuple[str, int]]:
    for place in range(metadata.num_columns):
        column = metadata.schema.column(place)
        if column.path in names and column.logical_type.type == "STRING":
            yield str(column.path), place


def _find_bounds(metadata: pq.FileMetaData, place: int) -> set[bytes | None]:
    """Of the values in all row groups; None stands for what is not known, and for nulls."""
    found = (metadata.row_group(group).column(place).statistics for group in range(metadata.num_row_groups))
    return {bound for statistics in found for bound in _list_bounds(statistics)}


def _list_bounds(statistics: pq.Statistics | None) -> tuple[bytes | None, bytes | None]:
    if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
        return None, b""
    return statistics.min_raw, statistics.max_raw


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
