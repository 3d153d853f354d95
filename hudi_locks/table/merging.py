"""Merging incoming rows into the rows of a file group, a column at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.table.meta_columns import RECORD_KEY
from hudi_locks.table.ordering import (
    Indices,
    Mask,
    MergeRule,
    drop_deletes,
    fill_rows,
    find_deletes,
    find_wins,
    fold_rows,
    newest_rows,
)

__all__ = ["AppendMerge", "DeleteMerge", "KeyedMerge", "Merge", "MovingMerge", "UpsertMerge", "combine_rows"]

_PIECE_ROWS: Final = 1 << 17
OnChange = Callable[[pa.Table, "pa.Table | None"], None]


class Merge(ABC):
    """Carries incoming rows into a file group whose present rows stream by.

    Attributes:
        updates: Present rows replaced so far.
        deletes: Present rows taken out so far.
    """

    updates: int = 0
    deletes: int = 0
    _on_change: OnChange | None = None

    def tell_changes(self, on_change: OnChange) -> None:
        """Have `on_change` called with present rows that change, before they do, and what they become.

        That is a row of the second table for each of the first; None where these are taken out.
        """
        self._on_change = on_change

    def _take_out(self, existing: pa.Table, keys: pa.Array) -> pa.Table:
        """The rows without those of these keys."""
        is_gone = pc.is_in(existing.column(RECORD_KEY), value_set=keys)
        if self._on_change is not None:
            self._on_change(existing.filter(is_gone), None)
        return existing.filter(pc.invert(is_gone))

    @abstractmethod
    def apply(self, existing: pa.Table) -> pa.Table:
        """What becomes of a piece of the present rows."""

    @abstractmethod
    def remaining(self) -> Iterator[pa.Table]:
        """Incoming rows that met no present row, in pieces; to be asked when all pieces went by."""


class KeyedMerge(Merge):
    """Carries in rows that each have a key of their own.

    Args:
        keys: Of the incoming rows.
    """

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys
        self._used = np.zeros(len(keys), dtype=np.bool_)

    def meet(self, keys: pa.ChunkedArray) -> tuple[Indices, Indices]:
        """Note the keys of present rows, wherever these are merged: what matches them does not remain.

        Returns:
            The incoming rows that match one, and the place of that one among the keys, for each match.
        """
        positions = pc.index_in(keys, value_set=self._keys)
        found = np.asarray(positions.drop_null().to_numpy(), dtype=np.int64)
        self._used[found] = True
        return found, np.flatnonzero(positions.is_valid().to_numpy())


class UpsertMerge(KeyedMerge):
    """Replaces present rows in place, or takes them out where the row that wins is a delete; others are new.

    Args:
        incoming: Stamped rows in the schema of the base file; may be mapped from disk.
        rule: Which row wins.
    """

    updates: int
    deletes: int

    def __init__(self, incoming: pa.Table, rule: MergeRule) -> None:
        self._rule = rule
        within = rule.within_write
        self._incoming = fold_rows(incoming, self._merge) if within.fills else incoming
        winners = newest_rows(self._incoming, within)
        self._rows: Indices = np.arange(self._incoming.num_rows) if winners is None else winners
        super().__init__(_combine(self._incoming.column(RECORD_KEY).take(pa.array(self._rows))))

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        found, places = self.meet(existing.column(RECORD_KEY))
        if self._rule.keep_present or not len(found):
            return existing
        return self._replace(existing, places, self._rows[found])

    def remaining(self) -> Iterator[pa.Table]:
        """See `Merge.remaining`."""
        fresh = self._rows[~self._used]
        for start in range(0, len(fresh), _PIECE_ROWS):
            yield drop_deletes(self._incoming.take(pa.array(fresh[start : start + _PIECE_ROWS])), self._rule.deletes)

    def _replace(self, existing: pa.Table, places: Indices, rows: Indices) -> pa.Table:
        if self._rule.fills:
            replacing = self._merge(existing.take(pa.array(places)), self._incoming.take(pa.array(rows)))
        else:
            wins = self._find_wins(_take(self._incoming, self._deciding, rows), _take(existing, self._deciding, places))
            places, replacing = places[wins], self._incoming.take(pa.array(rows[wins]))
        deletes = find_deletes(replacing, self._rule.deletes)
        gone = places[:0] if deletes is None else places[deletes]
        self.updates += len(places) - len(gone)
        self.deletes += len(gone)
        if self._on_change is not None:
            self._tell(existing.take(pa.array(places)), replacing, deletes, self._on_change)
        order = np.arange(existing.num_rows)
        order[places] = existing.num_rows + np.arange(len(places))
        return pa.concat_tables([existing, replacing]).take(pa.array(np.delete(order, gone)))

    def _tell(self, before: pa.Table, after: pa.Table, deletes: Mask | None, on_change: OnChange) -> None:
        if deletes is None:
            on_change(before, after)
            return
        is_gone = pa.array(deletes)
        on_change(before.filter(pc.invert(is_gone)), after.filter(pc.invert(is_gone)))
        on_change(before.filter(is_gone), None)

    @property
    def _deciding(self) -> tuple[str, ...]:
        """Columns that `_find_wins` needs: at least one, since Arrow counts the rows of no column as none."""
        return self._rule.ordering or (RECORD_KEY,)

    def _find_wins(self, newer: pa.Table, older: pa.Table) -> Mask:
        """Where the row of `newer` is not behind that of `older`."""
        return find_wins(newer, older, self._rule)

    def _merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        """What each pair of rows becomes where nulls are filled."""
        apart, wins = _find_either(older, newer, self._rule), self._find_wins(newer, older)
        return fill_rows(older, newer, wins, apart=apart, unavailable=self._rule.unavailable)


class AppendMerge(Merge):
    """Adds rows without looking at keys, but for deletes: the `insert` operation."""

    def __init__(self, incoming: pa.Table, rule: MergeRule) -> None:
        self._incoming = drop_deletes(incoming, rule.deletes)

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        return existing

    def remaining(self) -> Iterator[pa.Table]:
        """See `Merge.remaining`."""
        for start in range(0, self._incoming.num_rows, _PIECE_ROWS):
            yield self._incoming.slice(start, _PIECE_ROWS)


class DeleteMerge(Merge):
    """Takes rows out by key."""

    deletes: int

    def __init__(self, incoming: pa.Table) -> None:
        self._keys = _combine(incoming.column(RECORD_KEY))

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        kept = self._take_out(existing, self._keys)
        self.deletes += existing.num_rows - kept.num_rows
        return kept

    def remaining(self) -> Iterator[pa.Table]:
        """See `Merge.remaining`."""
        return iter(())


class MovingMerge(Merge):
    """Takes out rows that moved to another partition, and carries others in.

    Args:
        merge: Carries the others in.
        moved: Keys of the rows that are taken out.
    """

    updates: int
    deletes: int

    def __init__(self, merge: Merge, moved: pa.Array) -> None:
        self._merge = merge
        self._moved = moved
        self._taken_out = 0

    def tell_changes(self, on_change: OnChange) -> None:
        """See `Merge.tell_changes`."""
        super().tell_changes(on_change)
        self._merge.tell_changes(on_change)

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        kept = self._take_out(existing, self._moved)
        self._taken_out += existing.num_rows - kept.num_rows
        merged = self._merge.apply(kept)
        self.updates, self.deletes = self._merge.updates, self._merge.deletes + self._taken_out
        return merged

    def remaining(self) -> Iterator[pa.Table]:
        """See `Merge.remaining`."""
        return self._merge.remaining()


def combine_rows(rows: pa.Table, rule: MergeRule) -> pa.Table:
    """One row for each key, as the rule makes it of those that came one after the other in one write."""
    within = rule.within_write
    if within.fills:
        return fold_rows(rows, lambda older, newer: _fill(older, newer, within))
    winners = newest_rows(rows, within)
    return rows if winners is None else rows.take(pa.array(winners))


def _fill(older: pa.Table, newer: pa.Table, rule: MergeRule) -> pa.Table:
    apart, wins = _find_either(older, newer, rule), find_wins(newer, older, rule)
    return fill_rows(older, newer, wins, apart=apart, unavailable=rule.unavailable)


def _find_either(older: pa.Table, newer: pa.Table, rule: MergeRule) -> Mask | None:
    """Where one row of a pair is a delete, which says nothing of columns; None if nowhere."""
    found = [mask for rows in (older, newer) if (mask := find_deletes(rows, rule.deletes)) is not None]
    return np.logical_or.reduce(found) if found else None


def _take(rows: pa.Table, names: tuple[str, ...], places: Indices) -> pa.Table:
    return rows.select(names).take(pa.array(places))


def _combine(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
