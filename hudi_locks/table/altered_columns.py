"""Columns that ALTER TABLE changed for readers alone (Hudi's schema on read): files have them as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.records import interpreting
from hudi_locks.storage import Storage

__all__ = ["ALTER_SCHEMA", "NEWEST_COLUMNS", "refuse_altered"]

ALTER_SCHEMA: Final = "ALTER_SCHEMA"
"""Hudi's name of the operation of a commit that changes columns, and makes no files."""
NEWEST_COLUMNS: Final = "latest_schema"
"""Key among the free texts of a commit, where a writer goes by the history of columns (SerDeHelper)."""
_FOLDER: Final = ".hoodie/.schema"
_COMPLETED: Final = ".schemacommit"

_Fields = Sequence[Mapping[str, Any]]


def refuse_altered(storage: Storage) -> None:
    """Refuse tables in which a column was renamed, dropped and added anew, or got another type: files have the old one.

    Columns that were only added, dropped or moved are where their names say.

    Raises:
        UnsupportedTable: There is such a column; it is named.
        DamagedTable: The history of columns cannot be read.
    """
    completed = sorted(one.name for one in storage.list(_FOLDER) if one.name.endswith(_COMPLETED) and "_" in one.name)
    if not completed:
        return
    path = f"{_FOLDER}/{completed[-1]}"
    with interpreting("history of columns", path):
        versions = json.loads(storage.read(path) or b"")["schemas"]
        newest, *older = sorted(versions, key=lambda one: int(one["version_id"]), reverse=True)
        found = [change for one in older for change in _find_changes(one["fields"], newest["fields"], "")]
    if found:
        told = "; ".join(dict.fromkeys(found))
        message = f"{storage.base}: ALTER TABLE changed columns that files have as they were: {told}"
        raise UnsupportedTable(f"{message}. Such a table is read by JVM Hudi only; copy it to a new one", path=path)


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
