"""Taking the metadata table of a table away, so that readers list folders again and this package may write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_locks.config import Options, check_options, lock_keys, table_keys
from hudi_locks.errors import TableError
from hudi_locks.format import METADATA_FOLDER, decode_properties, encode_properties
from hudi_locks.lock import LockManager
from hudi_locks.services.table_writer import identify_table
from hudi_locks.storage import Storage, open_storage, refuse_unwritable
from hudi_locks.table import PROPERTIES_PATH, Table

__all__ = ["drop_metadata_table"]

_CHECKSUM: Final = ".hoodie/.hoodie.properties.crc"
_COMMENT: Final = "Properties of an Apache Hudi table"
_OFF: Final = {table_keys.METADATA_ENABLE.name: "false"}
_NAMED: Final = (table_keys.METADATA_PARTITIONS.name, table_keys.METADATA_PARTITIONS_INFLIGHT.name)


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
    checked = check_options(Options(options) | {table_keys.BASE_PATH.name: path})
    storage = open_storage(path, checked)
    refuse_unwritable(storage)
    table = Table.load(storage, zone=zone)
    if not checked.has(lock_keys.PROVIDER):
        return _drop(storage, zone)
    named = identify_table(checked, name=table.config.name, base_path=storage.base)
    with LockManager.from_options(named) as locks, locks.lock():
        return _drop(storage, zone)


def _drop(storage: Storage, zone: str | None) -> tuple[str, ...]:
    _refuse_pending(Table.load(storage, zone=zone))
    known = decode_properties(storage.read(PROPERTIES_PATH) or b"", PROPERTIES_PATH)
    if not known:
        message = f"{storage.base}/{PROPERTIES_PATH} is being written anew by somebody: try again"
        raise TableError(message, path=PROPERTIES_PATH)
    names = {name.strip() for key in _NAMED for name in known.get(key, "").split(",")} - {""}
    wanted = {key: value for key, value in known.items() if key not in _NAMED} | _OFF
    if wanted != known:
        storage.delete(_CHECKSUM)  # first: readers refuse a file whose checksum is another's
        storage.replace(PROPERTIES_PATH, encode_properties(wanted, _COMMENT))
    if storage.stat(METADATA_FOLDER) is not None:
        storage.delete_folder(METADATA_FOLDER)
    return tuple(sorted(names))


def _refuse_pending(table: Table) -> None:
    pending = table.timeline().pending()
    if pending:
        first = pending[0]
        message = (
            f"{table.storage.base}: {first.action} {first.requested} is under way, and a JVM writer that has begun with"
            " the metadata table would write to it again: let it finish, or roll it back, then drop the metadata table"
        )
        raise TableError(message, path=table.storage.base, instant=first.requested)
