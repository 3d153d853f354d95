"""Large tables in pieces of so many bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

__all__ = ["cut_rows"]


def cut_rows(rows: pa.Table, most_bytes: int) -> Iterator[pa.Table]:
    """The rows in pieces of about so many bytes in memory, of one row at least. Nothing is copied."""
    per_piece = max(1, rows.num_rows * most_bytes // max(1, rows.nbytes))
    for start in range(0, rows.num_rows, per_piece):
        yield rows.slice(start, per_piece)
