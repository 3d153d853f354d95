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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.config import Options, table_keys
from hudi_locks.errors import ConfigError
from hudi_locks.format import META_COLUMNS
from hudi_locks.table.meta_columns import RECORD_KEY
from hudi_locks.table.virtual_keys import VirtualKeys

__all__ = [
    "BY_PAYLOAD",
    "IS_DELETED",
    "MERGE_MODE_SINCE",
    "DeleteMarker",
    "Indices",
    "Mask",
    "MergeRule",
    "describe_payload",
    "drop_deletes",
    "fill_rows",
    "find_deletes",
    "find_payload_meaning",
    "find_wins",
    "fold_rows",
    "newest_rows",
    "read_delete_marker",
    "read_payload",
]

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_VALUE: Final = 1
_EVENT_TIME: Final = {table_keys.RECORD_MERGE_MODE.name: "EVENT_TIME_ORDERING"}
_COMMIT_TIME: Final = {table_keys.RECORD_MERGE_MODE.name: "COMMIT_TIME_ORDERING"}
_FILLS: Final = {table_keys.PARTIAL_UPDATE_MODE.name: table_keys.IGNORE_DEFAULTS}
_DMS: Final = {table_keys.DELETE_FIELD.name: "Op", table_keys.DELETE_MARKER.name: "D"}
_PACKAGE: Final = "org.apache.hudi.common.model."
_PAYLOADS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "OverwriteWithLatestAvroPayload": _COMMIT_TIME,
        "DefaultHoodieRecordPayload": _EVENT_TIME,
        "EventTimeAvroPayload": _EVENT_TIME,
        "PartialUpdateAvroPayload": {**_EVENT_TIME, **_FILLS},
        "OverwriteNonDefaultsWithLatestAvroPayload": {**_COMMIT_TIME, **_FILLS},
        "AWSDmsAvroPayload": {**_COMMIT_TIME, **_DMS},
    }
)
_IN_0_15: Final = "OverwriteWithLatestAvroPayload"
_SINCE: Final = 9
"""Table version from which more than a merge mode, for which a payload class stands, can be said by properties."""
BY_PAYLOAD: Final = "00000000-0000-0000-0000-000000000000"
"""Hudi's strategy of a table whose payload class alone says how rows are merged."""
_CUSTOM: Final = "CUSTOM"
MERGE_MODE_SINCE: Final = 8
"""Table version from which the merge mode is among the properties."""


@dataclass(frozen=True)
class DeleteMarker:
    """A column whose value says that a row is a delete.

    Attributes:
        column: Its name; a table may lack it.
        value: The value, as text; None for a column of booleans that is true.
    """

    column: str
    value: str | None = None


IS_DELETED: Final = DeleteMarker("_hoodie_is_deleted")
"""What every table has, if it has a column of booleans of this name."""


def read_delete_marker(options: Options) -> DeleteMarker | None:
    """The marker that a table's properties, or a writer's options, name.

    Raises:
        ConfigError: Only one of column and value is there.
    """
    column, value = options.find(table_keys.DELETE_FIELD), options.find(table_keys.DELETE_MARKER)
    if bool(column) != bool(value):
        given, lacking = (table_keys.DELETE_FIELD, table_keys.DELETE_MARKER)[:: 1 if column else -1]
        raise ConfigError(f"{given.name} needs {lacking.name} beside it: a column and its value", key=lacking.name)
    return DeleteMarker(column, value) if column and value else None


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
    marked = column if marker.value is None else pc.equal(column.cast(pa.string()), marker.value)
    return np.asarray(pc.fill_null(marked, fill_value=False).to_numpy(), np.bool_)


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
    """

    ordering: tuple[str, ...] = ()
    keep_present: bool = False
    fills_nulls: bool = False
    deletes: tuple[DeleteMarker, ...] = (IS_DELETED,)
    precombine: tuple[str, ...] = ()
    virtual_keys: VirtualKeys | None = None

    @property
    def within_write(self) -> MergeRule:
        """The rule for rows of one write."""
        return replace(self, ordering=self.precombine, fills_nulls=False) if self.precombine else self

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


def find_payload_meaning(properties: Options, version: int) -> Mapping[str, str]:
    """What other properties would say of a table that leaves to its payload class how rows are merged; none of others.

    Tables of version 8 name such a class beside the merge mode CUSTOM (HoodieTableConfig of JVM Hudi 1.0); those of
    version 6 name it alone, and those of Hudi 0.15 that hold base files alone not even that: its writers take the class
    of their options then, or the one that lets the later write win.
    """
    payload = (properties.find(table_keys.PAYLOAD_CLASS) or "").removeprefix(_PACKAGE)
    mode, strategy = properties.find(table_keys.RECORD_MERGE_MODE), properties.find(table_keys.RECORD_MERGE_STRATEGY_ID)
    if version < MERGE_MODE_SINCE and mode is None:
        return _PAYLOADS.get(payload or _IN_0_15, {})
    if version >= _SINCE or (mode or "").upper() != _CUSTOM or strategy != BY_PAYLOAD:
        return {}
    return _PAYLOADS.get(payload, {})


def describe_payload(options: Options, version: int) -> dict[str, str]:
    """The properties of a table that is made with the payload class of the options; none if they name none.

    Raises:
        ConfigError: See `read_payload`.
    """
    meant = read_payload(options)
    if version >= _SINCE or len(meant) <= 1:
        return meant
    payload = (options.find(table_keys.PAYLOAD_CLASS) or "").removeprefix(_PACKAGE)
    return {
        table_keys.RECORD_MERGE_MODE.name: _CUSTOM,
        table_keys.RECORD_MERGE_STRATEGY_ID.name: BY_PAYLOAD,
        table_keys.PAYLOAD_CLASS.name: f"{_PACKAGE}{payload}",
    }


def read_payload(options: Options) -> dict[str, str]:
    """The properties that mean what the payload class of a writer's options means; none if they name none.

    Raises:
        ConfigError: The class has no such meaning, or contradicts another option.
    """
    key = table_keys.PAYLOAD_CLASS
    asked = options.find(key)
    if not asked:
        return {}
    told = f"{options.name_used(key)}={asked}"
    meant = _PAYLOADS.get(asked.removeprefix(_PACKAGE))
    if meant is None:
        known = ", ".join(_PAYLOADS)
        raise ConfigError(f"{told} is Java code that is not run here; use one of {known}", key=key.name, value=asked)
    _refuse_contradiction(options, meant, told)
    return dict(meant)


def _refuse_contradiction(options: Options, meant: Mapping[str, str], told: str) -> None:
    for key in (table_keys.RECORD_MERGE_MODE, table_keys.PARTIAL_UPDATE_MODE):
        given = options.name_used(key)
        if given is not None and options[given].upper() != meant.get(key.name, ""):
            message = f"{told} and {given}={options[given]} contradict each other; leave one of them out"
            raise ConfigError(message, key=given)
