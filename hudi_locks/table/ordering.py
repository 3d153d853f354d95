"""What becomes of two rows with one key: which wins, which is a delete, and what a partial update leaves as it is.

Deletes (Hudi's DeleteContext): such a row takes out the row of its key as any row replaces another: its ordering value
has to be as great. It is never written to a base file. One that lies in a base file nevertheless, as bulk inserts of
the JVM leave them, is a row like any other to every reader, until a write touches its key.

Partial updates (Hudi's PartialUpdateHandler, mode IGNORE_DEFAULTS): a null of the row that wins takes the value of the
row that loses, whichever came first. The rows of a key are merged one after the other in the order in which they came,
as in Hudi. The meta columns are those of the row that came last, if it changed anything, so that a reader of changes
sees also what an older row brought late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.config import Options, table_keys
from hudi_locks.errors import ConfigError
from hudi_locks.format import META_COLUMNS
from hudi_locks.table.altered_columns import ColumnHistory
from hudi_locks.table.log_places import split_places
from hudi_locks.table.meta_columns import RECORD_KEY
from hudi_locks.table.virtual_keys import VirtualKeys

__all__ = [
    "IS_DELETED",
    "DeleteMarker",
    "Indices",
    "Mask",
    "MergeRule",
    "Unavailable",
    "drop_deletes",
    "fill_rows",
    "find_deletes",
    "find_wins",
    "fold_rows",
    "newest_rows",
    "read_delete_marker",
]

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_VALUE: Final = 1


@dataclass(frozen=True)
class DeleteMarker:
    """A column whose value says that a row is a delete.

    Attributes:
        column: Its name; a table may lack it.
        value: The value, as text; None for a column of booleans that is true.
        any_case: Whether the value may be in capital letters, or in small ones.
    """

    column: str
    value: str | None = None
    any_case: bool = False


IS_DELETED: Final = DeleteMarker("_hoodie_is_deleted")
"""What every table has, if it has a column of booleans of this name."""


def read_delete_marker(options: Options, *, any_case: bool = False) -> DeleteMarker | None:
    """The marker that a table's properties, or a writer's options, name.

    Args:
        options: These.
        any_case: See `DeleteMarker`.

    Raises:
        ConfigError: Only one of column and value is there.
    """
    column, value = options.find(table_keys.DELETE_FIELD), options.find(table_keys.DELETE_MARKER)
    if bool(column) != bool(value):
        given, lacking = (table_keys.DELETE_FIELD, table_keys.DELETE_MARKER)[:: 1 if column else -1]
        raise ConfigError(f"{given.name} needs {lacking.name} beside it: a column and its value", key=lacking.name)
    return DeleteMarker(column, value, any_case) if column and value else None


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
    marked = column if marker.value is None else _equals(column.cast(pa.string()), marker.value, marker.any_case)
    return np.asarray(pc.fill_null(marked, fill_value=False).to_numpy(), np.bool_)


def _equals(column: pa.ChunkedArray, value: str, any_case: bool) -> pa.ChunkedArray:  # noqa: FBT001
    return pc.equal(pc.utf8_lower(column), value.lower()) if any_case else pc.equal(column, value)


@dataclass(frozen=True)
class Unavailable:
    """Texts that stand for values which were not sent, and are taken from the other row (Hudi's FILL_UNAVAILABLE).

    Attributes:
        text: Which one.
        fills_earlier: Whether a row that comes later and loses fills the one that wins; below table version 9 it does
            not.
    """

    text: str
    fills_earlier: bool = True


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
        precombine: Fields of which the greatest values choose one of several rows of a key in one write, which counts
            whole; empty: these are merged as rows of several writes are.
        virtual_keys: Makes the keys of rows whose files leave the meta columns empty; None where files have them.
        unavailable: Texts that take the value of the other row; None where every value counts.
        history: Of a table in which ALTER TABLE changed columns, as its files have them.
        by_place: Whether the ordering column has texts such as 000002.1234, of a file and a place in it, which are
            compared as two numbers; a delete in a log takes out whatever came before it then, and a row behind it
            counts as if the delete were not there.
    """

    ordering: tuple[str, ...] = ()
    keep_present: bool = False
    fills_nulls: bool = False
    deletes: tuple[DeleteMarker, ...] = (IS_DELETED,)
    precombine: tuple[str, ...] = ()
    virtual_keys: VirtualKeys | None = None
    unavailable: Unavailable | None = None
    history: ColumnHistory | None = None
    by_place: bool = False

    @property
    def within_write(self) -> MergeRule:
        """The rule for rows of one write."""
        if not self.precombine:
            return self
        return replace(self, ordering=self.precombine, fills_nulls=False, unavailable=None)

    @property
    def fills(self) -> bool:
        """Whether one row may be made of several."""
        return self.fills_nulls or self.unavailable is not None

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
    columns = [part for column in _list_ordering(rows, rule) for part in _sortable(column)]
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


def find_wins(newer: pa.Table, older: pa.Table, rule: MergeRule) -> Mask:
    """Where the row of `newer` is not behind that of `older`: from the last field to the first, which overrules.

    Raises:
        UnsupportedTable: A text is no place; see `MergeRule.by_place`.
    """
    wins = np.ones(newer.num_rows, dtype=np.bool_)
    pairs = zip(_list_ordering(newer, rule), _list_ordering(older, rule), strict=True)
    for ours, theirs in reversed(list(pairs)):
        wins = np.where(_is_equal(ours, theirs), wins, _is_greater(ours, theirs))
    return wins


def _list_ordering(rows: pa.Table, rule: MergeRule) -> list[pa.ChunkedArray]:
    """What is compared, one after the other."""
    columns = [rows.column(name) for name in rule.ordering]
    return [part for column in columns for part in split_places(column)] if rule.by_place else columns


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


def fill_rows(
    older: pa.Table,
    newer: pa.Table,
    wins: Mask,
    *,
    apart: Mask | None = None,
    unavailable: Unavailable | None = None,
) -> pa.Table:
    """Merge rows in pairs: a null of the one that wins takes the value of the other.

    Args:
        older: The row of each pair that came first.
        newer: The other one, in the same schema.
        wins: Where the newer row wins.
        apart: Where nothing is filled, as where one of the two is a delete.
        unavailable: Texts that take it in place of nulls.
    """
    rows, places = pa.concat_tables([older, newer]), np.arange(older.num_rows)
    first, second = places, places + older.num_rows
    high, low = np.where(wins, second, first), np.where(wins, first, second)
    joined = ~apart if apart is not None else np.ones(older.num_rows, dtype=np.bool_)
    if unavailable is not None and not unavailable.fills_earlier:
        joined = joined & wins
    said = {name: _find_said(rows.column(name), unavailable) for name in rows.column_names}
    chosen = {name: np.where(joined & ~known[high] & known[low], low, high) for name, known in said.items()}
    brought = np.any([wins, *(chosen[n] == second for n in chosen if n not in META_COLUMNS)], axis=0)
    chosen.update({name: np.where(brought, second, first) for name in META_COLUMNS if name in chosen})
    return pa.table([rows.column(name).take(pa.array(chosen[name])) for name in chosen], schema=rows.schema)


def _find_said(column: pa.ChunkedArray, unavailable: Unavailable | None) -> Mask:
    """Where a row says something of the column."""
    if unavailable is None:
        return np.asarray(column.is_valid().to_numpy(), np.bool_)
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return np.ones(len(column), np.bool_)
    is_marked = pc.equal(column, pa.scalar(unavailable.text.encode()).cast(column.type))
    return ~np.asarray(pc.fill_null(is_marked, fill_value=False).to_numpy(), np.bool_)


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
