"""What this process has read of other writes' server files, so that only what was changed is read again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hudi_locks.markers import MarkerIndex
from hudi_locks.storage import Entry

__all__ = ["FolderSight", "SightingCache"]

_SETTLED_MS: Final = 2_000
"""No file system that is in use stamps files more coarsely."""
_LIMIT: Final = 4_000_000
_RECENT_SHARE: Final = 2


@dataclass(frozen=True)
class FolderSight:
    """What was read of the server files of one write.

    Attributes:
        versions: Of the files that need not be read again while they have them.
        indexes: Together they hold all that those files may announce, and what older versions did.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    indexes: tuple[MarkerIndex, ...] = ()

    @property
    def size(self) -> int:
        """How many hashes it keeps."""
        return sum(len(index) for index in self.indexes)

    def is_current(self, entry: Entry) -> bool:
        """Whether a file need not be read, by what a listing says of it."""
        return bool(entry.version) and self.versions.get(entry.name) == entry.version

    def add(self, read: Mapping[Entry, MarkerIndex], *, began_ms: int) -> FolderSight:
        """The same with what was read just now.

        A file that was changed a moment before is not relied on: another change within the resolution of the store's
        times would leave no trace. Nor is one of a store that tells no versions.

        Args:
            read: What a listing said of files, and what they then held.
            began_ms: Time of the store at some moment before that listing, ms since the epoch.
        """
        settled = {e: i for e, i in read.items() if e.version and e.modified_ms <= began_ms - _SETTLED_MS}
        if not settled:
            return self
        versions = {**self.versions, **{entry.name: entry.version for entry in settled}}
        return FolderSight(versions, _merge((*self.indexes, *settled.values())))


def _merge(indexes: tuple[MarkerIndex, ...]) -> tuple[MarkerIndex, ...]:
    """A large index, and small ones behind it: sorting all of them at each change would cost more than it saves."""
    recent = sum(len(index) for index in indexes[1:])
    return indexes if recent * _RECENT_SHARE < len(indexes[0]) else (MarkerIndex.merge(indexes),)


class SightingCache:
    """Keeps the sights of the folders that were looked at last. Thread-safe.

    Args:
        limit: How many markers are kept in all; eight bytes each.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, FolderSight] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, folder: str) -> FolderSight:
        """What is known of a folder, base path included; an empty sight if nothing is."""
        with self._lock:
            return self._kept.get(folder, FolderSight())

    def keep(self, folder: str, sight: FolderSight) -> None:
        """Remember what is known of a folder."""
        with self._lock:
            self._drop(folder)
            self._kept[folder] = sight
            self._size += sight.size
            while self._size > self._limit:
                self._drop(next(iter(self._kept)))

    def forget(self, folder: str) -> None:
        """Have all of a folder read again."""
        with self._lock:
            self._drop(folder)

    def _drop(self, folder: str) -> None:
        self._size -= self._kept.pop(folder, FolderSight()).size
