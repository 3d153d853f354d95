"""Where a table keeps the ring of each partition under consistent hashing (Hudi's ConsistentBucketIndexUtils).

A clustering that splits or merges file groups leaves a ring of its own time, which counts once it is completed. A mark
beside it says so from then on, also when the clustering is off the timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hudi_locks.errors import DamagedTable, UnsupportedTable, WriteAborted
from hudi_locks.format.consistent_hashing import FIRST_RING, HashRing
from hudi_locks.format.ring_change import RingChange
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.data_files import FileSlice
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import is_archived

__all__ = [
    "change_hash_rings",
    "find_hash_ring",
    "has_hash_rings",
    "load_hash_rings",
    "refuse_strangers",
    "remove_hash_rings",
    "remove_ring_marks",
]

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


def refuse_strangers(rings: Mapping[str, HashRing], slices: Iterable[FileSlice]) -> None:
    """Whether the rings name all of the file groups.

    Raises:
        UnsupportedTable: One belongs to none.
    """
    for piece in slices:
        if piece.file_id not in rings[piece.partition].file_ids:
            path = piece.paths[0]
            message = (
                f"{path} belongs to no node of the ring of partition {piece.partition!r}, so it was not written with"
                " hoodie.index.bucket.engine=CONSISTENT_HASHING; write with the index that made the table"
            )
            raise UnsupportedTable(message, path=path, partition=piece.partition, file_id=piece.file_id)


def find_hash_ring(storage: Storage, timeline: Timeline, partition: str) -> HashRing | None:
    """The ring of a partition, as `timeline` has it; None if there is none that counts.

    Raises:
        DamagedTable: It cannot be read.
        StorageError: The store failed.
    """
    found = _find(storage, timeline, _name_folder(partition))
    return None if found is None else found[1]


def change_hash_rings(
    storage: Storage, timeline: Timeline, changes: Mapping[str, Sequence[RingChange]], *, instant: str
) -> None:
    """Make the rings that a clustering leaves; they count once it is completed.

    Args:
        storage: Of the table.
        timeline: On which its publish is decided.
        changes: What it does to the ring of each partition.
        instant: Its requested time.

    Raises:
        DamagedTable: A ring cannot be read.
        StorageError: The store failed.
        WriteAborted: A ring is not the one that the plan was made from.
    """
    for partition, parts in changes.items():
        ring = find_hash_ring(storage, timeline, partition)
        numbers = {change.number for change in parts}
        if ring is None or numbers != {ring.number}:
            message = (
                f"clustering {instant} was planned from ring {', '.join(map(str, sorted(numbers)))} of partition"
                f" {partition!r}, and {'none' if ring is None else f'ring {ring.number}'} counts now: plan it anew"
            )
            raise WriteAborted(message, instant=instant, partition=partition)
        changed = ring.change(node for change in parts for node in change.nodes)
        path = f"{_name_folder(partition)}/{instant}{_RING}"
        storage.replace(path, changed.encode(partition, instant=instant))


def remove_hash_rings(storage: Storage, instant: str) -> None:
    """Remove the rings of a clustering that is undone.

    Raises:
        StorageError: The store failed.
    """
    names = {f"{instant}{ending}" for ending in (_COMPLETED, _RING)}
    left = [path for path, _ in storage.walk(_FOLDER) if path.rpartition("/")[2] in names]
    storage.delete_all(sorted(left))  # the mark first: without its ring JVM Hudi fails on it


def remove_ring_marks(storage: Storage, timeline: Timeline) -> None:
    """Remove the marks of a table that becomes one of version 6; see `_mark`.

    Args:
        storage: Of the table.
        timeline: Of version 6. A mark of a clustering that neither it nor its archive has stays: it alone tells.

    Raises:
        StorageError: The store failed.
    """
    paths = [path for path, _ in storage.walk(_FOLDER) if path.endswith(_COMPLETED)]
    times = {path: path.rpartition("/")[2].removesuffix(_COMPLETED) for path in paths}
    told = {time for time in set(times.values()) if _is_completed(storage, timeline, time)}
    storage.delete_all(sorted(path for path, time in times.items() if time in told))


def _load(storage: Storage, timeline: Timeline, partition: str, buckets: int) -> HashRing:
    folder = _name_folder(partition)
    found = _find(storage, timeline, folder)
    if found is not None:
        _mark(storage, timeline, folder, found[0])
        return found[1]
    path = f"{folder}/{FIRST_RING}{_RING}"
    if any(name.endswith(_RING) for name in storage.list_names(folder)):
        message = (
            f"{folder} has rings of the index of partition {partition!r}, and none of a completed clustering: let a JVM"
            " writer of the table mend it, before a key is there twice"
        )
        raise DamagedTable(message, path=folder, partition=partition)
    storage.create_if_absent(path, HashRing.create(partition, buckets).encode(partition))
    return HashRing.decode(storage.read(path) or b"", path)  # an older release makes other ids, and may have been first


def _find(storage: Storage, timeline: Timeline, folder: str) -> tuple[str, HashRing] | None:
    """The time of the ring that counts, if it is still to be marked, and the ring."""
    for path, is_marked in _list_rings(storage, timeline, folder):
        if (data := storage.read(path)) is not None:
            return "" if is_marked else path.rpartition("/")[2].removesuffix(_RING), HashRing.decode(data, path)
    return None


def _mark(storage: Storage, timeline: Timeline, folder: str, time: str) -> None:
    """As JVM Hudi does, which cannot tell otherwise once the clustering is archived.

    Release 0.15.0 puts its marks elsewhere. Where one is here it finds no ring while it runs the next clustering.
    """
    if time and timeline.layout.version > 1:
        storage.create_if_absent(f"{folder}/{time}{_COMPLETED}", b"")


def _name_folder(partition: str) -> str:
    return f"{_FOLDER}/{partition}".rstrip("/")


def _list_rings(storage: Storage, timeline: Timeline, folder: str) -> Iterator[tuple[str, bool]]:
    """Those that count, the newest first, and whether they need no mark."""
    names = frozenset(storage.list_names(folder))
    times = sorted((name.removesuffix(_RING) for name in names if name.endswith(_RING)), reverse=True)
    for time in times:
        is_marked = time == FIRST_RING or f"{time}{_COMPLETED}" in names
        if is_marked or _is_completed(storage, timeline, time):
            yield f"{folder}/{time}{_RING}", is_marked


def _is_completed(storage: Storage, timeline: Timeline, requested: str) -> bool:
    """Not by being older than the timeline: what was rolled back long ago is that too."""
    found = timeline.get(requested)
    if found is not None:
        return found.is_completed
    return is_archived(storage, timeline.layout, requested=requested)
