"""The archived timeline (layout 2): Parquet files `<first>_<last>_<level>.parquet` of the history."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_locks.format import LAST_TIME, Instant, add_ms, reading_parquet
from hudi_locks.storage import Storage
from hudi_locks.timeline.layout import TimelineLayout

__all__ = [
    "ArchivedInstant",
    "find_archived_completions",
    "find_archived_content",
    "has_archived",
    "is_archived",
    "list_archived_since",
    "list_archived_times",
]

_NAME: Final = re.compile(r"(\d+)_(\d+)_\d+\.parquet")
_LONGEST_WRITE_MS: Final = 86_400_000
"""Hudi's own bound when it looks for archived instants by completion time."""


@dataclass(frozen=True)
class ArchivedInstant:
    """A completed instant that left the active timeline.

    Attributes:
        requested: When it was begun.
        completion: When it was completed.
        action: Its action.
        metadata: Bytes of its completed file.
    """

    requested: str
    completion: str
    action: str
    metadata: bytes


def has_archived(storage: Storage, layout: TimelineLayout) -> bool:
    """Whether any instant was ever archived."""
    return any(_NAME.fullmatch(entry.name) for entry in storage.list(layout.archive))


def is_archived(storage: Storage, layout: TimelineLayout, *, requested: str) -> bool:
    """Whether the history holds the instant begun at `requested`, which was thus completed.

    Files that a compaction of the history left behind are looked at too: what they hold was archived all the same.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    parts = _read_parts(storage, layout, columns=["instantTime"], first=requested, last=requested)
    return any(bool(pc.any(pc.equal(part["instantTime"], requested)).as_py()) for part in parts)


def list_archived_since(storage: Storage, layout: TimelineLayout, *, completed_after: str) -> list[ArchivedInstant]:
    """Archived instants with a later completion time, of writes that lasted less than a day.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    columns = ["instantTime", "completionTime", "action", "metadata"]
    first = add_ms(completed_after, -_LONGEST_WRITE_MS)
    parts = _read_parts(storage, layout, columns=columns, first=first, last="9")
    later = [part.filter(pc.greater(part["completionTime"], completed_after)) for part in parts]
    rows = [row for part in later for row in part.to_pylist()]
    found = {row["instantTime"]: ArchivedInstant(*(row[column] for column in columns)) for row in rows}
    return [found[requested] for requested in sorted(found)]


def list_archived_times(
    storage: Storage, layout: TimelineLayout, *, completed_after: str, completed_before: str = LAST_TIME
) -> frozenset[str]:
    """Requested times of what `list_archived_since` would give now, for less reading.

    Args:
        storage: Of the table.
        layout: Of its timeline.
        completed_after: Only what was completed later.
        completed_before: Only what was completed earlier.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    first = add_ms(completed_after, -_LONGEST_WRITE_MS)
    parts = _read_parts(storage, layout, columns=["instantTime", "completionTime"], first=first, last="9")
    later = [part.filter(pc.greater(part["completionTime"], completed_after)) for part in parts]
    between = [part.filter(pc.less(part["completionTime"], completed_before)) for part in later]
    return frozenset(time for part in between for time in part["instantTime"].to_pylist())


def find_archived_completions(
    storage: Storage, layout: TimelineLayout, *, requested: Collection[str]
) -> dict[str, str]:
    """Completion times of those of these instants that are archived, by requested time.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    if not requested:
        return {}
    wanted, columns = pa.array(sorted(requested), pa.string()), ["instantTime", "completionTime"]
    parts = _read_parts(storage, layout, columns=columns, first=min(requested), last=max(requested))
    found = [part.filter(pc.is_in(part["instantTime"], value_set=wanted)) for part in parts]
    return {row["instantTime"]: row["completionTime"] for part in found for row in part.to_pylist()}


def find_archived_content(storage: Storage, layout: TimelineLayout, *, instant: Instant) -> bytes | None:
    """What the completed file of `instant` held; None if the history does not have it.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    columns = ["instantTime", "completionTime", "action", "metadata"]
    parts = _read_parts(storage, layout, columns=columns, first=instant.requested, last=instant.requested)
    mine = (part.filter(pc.equal(part["instantTime"], instant.requested)) for part in parts)
    rows = (row for part in mine for row in part.to_pylist())
    found = (row for row in rows if (row["action"], row["completionTime"]) == (instant.action, instant.completion))
    return next((row["metadata"] or b"" for row in found), None)


def _read_parts(
    storage: Storage, layout: TimelineLayout, *, columns: list[str], first: str, last: str
) -> list[pa.Table]:
    """Parts that may hold instants from `first` to `last`; if one goes away meanwhile, another has its instants."""
    while True:
        matches = [_NAME.fullmatch(entry.name) for entry in storage.list(layout.archive)]
        names = [match[0] for match in matches if match and match[1] <= last and first <= match[2]]
        parts = [_read_part(storage, f"{layout.archive}/{name}", columns) for name in names]
        if all(part is not None for part in parts):
            return [part for part in parts if part is not None]


def _read_part(storage: Storage, path: str, columns: list[str]) -> pa.Table | None:
    data = storage.read(path)
    if data is None:
        return None
    with reading_parquet("a part of the archived timeline", path):
        # A dataset, as `pq.read_table` makes one, takes five times as long for a file of so few rows.
        part = pq.ParquetFile(pa.BufferReader(data)).read(columns, use_threads=False).select(columns)
        part.validate(full=True)
        if any(part[name].null_count for name in columns if name != "metadata"):
            raise ValueError("an instant lacks its time or its action")
        return part
