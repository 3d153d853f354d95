"""What the savepoints of a table keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_locks.format import WRITE_ACTIONS, BaseFileName, SavepointMetadata
from hudi_locks.storage import Storage
from hudi_locks.table import read_commit
from hudi_locks.timeline import Timeline, read_instant

__all__ = ["find_missing", "list_savepointed", "read_savepoint"]

_NO_COMMIT_BEFORE: Final = "null"
Group = tuple[str, str]


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
    """A file group whose version at `requested` was superseded since, and is not among `paths`; "" if all are there.

    Every later write is still on the active timeline, and tells which version of a file group it found.

    Raises:
        DamagedTable: A commit cannot be read.
    """
    there = dict(map(_parse, paths))
    for (partition, file_id), version in _find_superseded(storage, timeline, requested):
        if there.get((partition, file_id)) != version and (version or (partition, file_id) not in there):
            return f"{partition}/{file_id}" if partition else file_id
    return ""


def _find_superseded(storage: Storage, timeline: Timeline, requested: str) -> Iterator[tuple[Group, str]]:
    """Each file group that a write after `requested` rewrote or replaced, with its version then; "" if not told."""
    made: set[Group] = set()
    for write in timeline.completed(WRITE_ACTIONS):
        if write.requested <= requested:
            continue
        commit = read_commit(storage, timeline, requested=write.requested)
        for stat in commit.stats:
            group = (stat.partition_path, stat.file_id)
            if group not in made and stat.prev_commit != _NO_COMMIT_BEFORE:
                yield group, stat.prev_commit
            made.add(group)
        yield from ((group, "") for group in commit.replaced_file_groups - made)


def _parse(path: str) -> tuple[Group, str]:
    partition, _, name = path.rpartition("/")
    parsed = BaseFileName.parse(name)
    return ((partition, parsed.file_id), parsed.instant) if parsed else ((partition, name), "")
