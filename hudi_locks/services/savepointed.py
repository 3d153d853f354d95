"""What the savepoints of a table keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from hudi_locks.format import (
    WRITE_ACTIONS,
    BaseFileName,
    CommitMetadata,
    CompactionPlan,
    Instant,
    LogFileName,
    SavepointMetadata,
    State,
)
from hudi_locks.storage import Storage
from hudi_locks.table import read_commit
from hudi_locks.timeline import Timeline, read_instant

__all__ = ["find_missing", "list_savepointed", "read_savepoint"]

_NO_COMMIT_BEFORE: Final = "null"
Group = tuple[str, str]
N = TypeVar("N", BaseFileName, LogFileName)


def read_savepoint(storage: Storage, timeline: Timeline, *, requested: str) -> SavepointMetadata | None:
    """The completed savepoint of the write begun at `requested`; None if there is none.

    Raises:
        DamagedTable: It cannot be read.
    """
    found = next((i for i in timeline.completed(("savepoint",)) if i.requested == requested), None)
    if found is None:
        return None
    return SavepointMetadata.decode(read_instant(storage, timeline, instant=found), timeline.paths[found])


def list_savepointed(storage: Storage, timeline: Timeline) -> frozenset[str]:
    """Every data file that a completed savepoint keeps, relative to the base path.

    Raises:
        DamagedTable: A savepoint cannot be read.
    """
    found = (read_savepoint(storage, timeline, requested=requested) for requested in timeline.savepoints)
    return frozenset(path for savepoint in found if savepoint for path in savepoint.paths)


def find_missing(storage: Storage, timeline: Timeline, *, requested: str, paths: frozenset[str]) -> str:
    """A file group whose files at `requested` were superseded since, and are not all among `paths`; "" if all are.

    Every later write is still on the active timeline, and tells which version of a file group it found; a compaction
    also tells which logs it took over.

    Raises:
        DamagedTable: A commit or plan cannot be read.
    """
    versions = {(partition, name.file_id): name.instant for partition, name in _list_parsed(paths, BaseFileName)}
    groups = {*versions, *((partition, name.file_id) for partition, name in _list_parsed(paths, LogFileName))}
    made: set[Group] = set()
    for write in timeline.completed(WRITE_ACTIONS):
        if write.requested <= requested:
            continue
        commit = read_commit(storage, timeline, requested=write.requested)
        for group, version in _list_superseded(commit, made):
            if versions.get(group) != version and (version or group not in groups):
                return _describe(group)
        merged = _list_merged(storage, timeline, write) if commit.compacted else ()
        for group, name in merged:
            if name.instant <= requested and _join(group[0], str(name)) not in paths:
                return _describe(group)
    return ""


def _list_superseded(commit: CommitMetadata, made: set[Group]) -> Iterator[tuple[Group, str]]:
    """Each file group that a write rewrote or replaced, with its version before that; "" if not told.

    Those in `made` are passed over, since they were written anew before, and what it writes itself comes to them. Logs
    supersede nothing.
    """
    for stat in commit.stats:
        group = (stat.partition_path, stat.file_id)
        if stat.log_version is None:
            if group not in made and stat.prev_commit != _NO_COMMIT_BEFORE:
                yield group, stat.prev_commit
            made.add(group)
    yield from ((group, "") for group in commit.replaced_file_groups - made)


def _list_merged(storage: Storage, timeline: Timeline, compaction: Instant) -> Iterator[tuple[Group, LogFileName]]:
    """Each log that a compaction took over, with its file group."""
    path = timeline.layout.path(Instant(compaction.requested, "compaction", State.REQUESTED))
    for operation in CompactionPlan.decode(storage.read(path) or b"", path).groups:
        names = filter(None, map(LogFileName.parse, operation.log_names))
        yield from (((operation.partition, operation.file_id), name) for name in names)


def _list_parsed(paths: Iterable[str], kind: type[N]) -> Iterator[tuple[str, N]]:
    for path in paths:
        partition, _, name = path.rpartition("/")
        if (parsed := kind.parse(name)) is not None:
            yield partition, parsed


def _describe(group: Group) -> str:
    return _join(*group)


def _join(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name
