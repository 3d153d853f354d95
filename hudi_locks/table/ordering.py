"""Which of two rows with one key wins, a column at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.table.meta_columns import RECORD_KEY

__all__ = ["Indices", "Mask", "MergeRule", "find_wins", "newest_rows"]

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_VALUE: Final = 1


@dataclass(frozen=True)
class MergeRule:
    """Which of two rows with one key wins.

    Attributes:
        ordering: Fields, compared one after the other: the greater value wins (NaN is the greatest, as in Java), a
            null losing to everything and the incoming row winning a tie; empty: the incoming row always wins. Hudi's
            EVENT_TIME_ORDERING and COMMIT_TIME_ORDERING.
        keep_present: Whether a row that is in the table wins over every incoming one.
        fills_nulls: Whether a null of the row that wins takes the value of the one that loses (Hudi's partial update
            mode IGNORE_DEFAULTS), so that writers can each set some of the columns.
    """

    ordering: tuple[str, ...] = ()
    keep_present: bool = False
    fills_nulls: bool = False


def newest_rows(rows: pa.Table, rule: MergeRule) -> Indices | None:
    """Positions of the winning row of each key, in their order; None if no key occurs twice.

    Among equal ordering values the later row wins.
    """
    keys = rows.column(RECORD_KEY)
    if pc.count_distinct(keys).as_py() == rows.num_rows:
        return None
    row = pa.array(np.arange(rows.num_rows))
    columns = [column for name in rule.ordering for column in (_rank(rows.column(name)), rows.column(name))]
    sortable = pa.table([*columns, row], [str(place) for place in range(len(columns) + 1)])
    order = pc.sort_indices(sortable, sort_keys=[(name, "ascending") for name in sortable.column_names])
    ranked = pa.table({"key": keys.take(order), "rank": row})
    best = ranked.group_by("key", use_threads=False).aggregate([("rank", "max")])["rank_max"]
    return np.sort(np.asarray(order.take(best).to_numpy(), dtype=np.int64))


def find_wins(newer: pa.Table, older: pa.Table, ordering: tuple[str, ...]) -> Mask:
    """Where the row of `newer` is not behind that of `older`: from the last field to the first, which overrules."""
    wins = np.ones(newer.num_rows, dtype=np.bool_)
    for name in reversed(ordering):
        ours, theirs = newer.column(name), older.column(name)
        wins = np.where(_is_equal(ours, theirs), wins, _is_greater(ours, theirs))
    return wins


def _is_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    same = pc.fill_null(pc.equal(left, right), fill_value=False)
    not_numbers = pc.and_(pc.not_equal(_rank(left), _VALUE), pc.equal(_rank(left), _rank(right)))
    return np.asarray(pc.or_(same, not_numbers).to_numpy(), np.bool_)


def _is_greater(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    greater = pc.fill_null(pc.greater(left, right), fill_value=False)
    return np.asarray(pc.or_(greater, pc.greater(_rank(left), _rank(right))).to_numpy(), np.bool_)


def _rank(column: pa.ChunkedArray) -> Any:
    """0 for null, 1 for a value, 2 for NaN: Java orders NaN behind every number, and Arrow beside the nulls."""
    rank = pc.cast(column.is_valid(), pa.int8())
    if not pa.types.is_floating(column.type):
        return rank
    return pc.add(rank, pc.cast(pc.is_nan(column).fill_null(fill_value=False), pa.int8()))
