"""Taking the metadata table of a table away, or some of its parts, so that this package may write."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from hudi_locks.config import add_defaults, check_options, lock_keys, table_keys
from hudi_locks.errors import ConfigError
from hudi_locks.format import MetadataPartition
from hudi_locks.lock import LockManager
from hudi_locks.services.metadata_properties import list_parts, refuse_pending, remove_metadata_table, remove_parts
from hudi_locks.services.table_writer import identify_table
from hudi_locks.storage import Storage, open_storage, refuse_unwritable
from hudi_locks.table import Table

__all__ = ["drop_metadata_table"]

_FILES: Final = MetadataPartition.FILES.value
_OFF: Final = {table_keys.METADATA_ENABLE.name: "false"}


def drop_metadata_table(
    path: str,
    options: Mapping[str, object] | None = None,
    *,
    parts: Collection[str] = (),
    zone: str | None = None,
) -> tuple[str, ...]:
    """Turn the metadata table of a table off and delete it, or some of its parts. Rows stay as they are.

    It is done under the table's lock. Without a metadata table readers list folders. A JVM writer makes it anew unless
    it is given `hoodie.metadata.enable=false` too, and a part that its options ask for. If the process dies on the way,
    the same call goes on.

    Args:
        path: Base path.
        options: Hudi's keys, those of the lock that the table's writers have among them.
        parts: Names of the parts to delete, such as `record_index`; all of the metadata table if empty. Statistics of
            files and of partitions go together, and secondary indexes with the record index.
        zone: Time zone of the writers of a table whose timeline is in LOCAL time.

    Returns:
        Names of the parts that were deleted; none if there was no metadata table.

    Raises:
        AcquireTimeout: Somebody else held the lock for as long as the options allow to wait.
        ConfigError: An option cannot be used; the metadata table has no such part, or cannot be without it.
        NotATable: There is no table.
        TableError: Something is under way that has begun with the metadata table.
        StorageError: The store failed.
    """
    checked = check_options(add_defaults(options) | {table_keys.BASE_PATH.name: path})
    storage = open_storage(path, checked)
    refuse_unwritable(storage)
    table = Table.load(storage, zone=zone)
    if not checked.has(lock_keys.PROVIDER):
        return _drop(storage, zone, parts)
    named = identify_table(checked, name=table.config.name, base_path=storage.base)
    with LockManager.from_options(named) as locks, locks.lock():
        return _drop(storage, zone, parts)


def _drop(storage: Storage, zone: str | None, parts: Collection[str]) -> tuple[str, ...]:
    refuse_pending(storage, Table.load(storage, zone=zone).timeline(), "drop the metadata table")
    if not parts:
        return remove_metadata_table(storage, **_OFF)
    _refuse_parts(storage, parts, list_parts(storage))
    return remove_parts(storage, parts)


def _refuse_parts(storage: Storage, parts: Collection[str], known: Collection[str]) -> None:
    if _FILES in parts:
        message = f"without {_FILES} there is no metadata table: name no part, and all of it is dropped"
        raise ConfigError(message, parts=sorted(parts))
    if strange := sorted(set(parts).difference(known)):
        has = ", ".join(sorted(known)) or "none"
        message = f"{storage.base}: no part {', '.join(strange)} of a metadata table; it has {has}"
        raise ConfigError(message, parts=strange)
