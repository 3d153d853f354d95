"""Merging incoming rows into the rows of a file group, a column at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.table.meta_columns import RECORD_KEY

__all__ = ["AppendMerge", "DeleteMerge", "Merge", "MergeRule", "UpsertMerge", "newest_rows"]

Indices = npt.NDArray[np.int64]
_PIECE_ROWS: Final = 1 << 17
_VALUE: Final = 1


@dataclass(frozen=True)
class MergeRule:
    """Which of two rows with one key wins.

    Attributes:
        ordering: Fields, compared one after the other: the greater value wins (NaN is the greatest, as in Java), a
            null losing to everything and the incoming row winning a tie; empty: the incoming row always wins. Hudi's
            EVENT_TIME_ORDERING and COMMIT_TIME_ORDERING.
        keep_present: Whether a row that is in the table wins over every incoming one.
    """

    ordering: tuple[str, ...] = ()
    keep_present: bool = False


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


class Merge(ABC):
    """Carries incoming rows into a file group whose present rows stream by.

    Attributes:
        updates: Present rows replaced so far.
        deletes: Present rows taken out so far.
    """

    updates = 0
    deletes = 0

    @abstractmethod
    def apply(self, existing: pa.Table) -> pa.Table:
        """What becomes of a piece of the present rows."""

    @abstractmethod
    def remaining(self) -> Iterator[pa.Table]:
        """Incoming rows that met no present row, in pieces; to be asked when all pieces went by."""


class UpsertMerge(Merge):
    """Replaces present rows in place; what matched nothing is new.

    Args:
        incoming: Stamped rows in the schema of the base file; may be mapped from disk.
        rule: Which row wins.
    """

    def __init__(self, incoming: pa.Table, rule: MergeRule) -> None:
        winners = newest_rows(incoming, rule)
        self._rows: Indices = np.arange(incoming.num_rows) if winners is None else winners
        self._incoming = incoming
        self._keys = _combine(incoming.column(RECORD_KEY).take(pa.array(self._rows)))
        self._used = np.zeros(len(self._rows), dtype=np.bool_)
        self._rule = rule

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        positions = pc.index_in(existing.column(RECORD_KEY), value_set=self._keys)
        matched = _to_numpy(positions.is_valid())
        if not matched.any():
            return existing
        found = np.asarray(_to_numpy(positions.drop_null()), dtype=np.int64)
        self._used[found] = True
        if self._rule.keep_present:
            return existing
        return self._replace(existing, np.flatnonzero(matched), self._rows[found])

    def remaining(self) -> Iterator[pa.Table]:
        """See `Merge.remaining`."""
        fresh = self._rows[~self._used]
        for start in range(0, len(fresh), _PIECE_ROWS):
            yield self._incoming.take(pa.array(fresh[start : start + _PIECE_ROWS]))

    def _replace(self, existing: pa.Table, places: Indices, rows: Indices) -> pa.Table:
        wins = self._find_wins(existing, places, rows)
        places, rows = places[wins], rows[wins]
        self.updates += len(places)
        order = np.arange(existing.num_rows)
        order[places] = existing.num_rows + np.arange(len(places))
        return pa.concat_tables([existing, self._incoming.take(pa.array(rows))]).take(pa.array(order))

    def _find_wins(self, existing: pa.Table, places: Indices, rows: Indices) -> npt.NDArray[np.bool_]:
        """Where the incoming row is not behind the present one: from the last field to the first, which overrules."""
        wins = np.ones(len(rows), dtype=np.bool_)
        for name in reversed(self._rule.ordering):
            ours = self._incoming.column(name).take(pa.array(rows))
            theirs = existing.column(name).take(pa.array(places))
            wins = np.where(_is_equal(ours, theirs), wins, _is_greater(ours, theirs))
        return wins


class AppendMerge(Merge):
    """Adds rows without looking at keys: the `insert` operation."""

    def __init__(self, incoming: pa.Table) -> None:
        self._incoming = incoming

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        return existing

    def remaining(self) -> Iterator[pa.Table]:
        """See `Merge.remaining`."""
        for start in range(0, self._incoming.num_rows, _PIECE_ROWS):
            yield self._incoming.slice(start, _PIECE_ROWS)


class DeleteMerge(Merge):
    """Takes rows out by key."""

    def __init__(self, incoming: pa.Table) -> None:
        self._keys = _combine(incoming.column(RECORD_KEY))

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        kept = existing.filter(pc.invert(pc.is_in(existing.column(RECORD_KEY), value_set=self._keys)))
        self.deletes += existing.num_rows - kept.num_rows
        return kept

    def remaining(self) -> Iterator[pa.Table]:
        """See `Merge.remaining`."""
        return iter(())


def _combine(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _is_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    same = pc.fill_null(pc.equal(left, right), fill_value=False)
    not_numbers = pc.and_(pc.not_equal(_rank(left), _VALUE), pc.equal(_rank(left), _rank(right)))
    return np.asarray(_to_numpy(pc.or_(same, not_numbers)), np.bool_)


def _is_greater(left: pa.ChunkedArray, right: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    greater = pc.fill_null(pc.greater(left, right), fill_value=False)
    return np.asarray(_to_numpy(pc.or_(greater, pc.greater(_rank(left), _rank(right)))), np.bool_)


def _rank(column: pa.ChunkedArray) -> Any:
    """0 for null, 1 for a value, 2 for NaN: Java orders NaN behind every number, and Arrow beside the nulls."""
    rank = pc.cast(column.is_valid(), pa.int8())
    if not pa.types.is_floating(column.type):
        return rank
    return pc.add(rank, pc.cast(pc.is_nan(column).fill_null(fill_value=False), pa.int8()))


def _to_numpy(column: Any) -> Any:
    return column.to_numpy()
