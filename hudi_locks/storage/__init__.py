"""What a table needs of a file system: list, read, create-if-absent, move-if-absent, delete."""

from hudi_locks.storage.storage import Entry, Storage

__all__ = ["Entry", "Storage"]
