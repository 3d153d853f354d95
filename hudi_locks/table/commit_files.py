"""Which data files the completed writes of a timeline name, how large they left them, and what they ended."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from hudi_locks.format import WRITE_ACTIONS, CommitMetadata, Instant, WriteStat
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.data_files import BaseFile, DataFiles, LogFile
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import find_archived_content

__all__ = ["CommitFiles", "read_commit_files"]

_MOST: Final = 4_096
"""So many commits are remembered at least, with all that they name."""


@dataclass(frozen=True)
class CommitFiles:
    """What one write says of data files.

    Attributes:
        files: Those that it made; the size is what the file had at least, or for a base file exactly; 0 if not told.
        replaced: (partition path, file id) of each file group that it ended.
    """

    files: DataFiles
    replaced: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, commit: CommitMetadata) -> CommitFiles:
        """What the metadata of a completed write names."""
        files = [file for stat in commit.stats if stat.path for file in _parse(stat, stat.path.rpartition("/")[2])]
        bases = tuple(file for file in files if isinstance(file, BaseFile))
        logs = tuple(file for file in files if isinstance(file, LogFile))
        return cls(DataFiles(bases, logs), commit.replaced_file_groups)


def read_commit_files(storage: Storage, timeline: Timeline) -> Mapping[str, CommitFiles]:
    """What the completed writes of the active timeline name, by requested time.

    Each is read once in the life of `storage`, since it never changes. One that was undone since the timeline was
    loaded is left out, unless it was read before; of a table of version 6 one that was archived since, too.

    Raises:
        DamagedTable: A commit cannot be read.
    """
    writes = timeline.completed(WRITE_ACTIONS)
    return _find_memory(storage).read(storage, timeline, writes)


class _Memory:
    """What was read through one storage. Thread-safe: two that read the same at once read it twice."""

    def __init__(self) -> None:
        self._known: dict[Instant, CommitFiles] = {}

    def read(self, storage: Storage, timeline: Timeline, writes: Iterable[Instant]) -> dict[str, CommitFiles]:
        wanted = tuple(writes)
        new = [write for write in wanted if write not in self._known]
        read = dict(zip(new, map_in_threads(lambda one: _read(storage, timeline, one), new), strict=True))
        found = {**self._known, **{write: named for write, named in read.items() if named is not None}}
        asked = {write: found[write] for write in wanted if write in found}
        self._known = asked if len(found) > max(_MOST, 2 * len(asked)) else found
        return {write.requested: named for write, named in asked.items()}


_memories: WeakKeyDictionary[Storage, _Memory] = WeakKeyDictionary()
_lock = threading.Lock()


def _find_memory(storage: Storage) -> _Memory:
    with _lock:
        return _memories.setdefault(storage, _Memory())


def _read(storage: Storage, timeline: Timeline, write: Instant) -> CommitFiles | None:
    path = timeline.paths.get(write) or timeline.layout.path(write)
    data = storage.read(path)
    if data is None:
        data = find_archived_content(storage, timeline.layout, instant=write)
    return None if data is None else CommitFiles.of(CommitMetadata.decode(data, path))


def _parse(stat: WriteStat, name: str) -> Iterator[BaseFile | LogFile]:
    base = BaseFile.parse(stat.partition_path, name, stat.file_size_bytes)
    log = LogFile.parse(stat.partition_path, name, (stat.log_offset or 0) + stat.file_size_bytes)
    yield from (file for file in (base, log) if file is not None)
