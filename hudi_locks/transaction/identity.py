"""Who writes to which table: what is looked at, and said, before the first transaction."""

from __future__ import annotations

import os
import socket
import threading
import uuid

from hudi_locks.config import datasource_keys, lock_keys, write_keys
from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.lock import Owner
from hudi_locks.transaction.settings import Settings
from hudi_locks.transaction.table_like import TransactionTable
from hudi_locks.transaction.table_lock import Locks

__all__ = ["name_this_process", "refuse_unusable"]


def name_this_process() -> Owner:
    """This thread of this process, for others to read."""
    thread = threading.current_thread().name
    return Owner(uuid.uuid4().hex, host=socket.gethostname(), pid=os.getpid(), thread=thread)


def refuse_unusable(table: TransactionTable, locks: Locks | None, settings: Settings) -> None:
    """Whether transactions can be held on the table with these settings.

    Raises:
        ConfigError: Several writers without a lock provider; non-blocking ones on a table that does not log, or without
            the bucket index.
        UnsupportedTable: The timeline has no completion times (table version 6).
    """
    if table.layout.version == 1:
        message = "a table of version 6 has no completion times, and is read only here: upgrade it to version 8"
        raise UnsupportedTable(message, layout_version=1)
    if locks is None and settings.is_multi_writer:
        key = lock_keys.PROVIDER.name
        raise ConfigError(f"{settings.mode} needs a lock: set {key}", key=key)
    if settings.is_non_blocking and not (table.config.table_type == "MERGE_ON_READ" and settings.is_bucketed):
        key = write_keys.CONCURRENCY_MODE.name
        message = f"{key}={settings.mode} needs a MERGE_ON_READ table and {datasource_keys.INDEX_TYPE.name}=BUCKET, for"
        raise ConfigError(f"{message} writers add to the same file groups only by logs; this is none", key=key)
