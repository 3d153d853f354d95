"""Which file groups other writes have announced, by direct markers or through a timeline server."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import cached_property

from hudi_locks.early_conflict.sighting_cache import SightingCache
from hudi_locks.format import MarkerName
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import DirectMarkers, Hashes, MarkerIndex, ServerFiles
from hudi_locks.storage import Storage

__all__ = ["Sightings"]

_cache = SightingCache()


class Sightings:
    """The markers of other writes as one check sees them. Not thread-safe.

    Args:
        storage: Of the table.
        cache: What earlier checks of this process have read.
        is_bucketed: Whether it is asked for buckets, as `FileGroupId.bucket` names them.
    """

    def __init__(self, storage: Storage, cache: SightingCache = _cache, *, is_bucketed: bool = False) -> None:
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
