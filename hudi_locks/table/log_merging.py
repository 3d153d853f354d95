"""Merging the logs of a file slice into its base rows, a column at a time (Hudi's HoodieFileGroupReader)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import UnsupportedTable
from hudi_locks.storage import map_in_threads
from hudi_locks.table.log_rows import LogEntry
from hudi_locks.table.merging import KeyedMerge, UpsertMerge
from hudi_locks.table.meta_columns import RECORD_KEY, conform
from hudi_locks.table.ordering import Indices, Mask, MergeRule, fill_rows, find_deletes, find_wins, newest_rows

__all__ = ["JoinedLogs", "join_logs", "map_on_cores", "merge_logs"]

T = TypeVar("T")
R = TypeVar("R")
_DELETED: Final = "_hudi_locks_deleted"
_RESETS: Final = "_hudi_locks_resets"
_FLAGS: Final = (_DELETED, _RESETS)
_PLACE: Final = "_hudi_locks_place"
_PIECE_ROWS: Final = 1 << 16


def map_on_cores(call: Callable[[T], R], arguments: Iterable[T]) -> list[R]:
    """As `map_in_threads`, in as many threads as Arrow may use cores: more would only wait for each other.

    In PySpark's workers that is one unless `spark.task.cpus` says otherwise: beside it run other tasks.
    """
    return map_in_threads(call, arguments, threads=pa.cpu_count())


def merge_logs(entries: Iterable[LogEntry], schema: pa.Schema, rule: MergeRule) -> KeyedMerge:
    """What the logs of a slice make of its base rows, which stream by.

    Entries take effect one after the other. A row replaces the one before it if its ordering value is not less; a
    delete with an ordering value takes out a row whose value is not greater; a delete without takes out whatever came
    before it, so that a later row counts whatever its value. A row that the rule takes for a delete is one with its
    ordering value.

    Args:
        entries: Of all logs, in their order.
        schema: Of the merged rows, meta columns included; columns that an older block lacks are null.
        rule: Which of two rows with one key wins. Unless it fills columns, those that decide nothing may come as
            dictionaries, of base rows too, and are text again in the rows that are left.

    Raises:
        UnsupportedTable: A block has some of the columns only.
    """
    read = list(map(_refuse_partial, entries))
    if not rule.fills:
        return _WholeRows(read, schema, rule)
    return _FilledRows(read, schema, replace(rule, precombine=()))  # that is for rows of one write


@dataclass(frozen=True)
class JoinedLogs:
    """What several logs say together: applied in this order it does what they do, once or again after them.

    Attributes:
        resets: Keys of which every row goes that came before.
        deletes: Other deletes, with their ordering values as their blocks have them.
        rows: The rows that are left, one for each key.
    """

    resets: pa.ChunkedArray
    deletes: tuple[tuple[str, Any], ...]
    rows: pa.Table


def join_logs(entries: Iterable[LogEntry], schema: pa.Schema, rule: MergeRule) -> JoinedLogs:
    """The logs of a slice as one, without its base file, which may hold rows that they replace or take out.

    Args:
        entries: Of all logs, in their order.
        schema: Of the rows, meta columns included.
        rule: Which of two rows with one key wins.

    Raises:
        UnsupportedTable: A block has some of the columns only, or a null says nothing: then what a row does depends on
            the rows below it.
    """
    if rule.fills:
        raise UnsupportedTable("rows that fill columns of other rows cannot be joined without those; compact instead")
    as_rows = replace(rule, deletes=())  # they stay what they are, since the base file may hold what they take out
    merged = _WholeRows(list(map(_refuse_partial, entries)), schema, as_rows)
    rows = pa.concat_tables([schema.empty_table(), *merged.remaining()])
    return JoinedLogs(merged.resets, merged.list_deletes(), rows)


def _refuse_partial(entry: LogEntry) -> LogEntry:
    if entry.is_partial:
        message = f"write {entry.instant} has rows of some columns only, which are not merged here; compact it first"
        raise UnsupportedTable(message, instant=entry.instant)
    return entry


class _WholeRows(KeyedMerge):
    """Each row that is left is one row of a file: keys and ordering values choose, and only then rows are copied.

    Of each piece of the base file come first the rows that stay, then those that replace others.
    """

    def __init__(self, entries: Sequence[LogEntry], schema: pa.Schema, rule: MergeRule) -> None:
        self._schema = schema
        self._rule = rule
        self._entries = entries
        self._deciding = pa.schema([field for field in schema if field.name in (RECORD_KEY, *rule.deciding)])
        stacked = _stack_all(entries, self._deciding, rule)
        stacked = stacked.append_column(_PLACE, pa.array(np.arange(stacked.num_rows)))
        stacked = _drop_taken_out(stacked) if rule.by_place else _drop_reset(stacked)
        winners = newest_rows(stacked, rule)
        self._chosen = stacked if winners is None else stacked.take(pa.array(winners))
        self._is_left = ~_flags(self._chosen, _DELETED)
        super().__init__(pa.concat_arrays([pa.array([], pa.string()), *self._chosen.column(RECORD_KEY).chunks]))

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        found, places = self.meet(existing.column(RECORD_KEY))
        wins = self._find_wins(found, existing, places)
        stays = np.ones(existing.num_rows, dtype=np.bool_)
        stays[places[wins]] = False
        replacing = found[wins]
        self.updates += int(self._is_left[replacing].sum())
        self.deletes += int((~self._is_left[replacing]).sum())
        return pa.concat_tables([self._schema.empty_table(), *self._keep(existing, stays), *self._copy(replacing)])

    def remaining(self) -> Iterator[pa.Table]:
        """See `Merge.remaining`."""
        yield from self._copy(np.flatnonzero(~self._used))

    @property
    def resets(self) -> pa.ChunkedArray:
        """Keys of which some log takes out every row that came before."""
        return self._chosen.column(RECORD_KEY).filter(self._chosen.column(_RESETS))

    def list_deletes(self) -> tuple[tuple[str, Any], ...]:
        """Deletes that are left and have an ordering value, which keeps lesser rows out that come later."""
        places = self._chosen.column(_PLACE).filter(pa.array(~self._is_left)).to_numpy()
        return tuple(delete for n, part in self._spread(places) for delete in self._list_deletes_of(n, part))

    def _list_deletes_of(self, number: int, places: Indices) -> Iterator[tuple[str, Any]]:
        entry = self._entries[number]
        keys = entry.rows.column(RECORD_KEY).take(pa.array(places)).to_pylist()
        for key, place in zip(keys, places, strict=True):
            if entry.orderings is not None and entry.orderings[place] is not None:
                yield key, entry.wrapped[place]

    def _find_wins(self, found: Indices, existing: pa.Table, places: Indices) -> Mask:
        newer = self._chosen.take(pa.array(found))
        older = _narrow(existing, self._deciding).take(pa.array(places))
        return _flags(newer, _RESETS) | find_wins(newer, older, self._rule)

    def _keep(self, existing: pa.Table, stays: Mask) -> list[pa.Table]:
        def keep(start: int) -> pa.Table:
            piece, mask = existing.slice(start, _PIECE_ROWS), stays[start : start + _PIECE_ROWS]
            return conform(piece if mask.all() else piece.filter(pa.array(mask)), self._schema)

        return map_on_cores(keep, range(0, existing.num_rows, _PIECE_ROWS))

    def _copy(self, chosen: Indices) -> list[pa.Table]:
        """The chosen rows out of their logs, deletes left out."""
        left = self._chosen.column(_PLACE).take(pa.array(chosen[self._is_left[chosen]]))
        work = [(self._entries[number], part) for number, part in self._spread(left.to_numpy())]
        return map_on_cores(lambda one: self._copy_from(*one), work)

    def _spread(self, places: Indices) -> list[tuple[int, Indices]]:
        """Places among all entries as places in each of those that have some, by its number."""
        ordered = np.sort(places)
        starts = np.cumsum([0, *(entry.rows.num_rows for entry in self._entries)])
        _, *parts = np.split(ordered, np.searchsorted(ordered, starts))
        return [(n, part - starts[n]) for n, part in enumerate(parts[: len(self._entries)]) if len(part)]

    def _copy_from(self, entry: LogEntry, places: Indices) -> pa.Table:
        rows = entry.whole
        return conform(rows if len(places) == rows.num_rows else rows.take(pa.array(places)), self._schema)


class _FilledRows(UpsertMerge):
    """Rows may be made of several rows, each of which sets some of the columns."""

    def __init__(self, entries: Sequence[LogEntry], schema: pa.Schema, rule: MergeRule) -> None:
        self._schema = schema
        self._flagged = pa.schema([*schema, *(pa.field(flag, pa.bool_()) for flag in _FLAGS)])
        super().__init__(_drop_reset(_stack_all(entries, schema, rule)), rule)

    def apply(self, existing: pa.Table) -> pa.Table:
        """See `Merge.apply`."""
        nothing = pa.repeat(False, existing.num_rows)
        flagged = pa.table([*conform(existing, self._schema).columns, nothing, nothing], schema=self._flagged)
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
        wins = self._find_wins(newer, older)
        return fill_rows(older, newer, wins, apart=apart, unavailable=self._rule.unavailable)


def _narrow(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return conform(rows.select([name for name in schema.names if name in rows.schema.names]), schema)


def _begin_anew(newer: pa.Table, older: pa.Table) -> Mask:
    """Where a delete of everything lies between the two rows of a pair."""
    return _flags(newer, _RESETS) & ~_flags(older, _RESETS)


def _flags(rows: pa.Table, name: str) -> Mask:
    return np.asarray(rows.column(name).to_numpy(), np.bool_)


def _stack_all(entries: Sequence[LogEntry], schema: pa.Schema, rule: MergeRule) -> pa.Table:
    """These columns of all entries, of what deletes take out too, and what each row does to those before it."""
    flagged = pa.schema([*schema, *(pa.field(flag, pa.bool_()) for flag in _FLAGS)])
    return pa.concat_tables([flagged.empty_table(), *(_stack(entry, flagged, rule) for entry in entries)])


def _stack(entry: LogEntry, flagged: pa.Schema, rule: MergeRule) -> pa.Table:
    """The rows of an entry, or the keys that it takes out with their ordering values, in one schema."""
    rows, orderings = entry.rows, entry.orderings
    if rule.by_place:
        orderings = None if orderings is None else (None,) * len(orderings)
        _refuse_placeless(entry, rule)
    if orderings is not None:
        values = [value if isinstance(value, tuple) else (value,) * len(rule.ordering) for value in orderings]
        for place, name in enumerate(rule.ordering):
            rows = rows.append_column(name, pa.array([value[place] for value in values], flagged.field(name).type))
    deleted = pa.array(_find_deleted(entry, rule))
    resets = pa.array([value is None for value in orderings]) if orderings else pa.repeat(False, rows.num_rows)
    return conform(rows.append_column(_DELETED, deleted).append_column(_RESETS, resets), flagged)


def _refuse_placeless(entry: LogEntry, rule: MergeRule) -> None:
    """Refuse rows without a place, which readers of JVM Hudi compare with others, and fail at."""
    if entry.orderings is None and any(entry.rows.column(name).null_count for name in rule.ordering):
        names = ", ".join(rule.ordering)
        message = f"write {entry.instant} logged rows without {names}, by which they are compared; JVM Hudi fails there"
        raise UnsupportedTable(message, instant=entry.instant, columns=rule.ordering)


def _find_deleted(entry: LogEntry, rule: MergeRule) -> Mask:
    marked = find_deletes(entry.rows, rule.deletes) if entry.orderings is None else None
    return np.full(entry.rows.num_rows, entry.orderings is not None) if marked is None else marked


def _drop_taken_out(stacked: pa.Table) -> pa.Table:
    """Leave out what came before the last delete of a key in a log, and that delete where a row comes behind it."""
    resets = stacked.column(_RESETS)
    if not pc.any(resets).as_py():
        return stacked
    last = stacked.group_by(RECORD_KEY).aggregate([(_PLACE, "max")])
    deletes = stacked.filter(resets).group_by(RECORD_KEY).aggregate([(_PLACE, "max")])
    ends = _look_up(stacked, last)
    behind = pc.greater(stacked.column(_PLACE), _look_up(stacked, deletes))
    kept = pc.or_(pc.fill_null(behind, fill_value=True), pc.equal(stacked.column(_PLACE), ends))
    return stacked.filter(kept)


def _look_up(stacked: pa.Table, places: pa.Table) -> pa.ChunkedArray:
    """The place that a grouped table has for the key of each row; null where it has none."""
    found = pc.index_in(stacked.column(RECORD_KEY), value_set=places.column(RECORD_KEY).combine_chunks())
    return places.column(f"{_PLACE}_max").take(found)


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
    marked = stacked.set_column(stacked.schema.get_field_index(_RESETS), _RESETS, found.is_valid())
    return marked.filter(pc.invert(pc.fill_null(behind, fill_value=False)))
