"""Columns that ALTER TABLE changed for readers alone (Hudi's schema on read): files have them as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.records import interpreting
from hudi_locks.storage import Storage

__all__ = ["ALTER_SCHEMA", "NEWEST_COLUMNS", "ColumnHistory", "find_column_history", "refuse_altered"]

ALTER_SCHEMA: Final = "ALTER_SCHEMA"
"""Hudi's name of the operation of a commit that changes columns, and makes no files."""
NEWEST_COLUMNS: Final = "latest_schema"
"""Key among the free texts of a commit, where a writer goes by the history of columns (SerDeHelper)."""
_WRITING: Final = "Write to such a table with JVM Hudi, or copy it to a new one"
_FOLDER: Final = ".hoodie/.schema"
_COMPLETED: Final = ".schemacommit"

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


def find_column_history(storage: Storage) -> ColumnHistory | None:
    """The history of a table in which a column was renamed, retyped, or dropped and added anew; None of any other.

    Raises:
        UnsupportedTable: Fields of a struct were; they are named.
        DamagedTable: It cannot be read.
    """
    path, versions = _read_versions(storage)
    changes = _list_changes(versions)
    if not changes:
        return None
    if nested := [told for told in changes if "." in told.partition(" ")[0]]:
        raise _refuse(storage, path, nested, "Such a table is read by JVM Hudi only; copy it to a new one")
    with interpreting("history of columns", path):
        oldest_first = reversed(versions)
        named = [
            (int(one["version_id"]), [(int(c["id"]), str(c["name"])) for c in one["fields"]]) for one in oldest_first
        ]
    return ColumnHistory(tuple((version, tuple(names)) for version, names in named))


def refuse_altered(storage: Storage, *, advice: str = _WRITING) -> None:
    """Refuse tables in which a column was renamed, dropped and added anew, or got another type: files have the old one.

    Columns that were only added, dropped or moved are where their names say.

    Args:
        storage: Of the table.
        advice: The next step.

    Raises:
        UnsupportedTable: There is such a column; it is named.
        DamagedTable: The history of columns cannot be read.
    """
    path, versions = _read_versions(storage)
    if found := _list_changes(versions):
        raise _refuse(storage, path, found, advice)


def _refuse(storage: Storage, path: str, found: Sequence[str], advice: str) -> UnsupportedTable:
    message = f"{storage.base}: ALTER TABLE changed columns that files have as they were: {'; '.join(found)}"
    return UnsupportedTable(f"{message}. {advice}", path=path)


def _read_versions(storage: Storage) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """The newest file of the history, and the versions in it, the newest first; none where no column ever changed."""
    completed = sorted(one.name for one in storage.list(_FOLDER) if one.name.endswith(_COMPLETED) and "_" in one.name)
    if not completed:
        return "", ()
    path = f"{_FOLDER}/{completed[-1]}"
    with interpreting("history of columns", path):
        found: Sequence[Mapping[str, Any]] = json.loads(storage.read(path) or b"")["schemas"]
        return path, sorted(found, key=lambda one: int(one["version_id"]), reverse=True)


def _list_changes(versions: Sequence[Mapping[str, Any]]) -> list[str]:
    newest, older = versions[:1], versions[1:]
    with interpreting("history of columns", _FOLDER):
        found = [told for now in newest for one in older for told in _find_changes(one["fields"], now["fields"], "")]
    return list(dict.fromkeys(found))


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
        yield f"{name} was {_show(old)} and is {_show(new)}"


def _show(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind.get("type", kind))
