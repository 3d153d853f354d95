"""Columns that ALTER TABLE changed for readers alone (Hudi's schema on read): files have them as they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.column_versions import ColumnVersion, decode_versions, show_kind
from hudi_locks.format.records import interpreting
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import is_archived

__all__ = [
    "NEWEST_COLUMNS",
    "SCHEMA_FOLDER",
    "ColumnHistory",
    "SchemaHistory",
    "list_schema_files",
    "read_schema_history",
    "refuse_altered",
]

NEWEST_COLUMNS: Final = "latest_schema"
"""Key among the free texts of a commit, where a writer goes by the history of columns (SerDeHelper)."""
SCHEMA_FOLDER: Final = ".hoodie/.schema"
_COMPLETED: Final = ".schemacommit"
_READING: Final = "Such a table is read by JVM Hudi only; copy it to a new one"

_Fields = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ColumnHistory:
    """Under which names files of each time have the columns of a table. Picklable.

    Attributes:
        versions: Requested time of each change as a number, the oldest first, and from then on the names of the
            columns by their ids.
    """

    versions: tuple[tuple[int, tuple[tuple[int, str], ...]], ...]

    def find_names(self, instant: str) -> Mapping[str, str | None]:
        """Of each column of the table, its name in files of the write begun at `instant`; None where they lack it."""
        begun = int(instant)
        _, then = next((one for one in reversed(self.versions) if one[0] <= begun), self.versions[0])
        known = dict(then)
        return {name: known.get(number) for number, name in self.versions[-1][1]}

    @cached_property
    def all_names(self) -> frozenset[str]:
        """Every name that a column ever had."""
        return frozenset(name for _, names in self.versions for _, name in names)

    def bring_up(self, rows: pa.Table, instant: str) -> pa.Table:
        """Rows of such files under the names of today, without columns that are gone."""
        stored = self.find_names(instant)
        names = {there: name for name, there in stored.items() if there is not None}
        kept = [name for name in rows.schema.names if name in names or name not in self.all_names]
        return rows.select(kept).rename_columns([names.get(name, name) for name in kept])


@dataclass(frozen=True)
class SchemaHistory:
    """The columns of a table since its first ALTER TABLE.

    Attributes:
        path: Of the file that tells it.
        versions: The newest first; at least one.
    """

    path: str
    versions: tuple[ColumnVersion, ...]

    @property
    def requested(self) -> str:
        """Requested time of the commit that made the file."""
        return _read_time(self.path.rpartition("/")[2])

    @property
    def newest(self) -> ColumnVersion:
        """The columns that the table has now."""
        return self.versions[0]

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """Columns that were renamed, retyped, or dropped and added anew, in words; others are where their names say."""
        with interpreting("history of columns", self.path):
            found = [told for one in self.versions[1:] for told in _find_changes(one.columns, self.newest.columns, "")]
        return tuple(dict.fromkeys(found))

    def until(self, moment: int) -> SchemaHistory:
        """As it was at a requested time, as a number."""
        known = tuple(one for one in self.versions if one.number <= moment)
        return SchemaHistory(self.path, known or self.versions[-1:])

    def find_names(self) -> ColumnHistory | None:
        """Under which names files have the columns; None where they have all under those of today.

        Raises:
            UnsupportedTable: Fields of a struct were changed; they are named.
        """
        if not self.changes:
            return None
        if nested := [told for told in self.changes if "." in told.partition(" ")[0]]:
            raise _refuse(self.path, nested, _READING)
        named = [(one.number, tuple((int(c["id"]), str(c["name"])) for c in one.columns)) for one in self.versions]
        return ColumnHistory(tuple(reversed(named)))


def read_schema_history(storage: Storage, timeline: Timeline) -> SchemaHistory | None:
    """The history of a table's columns; None of a table that ALTER TABLE never changed.

    A file of it counts if its commit was completed: it is made before.

    Raises:
        DamagedTable: It cannot be read.
    """
    made = list_schema_files(storage)
    path = _find_newest(storage, timeline, made) if made else None
    if path is None:
        return None
    with interpreting("history of columns", path):
        versions = decode_versions(storage.read(path) or b"")
        return SchemaHistory(path, (versions[0], *versions[1:]))


def list_schema_files(storage: Storage) -> dict[str, str]:
    """Files of the history, by the requested time of the commit for which each was made, the newest first."""
    names = [one.name for one in storage.list(SCHEMA_FOLDER) if one.name.endswith(_COMPLETED)]
    made = [name for name in names if not name.startswith(".")]
    return {_read_time(name): f"{SCHEMA_FOLDER}/{name}" for name in sorted(made, reverse=True)}


def refuse_altered(storage: Storage, timeline: Timeline, *, advice: str) -> None:
    """Refuse tables in which a column was renamed, dropped and added anew, or got another type: files have the old one.

    Columns that were only added, dropped or moved are where their names say.

    Args:
        storage: Of the table.
        timeline: Of the table.
        advice: The next step.

    Raises:
        UnsupportedTable: There is such a column; it is named.
        DamagedTable: The history of columns cannot be read.
    """
    history = read_schema_history(storage, timeline)
    if history is not None and history.changes:
        raise _refuse(history.path, history.changes, advice)


def _read_time(name: str) -> str:
    """Version 6 has no completion times in names."""
    return name.partition(".")[0].partition("_")[0]


def _find_newest(storage: Storage, timeline: Timeline, made: Mapping[str, str]) -> str | None:
    active = (path for requested, path in made.items() if _is_active(timeline, requested))
    return next(active, None) or next((made[time] for time in made if _is_past(storage, timeline, time)), None)


def _is_active(timeline: Timeline, requested: str) -> bool:
    instant = timeline.get(requested)
    return instant is not None and instant.is_completed


def _is_past(storage: Storage, timeline: Timeline, requested: str) -> bool:
    """Whether a commit was completed and archived; one that was rolled back is older than the timeline too."""
    is_older = timeline.get(requested) is None and timeline.is_completed(requested)
    return is_older and is_archived(storage, timeline.layout, requested=requested)


def _refuse(path: str, found: Sequence[str], advice: str) -> UnsupportedTable:
    message = f"{path}: ALTER TABLE changed columns that files have as they were: {'; '.join(found)}"
    return UnsupportedTable(f"{message}. {advice}", path=path)


def _find_changes(old: _Fields, new: _Fields, where: str) -> Iterator[str]:
    by_id, by_name = {one["id"]: one for one in new}, {one["name"]: one["id"] for one in new}
    for before in old:
        now, name = by_id.get(before["id"]), where + before["name"]
        if now is None:
            if before["name"] in by_name:
                yield f"{name} was dropped and added anew"
            continue
        if now["name"] != before["name"]:
            yield f"{name} was renamed to {where}{now['name']}"
        yield from _find_retyped(before["type"], now["type"], name)


def _find_retyped(old: Any, new: Any, name: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type") == "record":
        yield from _find_changes(old["fields"], new["fields"], f"{name}.")
    elif old != new:
        yield f"{name} was {show_kind(old)} and is {show_kind(new)}"
