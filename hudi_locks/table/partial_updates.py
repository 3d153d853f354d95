"""Rows that set some of their columns only (Hudi's PartialUpdateHandler, mode IGNORE_DEFAULTS).

A null of the row that wins takes the value of the row that loses, whichever came first. The rows of a key are merged
one after the other in the order in which they came, as in Hudi. The meta columns are those of the row that came last,
if it changed anything, so that a reader of changes sees also what an older row brought late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_locks.format import META_COLUMNS
from hudi_locks.table.meta_columns import RECORD_KEY
from hudi_locks.table.ordering import Indices, Mask

__all__ = ["fill_rows", "fold_rows"]


def fill_rows(older: pa.Table, newer: pa.Table, wins: Mask, *, apart: Mask | None = None) -> pa.Table:
    """Merge rows in pairs.

    Args:
        older: The row of each pair that came first.
        newer: The other one, in the same schema.
        wins: Where the newer row wins.
        apart: Where nothing is filled, as where one of the two is a delete.
    """
    rows, places = pa.concat_tables([older, newer]), np.arange(older.num_rows)
    first, second = places, places + older.num_rows
    high, low = np.where(wins, second, first), np.where(wins, first, second)
    joined = ~apart if apart is not None else np.ones(older.num_rows, dtype=np.bool_)
    chosen = {name: _fill(rows.column(name), high, low, joined) for name in rows.column_names}
    brought = np.any([wins, *(chosen[n] == second for n in chosen if n not in META_COLUMNS)], axis=0)
    chosen.update({name: np.where(brought, second, first) for name in META_COLUMNS if name in chosen})
    return pa.table([rows.column(name).take(pa.array(chosen[name])) for name in chosen], schema=rows.schema)


def _fill(column: pa.ChunkedArray, high: Indices, low: Indices, joined: Mask) -> Indices:
    valid: Any = column.is_valid().to_numpy()
    return np.where(joined & ~valid[high] & valid[low], low, high)


def fold_rows(rows: pa.Table, merge: Callable[[pa.Table, pa.Table], pa.Table]) -> pa.Table:
    """One row for each key: those of a key are merged one after the other, all keys at once.

    Args:
        rows: In the order in which they came.
        merge: Makes one row of each pair of an older and a newer one.
    """
    keys = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    codes = np.asarray(keys.indices.to_numpy(), dtype=np.int64)
    if len(keys.dictionary) == rows.num_rows:
        return rows
    order = np.argsort(codes, kind="stable")
    turns = _count_before(codes[order])
    folded = rows.take(pa.array(order[turns == 0]))
    for turn in range(1, int(turns.max()) + 1):
        following = order[turns == turn]
        found = codes[following]
        merged = merge(folded.take(pa.array(found)), rows.take(pa.array(following)))
        places = np.arange(folded.num_rows)
        places[found] = folded.num_rows + np.arange(len(found))
        folded = pa.concat_tables([folded, merged]).take(pa.array(places))
    return folded


def _count_before(ordered: Indices) -> Indices:
    """How many of the same code come before each one of an ordered array."""
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    return np.arange(len(ordered)) - np.repeat(starts, np.diff(starts, append=len(ordered)))
