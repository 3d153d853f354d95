"""Which of two rows with one key wins, a column at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.table.deletes import IS_DELETED, DeleteMarker
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
        deletes: What makes of a row a delete of its key.
    """

    ordering: tuple[str, ...] = ()
    keep_present: bool = False
    fills_nulls: bool = False
    deletes: tuple[DeleteMarker, ...] = (IS_DELETED,)

    @property
    def deciding(self) -> tuple[str, ...]:
        """Columns that it looks at, of those that a table has."""
        return (*self.ordering, *(marker.column for marker in self.deletes))


def newest_rows(rows: pa.Table, rule: MergeRule) -> Indices | None:
    """Positions of the winning row of each key, in their order; None if no key occurs twice.

    Among equal ordering values the later row wins.
    """
    keys = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    if len(keys.dictionary) == rows.num_rows:
        return None
    order = _order_rows(rows, rule)
    newest = np.empty(len(keys.dictionary), dtype=np.int64)
    newest[np.asarray(keys.indices.to_numpy())[order]] = order  # of several values for one place the last one stays
    return np.sort(newest)


def _order_rows(rows: pa.Table, rule: MergeRule) -> Indices:
    """Positions from the least ordering value to the greatest, equal ones as they came."""
    columns = [column for name in rule.ordering for column in _sortable(rows.column(name))]
    if not columns or (len(columns) == 1 and _is_sorted(columns[0])):
        return np.arange(rows.num_rows)
    sortable = pa.table(columns, [str(place) for place in range(len(columns))])
    order = pc.sort_indices(sortable, sort_keys=[(name, "ascending") for name in sortable.column_names])  # stable
    return np.asarray(order.to_numpy(), dtype=np.int64)


def _sortable(column: pa.ChunkedArray) -> list[Any]:
    return [column] if _ranks_alike(column) else [_rank(column), column]


def _is_sorted(column: pa.ChunkedArray) -> bool:
    """Whether no value is less than the one before it, as in logs of events that come in their order."""
    return bool(pc.all(pc.less_equal(column[:-1], column[1:]), min_count=0).as_py())


def _ranks_alike(column: pa.ChunkedArray) -> bool:
    """Whether all of it are values that compare in Arrow as in Java."""
    return column.null_count == 0 and not pa.types.is_floating(column.type)


def find_wins(newer: pa.Table, older: pa.Table, ordering: tuple[str, ...]) -> Mask:
    """Where the row of `newer` is not behind that of `older`: from the last field to the first, which overrules."""
    wins = np.ones(newer.num_rows, dtype=np.bool_)
    for name in reversed(ordering):
        ours, theirs = newer.column(name), older.column(name)
        wins = np.where(_is_equal(ours, theirs), wins, _is_greater(ours, theirs))
    return wins


def _is_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    if _ranks_alike(left) and _ranks_alike(right):
        return np.asarray(pc.equal(left, right).to_numpy(), np.bool_)
    same = pc.fill_null(pc.equal(left, right), fill_value=False)
    not_numbers = pc.and_(pc.not_equal(_rank(left), _VALUE), pc.equal(_rank(left), _rank(right)))
    return np.asarray(pc.or_(same, not_numbers).to_numpy(), np.bool_)


def _is_greater(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    if _ranks_alike(left) and _ranks_alike(right):
        return np.asarray(pc.greater(left, right).to_numpy(), np.bool_)
    greater = pc.fill_null(pc.greater(left, right), fill_value=False)
    return np.asarray(pc.or_(greater, pc.greater(_rank(left), _rank(right))).to_numpy(), np.bool_)


def _rank(column: pa.ChunkedArray) -> Any:
    """0 for null, 1 for a value, 2 for NaN: Java orders NaN behind every number, and Arrow beside the nulls."""
    rank = pc.cast(column.is_valid(), pa.int8())
    if not pa.types.is_floating(column.type):
        return rank
    return pc.add(rank, pc.cast(pc.is_nan(column).fill_null(fill_value=False), pa.int8()))
