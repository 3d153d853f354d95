"""Where a table keeps the ring of each partition under consistent hashing (Hudi's ConsistentBucketIndexUtils).

A clustering that splits or joins file groups leaves a ring of its own time, which counts once it is completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format.consistent_hashing import FIRST_RING, HashRing
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import is_archived

__all__ = ["has_hash_rings", "load_hash_rings"]

_FOLDER: Final = ".hoodie/.bucket_index/consistent_hashing_metadata"
_RING: Final = ".hashing_meta"
_COMPLETED: Final = ".commit"


def has_hash_rings(storage: Storage) -> bool:
    """Whether a writer with consistent hashing has written to the table; its properties do not tell.

    Raises:
        StorageError: The store failed.
    """
    return bool(storage.list_names(_FOLDER))


def load_hash_rings(
    storage: Storage, timeline: Timeline, partitions: Iterable[str], *, buckets: int
) -> Mapping[str, HashRing]:
    """The ring of each partition, as `timeline` has it; one that has none gets its first, which follows from its path.

    Args:
        storage: Of the table.
        timeline: What the write builds on.
        partitions: Their paths.
        buckets: So many nodes has a new ring (`hoodie.bucket.index.num.buckets`).

    Raises:
        DamagedTable: A ring cannot be read, or a partition has rings and none that counts.
        StorageError: The store failed.
    """
    names = list(partitions)
    rings = map_in_threads(lambda partition: _load(storage, timeline, partition, buckets), names)
    return dict(zip(names, rings, strict=True))


def _load(storage: Storage, timeline: Timeline, partition: str, buckets: int) -> HashRing:
    folder = f"{_FOLDER}/{partition}".rstrip("/")
    for path in _list_rings(storage, timeline, folder):
        if (data := storage.read(path)) is not None:
            return HashRing.decode(data, path)
    path = f"{folder}/{FIRST_RING}{_RING}"
    if any(name.endswith(_RING) for name in storage.list_names(folder)):
        message = (
            f"{folder} has rings of the index of partition {partition!r}, and none of a completed clustering: let a JVM"
            " writer of the table mend it, before a key is there twice"
        )
        raise DamagedTable(message, path=folder, partition=partition)
    storage.create_if_absent(path, HashRing.create(partition, buckets).encode(partition))
    return HashRing.decode(storage.read(path) or b"", path)  # an older release makes other ids, and may have been first


def _list_rings(storage: Storage, timeline: Timeline, folder: str) -> Iterator[str]:
    """Those that count, the newest first."""
    names = frozenset(storage.list_names(folder))
    times = sorted((name.removesuffix(_RING) for name in names if name.endswith(_RING)), reverse=True)
    for time in times:
        if time == FIRST_RING or f"{time}{_COMPLETED}" in names or _is_completed(storage, timeline, time):
            yield f"{folder}/{time}{_RING}"


def _is_completed(storage: Storage, timeline: Timeline, requested: str) -> bool:
    """Not by being older than the timeline: what was rolled back long ago is that too."""
    found = timeline.get(requested)
    if found is not None:
        return found.is_completed
    return is_archived(storage, timeline.layout, requested=requested)
