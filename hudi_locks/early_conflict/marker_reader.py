"""Which file groups other writes have announced, by direct markers or through a timeline server."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from hudi_locks.format import MarkerName
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import DirectMarkers, Hashes, MarkerIndex, ServerFiles
from hudi_locks.storage import Entry, Storage

__all__ = ["FolderSight", "MarkerCache", "MarkerReader"]

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


class MarkerCache:
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


_cache = MarkerCache()


class MarkerReader:
    """The markers of other writes as one check sees them. Not thread-safe.

    Args:
        storage: Of the table.
        cache: What earlier checks of this process have read.
        is_bucketed: Whether it is asked for buckets, as `FileGroupId.bucket` names them.
    """

    def __init__(self, storage: Storage, cache: MarkerCache = _cache, *, is_bucketed: bool = False) -> None:
        self._storage = storage
        self._cache = cache
        self._is_bucketed = is_bucketed
        self._asked: tuple[Set[FileGroupId], Hashes] | None = None

    @cached_property
    def _began_ms(self) -> int:
        return self._storage.now_ms()

    def find(self, requested: str, groups: Set[FileGroupId]) -> frozenset[FileGroupId]:
        """Those of `groups` that the write begun at `requested` announced, in whatever way; each folder is listed once.

        A file that is being replaced while it is read counts as empty: the next look, and the publish, see it.

        Raises:
            StorageError: A folder cannot be listed.
        """
        folder = DirectMarkers(self._storage, requested).folder
        server = ServerFiles(self._storage, folder)
        if server.is_used():
            return self._find_in_files(server, folder, groups)
        found = (self._list(folder, partition) & groups for partition in sorted({group.partition for group in groups}))
        return frozenset().union(*found)

    def _find_in_files(self, server: ServerFiles, folder: str, groups: Set[FileGroupId]) -> frozenset[FileGroupId]:
        """What indexes do not rule out is read and parsed, so that the answer is exact."""
        path, began_ms = f"{self._storage.base}/{folder}", self._began_ms
        known, entries = self._cache.find(path), server.list_files()
        changed = [entry for entry in entries if not known.is_current(entry)]
        read = {entry: server.read_index(entry.name, is_bucketed=self._is_bucketed) for entry in changed}
        self._cache.keep(path, known.add(read, began_ms=began_ms))
        hashes = self._hash(groups)
        if not any(index.may_hold(hashes) for index in (*known.indexes, *read.values())):
            return frozenset()
        found = self._name(server.read_groups(entry.name for entry in entries)) & groups
        if not found:
            self._cache.forget(path)  # what older versions announced is in the way
        return found

    def _hash(self, groups: Set[FileGroupId]) -> Hashes:
        """Once for all writes that a check looks at."""
        if self._asked is None or self._asked[0] is not groups:
            self._asked = groups, MarkerIndex.hash_groups(groups)
        return self._asked[1]

    def _list(self, folder: str, partition: str) -> frozenset[FileGroupId]:
        names = self._storage.list_names(f"{folder}/{partition}" if partition else folder)
        markers = [marker for name in names if (marker := MarkerName.parse(name)) is not None]
        return self._name(FileGroupId(partition, marker.file_id) for marker in markers)

    def _name(self, groups: Iterable[FileGroupId]) -> frozenset[FileGroupId]:
        """File groups as they are asked for."""
        return frozenset(group.bucket if self._is_bucketed else group for group in groups)
