"""What a table says of its metadata table, and the parts that this has, changed inside the table lock."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Final

from hudi_locks.config import table_keys
from hudi_locks.errors import TableError
from hudi_locks.format import METADATA_FOLDER, MetadataPartition, decode_properties
from hudi_locks.format.records import interpreting
from hudi_locks.metadata_table import INDEXES_PATH
from hudi_locks.storage import Storage
from hudi_locks.table import PROPERTIES_PATH, describe_properties, replace_properties_file
from hudi_locks.timeline import Timeline

__all__ = [
    "NAMED",
    "list_named",
    "list_parts",
    "read_properties",
    "read_properties_file",
    "refuse_pending",
    "remove_metadata_table",
    "remove_parts",
    "replace_properties",
    "split_names",
]

NAMED: Final = (table_keys.METADATA_PARTITIONS.name, table_keys.METADATA_PARTITIONS_INFLIGHT.name)
"""Keys that name its parts: those in use, and those that are being made."""
_KEYS: Final = MetadataPartition.RECORD_INDEX.value
_SECONDARY: Final = "secondary_index_"
_RANGES: Final = frozenset({MetadataPartition.COLUMN_STATS.value, MetadataPartition.PARTITION_STATS.value})


def remove_metadata_table(storage: Storage, **said: str) -> tuple[str, ...]:
    """Let the table name no metadata table any more, and delete what there is of it. Inside the table lock.

    Args:
        storage: Of the table.
        said: What the table's properties are to say besides.

    Returns:
        Names of the parts that it had.

    Raises:
        TableError: Somebody else is writing the properties.
        StorageError: The store failed; another call goes on.
    """
    names: set[str] = set()

    def change(known: Mapping[str, str]) -> dict[str, str]:
        names.update(list_named(known))
        return {key: value for key, value in known.items() if key not in NAMED} | said

    replace_properties(storage, change)
    if storage.stat(METADATA_FOLDER) is not None:
        storage.delete_folder(METADATA_FOLDER)
    return tuple(sorted(names))


def remove_parts(storage: Storage, parts: Collection[str]) -> tuple[str, ...]:
    """Let the table name some parts no more, with those that rest on them, and delete them. Inside the table lock.

    Nobody goes by them from the first step on. If the process dies on the way, the same call goes on.

    Args:
        storage: Of the table.
        parts: Their names.

    Returns:
        Names of the parts that were deleted.

    Raises:
        DamagedTable: The definitions of the indexes cannot be read.
        TableError: Somebody else is writing the properties.
        StorageError: The store failed.
    """
    chosen, gone = _with_dependents(parts, list_parts(storage)), set[str]()

    def change(known: Mapping[str, str]) -> dict[str, str]:
        told = {key: split_names(known[key]) for key in NAMED if key in known}
        gone.update(name for names in told.values() for name in names if name in chosen)
        return {**known, **{key: ",".join(n for n in names if n not in chosen) for key, names in told.items()}}

    replace_properties(storage, change)
    _undefine(storage, chosen)
    for name in sorted(chosen):
        if storage.stat(f"{METADATA_FOLDER}/{name}") is not None:
            storage.delete_folder(f"{METADATA_FOLDER}/{name}")
            gone.add(name)
    return tuple(sorted(gone))


def list_parts(storage: Storage) -> set[str]:
    """Names of those that the table names, and of those that were dropped and are not deleted yet."""
    return list_named(read_properties(storage)) | {
        name for name in storage.list_names(METADATA_FOLDER) if not name.startswith(".")
    }


def _with_dependents(parts: Collection[str], known: Collection[str]) -> frozenset[str]:
    """Ranges of partitions are made of those of files, and a secondary index leads to keys of the record index."""
    ranges = _RANGES.intersection(known) if _RANGES.intersection(parts) else frozenset[str]()
    leading = {name for name in known if name.startswith(_SECONDARY)} if _KEYS in parts else set[str]()
    return frozenset(parts) | ranges | leading


def _undefine(storage: Storage, chosen: Collection[str]) -> None:
    data = storage.read(INDEXES_PATH)
    with interpreting("definition of the indexed columns", INDEXES_PATH):
        told = json.loads(data or b"{}")
    kept = {name: one for name, one in told.get("indexDefinitions", {}).items() if name not in chosen}
    if kept != told.get("indexDefinitions", {}):
        storage.replace(INDEXES_PATH, json.dumps({**told, "indexDefinitions": kept}, indent=2).encode())


def split_names(text: str) -> list[str]:
    """The names in a value of one of the keys NAMED."""
    return [name.strip() for name in text.split(",") if name.strip()]


def list_named(known: Mapping[str, str]) -> set[str]:
    """Names of all parts in a table's properties: those in use, and those that are being made."""
    return {name for key in NAMED for name in split_names(known.get(key, ""))}


def replace_properties(storage: Storage, change: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
    """Write the properties of a table anew, if they change. Inside the table lock.

    Args:
        storage: Of the table.
        change: What they are to be, by what they are.

    Raises:
        TableError: Somebody else is writing them.
        StorageError: The store failed.
    """
    known = read_properties(storage)
    wanted = change(known)
    if wanted != known:
        replace_properties_file(storage, describe_properties(wanted))


def read_properties(storage: Storage) -> dict[str, str]:
    """The properties of a table as they are now.

    Raises:
        TableError: Somebody else is writing them.
    """
    return read_properties_file(storage)[1]


def read_properties_file(storage: Storage) -> tuple[bytes, dict[str, str]]:
    """The bytes of the properties file of a table, and what they say; errors as `read_properties`."""
    data = storage.read(PROPERTIES_PATH) or b""
    known = decode_properties(data, PROPERTIES_PATH)
    if not known:
        message = f"{storage.base}/{PROPERTIES_PATH} is being written anew by somebody: try again"
        raise TableError(message, path=PROPERTIES_PATH)
    return data, known


def refuse_pending(storage: Storage, timeline: Timeline, what: str) -> None:
    """Whether nothing is under way that may have begun with another metadata table, or with none.

    Raises:
        TableError: Something is; `what` says what is not done before that has ended.
    """
    if pending := timeline.pending():
        first = pending[0]
        message = (
            f"{storage.base}: {first.action} {first.requested} is under way, and a JVM writer goes on with the metadata"
            f" table with which it began, or without one: let it finish, or roll it back, then {what}"
        )
        raise TableError(message, path=storage.base, instant=first.requested)
