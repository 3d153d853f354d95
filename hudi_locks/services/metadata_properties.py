"""What the properties of a table say of its metadata table, changed inside the table lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hudi_locks.config import table_keys
from hudi_locks.errors import TableError
from hudi_locks.format import METADATA_FOLDER, decode_properties, encode_properties
from hudi_locks.storage import Storage
from hudi_locks.table import PROPERTIES_PATH
from hudi_locks.timeline import Timeline

__all__ = [
    "NAMED",
    "list_named",
    "read_properties",
    "refuse_pending",
    "remove_metadata_table",
    "replace_properties",
    "split_names",
]

_CHECKSUM: Final = ".hoodie/.hoodie.properties.crc"
_COMMENT: Final = "Properties of an Apache Hudi table"
NAMED: Final = (table_keys.METADATA_PARTITIONS.name, table_keys.METADATA_PARTITIONS_INFLIGHT.name)
"""Keys that name its parts: those in use, and those that are being made."""


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
        storage.delete(_CHECKSUM)  # first: readers refuse a file whose checksum is another's
        storage.replace(PROPERTIES_PATH, encode_properties(wanted, _COMMENT))


def read_properties(storage: Storage) -> dict[str, str]:
    """The properties of a table as they are now.

    Raises:
        TableError: Somebody else is writing them.
    """
    known = decode_properties(storage.read(PROPERTIES_PATH) or b"", PROPERTIES_PATH)
    if not known:
        message = f"{storage.base}/{PROPERTIES_PATH} is being written anew by somebody: try again"
        raise TableError(message, path=PROPERTIES_PATH)
    return known


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
