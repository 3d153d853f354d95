"""What a table needs of a file system: list, read, create-if-absent, move-if-absent, delete."""

from hudi_locks.storage.local import LocalStorage
from hudi_locks.storage.memory import MemoryStorage
from hudi_locks.storage.opening import open_beside, open_storage, register_storage
from hudi_locks.storage.probe import check_service, probe_storage
from hudi_locks.storage.staged import MOST_TICKET_BYTES, TICKETS_FOLDER, StagedFile, draw_staged, find_staged
from hudi_locks.storage.storage import (
    Entry,
    Output,
    Storage,
    StorageCapabilities,
    map_in_threads,
    reading_ahead,
    refuse_unwritable,
    reporting,
)

__all__ = [
    "MOST_TICKET_BYTES",
    "TICKETS_FOLDER",
    "Entry",
    "LocalStorage",
    "MemoryStorage",
    "Output",
    "StagedFile",
    "Storage",
    "StorageCapabilities",
    "check_service",
    "draw_staged",
    "find_staged",
    "map_in_threads",
    "open_beside",
    "open_storage",
    "probe_storage",
    "reading_ahead",
    "refuse_unwritable",
    "register_storage",
    "reporting",
]
