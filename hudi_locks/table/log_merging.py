"""Merging the logs of a file slice into its base rows, a column at a time (Hudi's HoodieFileGroupReader)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import UnsupportedTable
from hudi_locks.table.log_rows import LogEntry
from hudi_locks.table.merging import UpsertMerge
from hudi_locks.table.meta_columns import RECORD_KEY, conform
from hudi_locks.table.ordering import Mask, MergeRule
from hudi_locks.table.partial_updates import fill_rows

__all__ = ["LogMerge"]

_DELETED: Final = "_hudi_locks_deleted"
_RESETS: Final = "_hudi_locks_resets"
_FLAGS: Final = (_DELETED, _RESETS)


class LogMerge(UpsertMerge):
    """What the logs of a slice make of its base rows, which stream by.

    Entries take effect one after the other. A row replaces the one before it if its ordering value is not less; a
    delete with an ordering value takes out a row whose value is not greater; a delete without takes out whatever came
    before it, so that a later row counts whatever its value.

    Args:
        entries: Of all logs, in their order.
        schema: Of the base rows, meta columns included; columns that an older block lacks are null.
        rule: Which of two rows with one key wins.

    Raises:
        UnsupportedTable: A block has some of the columns only.
    """

    def __init__(self, entries: Iterable[LogEntry], schema: pa.Schema, rule: MergeRule) -> None:
        self._schema = schema
        self._flagged = pa.schema([*schema, *(pa.field(flag, pa.bool_()) for flag in _FLAGS)])
        pieces = [_stack(entry, self._flagged, rule) for entry in entries]
        super().__init__(_drop_reset(pa.concat_tables([self._flagged.empty_table(), *pieces])), rule)

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        nothing = pa.repeat(False, existing.num_rows)
        flagged = pa.table([*existing.columns, nothing, nothing], schema=self._flagged)
        return self._drop_deleted(super().apply(flagged))

    def remaining(self) -> Iterator[pa.Table]:
        """See `Merge.remaining`."""
        return map(self._drop_deleted, super().remaining())

    def _drop_deleted(self, rows: pa.Table) -> pa.Table:
        deleted = rows.column(_DELETED)
        kept = rows.filter(pc.invert(deleted)) if pc.any(deleted).as_py() else rows  # a filter copies every column
        return kept.select(self._schema.names)

    @property
    def _deciding(self) -> tuple[str, ...]:
        return (*super()._deciding, _RESETS)

    def _find_wins(self, newer: pa.Table, older: pa.Table) -> Mask:
        return _begin_anew(newer, older) | super()._find_wins(newer, older)

    def _merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        apart = _begin_anew(newer, older) | _flags(older, _DELETED) | _flags(newer, _DELETED)
        return fill_rows(older, newer, self._find_wins(newer, older), apart=apart)


def _begin_anew(newer: pa.Table, older: pa.Table) -> Mask:
    """Where a delete of everything lies between the two rows of a pair."""
    return _flags(newer, _RESETS) & ~_flags(older, _RESETS)


def _flags(rows: pa.Table, name: str) -> Mask:
    return np.asarray(rows.column(name).to_numpy(), np.bool_)


def _stack(entry: LogEntry, flagged: pa.Schema, rule: MergeRule) -> pa.Table:
    """The rows of an entry, or the keys that it takes out with their ordering values, in one schema."""
    if entry.is_partial:
        message = f"write {entry.instant} has rows of some columns only, which are not merged here; compact it first"
        raise UnsupportedTable(message, instant=entry.instant)
    rows, orderings = entry.rows, entry.orderings
    if orderings is not None:
        values = [value if isinstance(value, tuple) else (value,) * len(rule.ordering) for value in orderings]
        for place, name in enumerate(rule.ordering):
            rows = rows.append_column(name, pa.array([value[place] for value in values], flagged.field(name).type))
    deleted = pa.repeat(orderings is not None, rows.num_rows)
    resets = pa.array([value is None for value in orderings]) if orderings else pa.repeat(False, rows.num_rows)
    return conform(rows.append_column(_DELETED, deleted).append_column(_RESETS, resets), flagged)


def _drop_reset(stacked: pa.Table) -> pa.Table:
    """Leave out what came before a delete of everything; whatever is left of such a key counts against any base row."""
    resets = stacked.column(_RESETS)
    if not pc.any(resets).as_py():
        return stacked
    places = pa.array(np.arange(stacked.num_rows))
    last = pa.table({"key": stacked.column(RECORD_KEY).filter(resets), "place": places.filter(resets.combine_chunks())})
    last = last.group_by("key").aggregate([("place", "max")])
    found = pc.index_in(stacked.column(RECORD_KEY), value_set=last["key"].combine_chunks())
    behind = pc.less(places, last["place_max"].take(found))
    marked = stacked.set_column(stacked.num_columns - 1, _RESETS, found.is_valid())
    return marked.filter(pc.invert(pc.fill_null(behind, fill_value=False)))
