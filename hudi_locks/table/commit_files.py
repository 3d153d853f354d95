"""Which data files the completed writes of a timeline name, how large they left them, and what they ended."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_locks.format import WRITE_ACTIONS, CommitMetadata, Instant, WriteStat
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.data_files import BaseFile, DataFiles, LogFile
from hudi_locks.timeline import Timeline, read_instant
from hudi_locks.timeline.archive import find_archived_content

__all__ = ["CommitFiles", "read_commit_files", "read_completed"]

_MOST: Final = 4_096
"""So many commits of a table are remembered at least, with the files that they name."""
_RECENT: Final = 8
"""And of so many all that they say."""
_TABLES: Final = 16
"""Of so many tables."""


@dataclass(frozen=True)
class CommitFiles:
    """What one write says of data files.

    Attributes:
        files: Those that it made; the size is what the file had at least, or for a base file exactly; 0 if not told.
        replaced: (partition path, file id) of each file group that it ended.
        schema: The user's columns in those files, as Avro JSON; None if it does not tell.
    """

    files: DataFiles
    replaced: frozenset[tuple[str, str]]
    schema: str | None = None

    @classmethod
    def of(cls, commit: CommitMetadata) -> CommitFiles:
        """What the metadata of a completed write names."""
        files = [file for stat in commit.stats if stat.path for file in _parse(stat, stat.path.rpartition("/")[2])]
        bases = tuple(file for file in files if isinstance(file, BaseFile))
        logs = tuple(file for file in files if isinstance(file, LogFile))
        schema = None if commit.schema is None else sys.intern(commit.schema)  # as a rule all commits have the same
        return cls(DataFiles(bases, logs), commit.replaced_file_groups, schema)


def read_commit_files(storage: Storage, timeline: Timeline) -> Mapping[str, CommitFiles]:
    """What the completed writes of the active timeline name, by requested time.

    Each is read once in a process, since it never changes. One that was undone since the timeline was
    loaded is left out, unless it was read before; of a table of version 6 one that was archived since, too.

    Raises:
        DamagedTable: A commit cannot be read.
    """
    writes = timeline.completed(WRITE_ACTIONS)
    return _find_memory(storage).read(storage, timeline, writes)


def read_completed(storage: Storage, timeline: Timeline, *, instant: Instant) -> CommitMetadata:
    """What a completed write says; the last few are remembered.

    Raises:
        DamagedTable: Its file is gone or cannot be read.
    """
    memory = _find_memory(storage)
    known = memory.recall(instant)
    if known is None:
        path = timeline.paths.get(instant) or timeline.layout.path(instant)
        known = CommitMetadata.decode(read_instant(storage, timeline, instant=instant), path)
        memory.remember(instant, known)
    return known


class _Memory:
    """What was read of one table. Thread-safe: two that read the same at once read it twice."""

    def __init__(self) -> None:
        self._known: dict[Instant, CommitFiles] = {}
        self._recent: OrderedDict[Instant, CommitMetadata] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, write: Instant) -> CommitMetadata | None:
        """Of the last few all that they say."""
        with self._lock:
            return self._recent.get(write)

    def remember(self, write: Instant, commit: CommitMetadata) -> None:
        """One more, and one less where there are many."""
        with self._lock:
            self._recent[write] = commit
            while len(self._recent) > _RECENT:
                self._recent.popitem(last=False)

    def read(self, storage: Storage, timeline: Timeline, writes: Iterable[Instant]) -> dict[str, CommitFiles]:
        """What each of `writes` names, by requested time."""
        wanted = tuple(writes)
        new = [write for write in wanted if write not in self._known]
        read = dict(zip(new, map_in_threads(lambda one: self._read(storage, timeline, one), new), strict=True))
        found = {**self._known, **{write: named for write, named in read.items() if named is not None}}
        asked = {write: found[write] for write in wanted if write in found}
        self._known = asked if len(found) > max(_MOST, 2 * len(asked)) else found
        return {write.requested: named for write, named in asked.items()}

    def _read(self, storage: Storage, timeline: Timeline, write: Instant) -> CommitFiles | None:
        commit = self.recall(write)
        if commit is None:
            path = timeline.paths.get(write) or timeline.layout.path(write)
            data = storage.read(path)
            if data is None:
                data = find_archived_content(storage, timeline.layout, instant=write)
            if data is None:
                return None
            commit = CommitMetadata.decode(data, path)
            self.remember(write, commit)
        return CommitFiles.of(commit)


_memories: OrderedDict[Hashable, _Memory] = OrderedDict()
_lock = threading.Lock()


def _find_memory(storage: Storage) -> _Memory:
    with _lock:
        memory = _memories.pop(storage.place, None) or _Memory()
        _memories[storage.place] = memory
        while len(_memories) > _TABLES:
            _memories.popitem(last=False)
        return memory


def _parse(stat: WriteStat, name: str) -> Iterator[BaseFile | LogFile]:
    base = BaseFile.parse(stat.partition_path, name, stat.file_size_bytes)
    log = LogFile.parse(stat.partition_path, name, (stat.log_offset or 0) + stat.file_size_bytes)
    yield from (file for file in (base, log) if file is not None)
