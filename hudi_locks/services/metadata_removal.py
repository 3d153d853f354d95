"""Taking the metadata table of a table away, so that readers list folders again and this package may write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_locks.config import add_defaults, check_options, lock_keys, table_keys
from hudi_locks.lock import LockManager
from hudi_locks.services.metadata_properties import refuse_pending, remove_metadata_table
from hudi_locks.services.table_writer import identify_table
from hudi_locks.storage import Storage, open_storage, refuse_unwritable
from hudi_locks.table import Table

__all__ = ["drop_metadata_table"]

_OFF: Final = {table_keys.METADATA_ENABLE.name: "false"}


def drop_metadata_table(
    path: str, options: Mapping[str, object] | None = None, *, zone: str | None = None
) -> tuple[str, ...]:
    """Turn the metadata table of a table off and delete it, under the table's lock. Rows stay as they are.

    Readers list folders from then on. A JVM writer makes the metadata table anew unless it is given
    `hoodie.metadata.enable=false` too. If the process dies on the way, the same call goes on.

    Args:
        path: Base path.
        options: Hudi's keys, those of the lock that the table's writers have among them.
        zone: Time zone of the writers of a table whose timeline is in LOCAL time.

    Returns:
        Names of the parts that it had; none if there was no metadata table.

    Raises:
        AcquireTimeout: Somebody else held the lock for as long as the options allow to wait.
        ConfigError: An option cannot be used.
        NotATable: There is no table.
        TableError: Something is under way that has begun with the metadata table.
        StorageError: The store failed.
    """
    checked = check_options(add_defaults(options) | {table_keys.BASE_PATH.name: path})
    storage = open_storage(path, checked)
    refuse_unwritable(storage)
    table = Table.load(storage, zone=zone)
    if not checked.has(lock_keys.PROVIDER):
        return _drop(storage, zone)
    named = identify_table(checked, name=table.config.name, base_path=storage.base)
    with LockManager.from_options(named) as locks, locks.lock():
        return _drop(storage, zone)


def _drop(storage: Storage, zone: str | None) -> tuple[str, ...]:
    refuse_pending(storage, Table.load(storage, zone=zone).timeline(), "drop the metadata table")
    return remove_metadata_table(storage, **_OFF)
