"""Which base files make up a snapshot, and which ones changed (Hudi's AbstractTableFileSystemView, copy on write)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

from hudi_locks.errors import TableError
from hudi_locks.format import BaseFileName, CommitMetadata, Instant
from hudi_locks.storage import Entry, Storage
from hudi_locks.table.partition_path import PARTITION_METADATA
from hudi_locks.table.table import read_commit
from hudi_locks.timeline import Timeline

__all__ = ["BaseFile", "Changes", "files_changed", "latest_base_files", "list_partitions"]

_THREADS: Final = 16
_HOODIE: Final = ".hoodie"

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, order=True)
class BaseFile:
    """A base file that readers see.

    Attributes:
        partition: Partition path; "" in an unpartitioned table.
        file_id: Its file group.
        instant: Requested time of the write that made it.
        path: Relative to the base path.
        size: Bytes.
    """

    partition: str
    file_id: str
    instant: str
    path: str
    size: int


@dataclass(frozen=True)
class Changes:
    """What changed in a span of time: the rows of `files` whose `_hoodie_commit_time` is one of `instants`.

    Attributes:
        instants: Requested times of the commits that completed in the span, in the order of their completion.
        files: The newest file of each group that they wrote and that none of them replaced.
    """

    instants: tuple[str, ...]
    files: tuple[BaseFile, ...]


def list_partitions(storage: Storage) -> tuple[str, ...]:
    """Partition paths in order: every folder that is marked as a partition; "" if the table itself is."""
    found: list[str] = []
    level = [""]
    while level:
        listed = zip(level, _map_in_threads(storage.list, level), strict=True)
        level = []
        for folder, entries in listed:
            if any(entry.name.startswith(PARTITION_METADATA) for entry in entries):
                found.append(folder)
            else:
                level += [_join(folder, e.name) for e in entries if e.is_folder and e.name != _HOODIE]
    return tuple(sorted(found))


def latest_base_files(
    storage: Storage,
    timeline: Timeline,
    *,
    partitions: Iterable[str] | None = None,
    as_of: str | None = None,
    as_of_requested: str | None = None,
) -> tuple[BaseFile, ...]:
    """The newest completed base file of each file group, in order of partition and file id.

    Replaced file groups are left out. Of a file older than the active timeline the commit counts as completed at its
    requested time. Load the timeline first, so that no file of a later commit can be missing.

    Args:
        storage: The table's files.
        timeline: Says what is completed.
        partitions: Only these; all if None.
        as_of: Only what was completed at this time or before.
        as_of_requested: Only what was begun at this time or before, as the JVM reads `as.of.instant`.

    Raises:
        DamagedTable: A replacing commit cannot be read.
    """

    def shows(requested: str) -> bool:
        instant = timeline.get(requested)
        completion = (instant.completion if instant else None) or requested
        in_time = (as_of is None or completion <= as_of) and (as_of_requested is None or requested <= as_of_requested)
        return in_time and timeline.is_completed(requested)

    folders = list_partitions(storage) if partitions is None else tuple(sorted(set(partitions)))
    listed = zip(folders, _map_in_threads(storage.list, folders), strict=True)
    files = (file for folder, entries in listed for file in _base_files(folder, entries) if shows(file.instant))
    replaced = _replaced(storage, timeline, shows)
    newest = {(file.partition, file.file_id): file for file in sorted(files)}
    return tuple(file for group, file in sorted(newest.items()) if group not in replaced)


def files_changed(storage: Storage, timeline: Timeline, *, begin: str, end: str | None = None) -> Changes:
    """What commits with begin < completion time <= end changed.

    Raises:
        TableError: Commits after `begin` are archived, so that the answer would not be whole.
        DamagedTable: A commit cannot be read.
    """
    _refuse_archived(storage, timeline, begin)
    instants = timeline.completed_between(begin, end)
    commits = [(i, read_commit(storage, timeline, requested=i.requested)) for i in instants]
    replaced = frozenset(group for _, commit in commits for group in commit.replaced_file_groups)
    written = sorted(file for instant, commit in commits for file in _files_of(instant, commit))
    newest = {(file.partition, file.file_id): file for file in written}
    files = tuple(file for group, file in sorted(newest.items()) if group not in replaced)
    return Changes(tuple(instant.requested for instant in instants), files)


def _base_files(partition: str, entries: Iterable[Entry]) -> Iterator[BaseFile]:
    for entry in entries:
        if not entry.is_folder and (name := BaseFileName.parse(entry.name)):
            yield BaseFile(partition, name.file_id, name.instant, _join(partition, entry.name), entry.size)


def _files_of(instant: Instant, commit: CommitMetadata) -> Iterator[BaseFile]:
    for stat in commit.stats:
        if stat.path and BaseFileName.parse(stat.path.rpartition("/")[2]):
            yield BaseFile(stat.partition_path, stat.file_id, instant.requested, stat.path, stat.file_size_bytes)


def _replaced(storage: Storage, timeline: Timeline, shows: Callable[[str], bool]) -> frozenset[tuple[str, str]]:
    replacing = [i.requested for i in timeline.completed(["replacecommit"]) if shows(i.requested)]
    commits = (read_commit(storage, timeline, requested=requested) for requested in replacing)
    return frozenset(group for commit in commits for group in commit.replaced_file_groups)


def _refuse_archived(storage: Storage, timeline: Timeline, begin: str) -> None:
    first = timeline.first_active
    if first is not None and begin >= first:
        return
    if any(entry.size for entry in storage.list(timeline.layout.archive)):
        message = (
            f"commits after {begin!r} are archived: the timeline begins at {first}; begin there or read a snapshot"
        )
        raise TableError(message, begin=begin, first_active=first)


def _map_in_threads(call: Callable[[T], R], arguments: Iterable[T]) -> list[R]:
    work = list(arguments)
    if len(work) < 2:
        return [call(argument) for argument in work]
    with ThreadPoolExecutor(min(_THREADS, len(work))) as pool:
        return list(pool.map(call, work))


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
