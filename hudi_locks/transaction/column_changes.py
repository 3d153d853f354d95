"""Changes of the columns beside a write, and the history of columns that its commit keeps up.

The file of the history is made before the claim, as JVM Hudi makes it before the commit: readers take it for one only
when the commit is completed. Every commit makes one, since the JVM goes by those of active commits alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from hudi_locks.errors import StorageError
from hudi_locks.format import CommitMetadata, State, interpreting
from hudi_locks.format.column_versions import ColumnVersion, encode_versions
from hudi_locks.storage import Storage
from hudi_locks.table import (
    ALTER_SCHEMA,
    NEWEST_COLUMNS,
    SCHEMA_FOLDER,
    SchemaHistory,
    list_schema_files,
    read_schema_history,
)
from hudi_locks.timeline import Timeline
from hudi_locks.transaction.conflicts import ConcurrentOperation
from hudi_locks.transaction.write_state import Conflict, WriteState

__all__ = ["altering_operations", "find_changed_columns", "keep_history", "store_history"]

_WRITES: Final = ("commit", "deltacommit")
_ADVICE: Final = (
    "The history of the columns went on meanwhile: begin a new write from a fresh snapshot, with the columns as the"
    " table has them now."
)


def find_changed_columns(
    storage: Storage, state: WriteState, now: Timeline, *, metadata: CommitMetadata
) -> Conflict | None:
    """The conflict of a write that goes by the history of columns with one that added to it meanwhile.

    Readers take the history of the commit that was begun last. So a write that adds to it must be the latest.

    Args:
        storage: Of the table.
        state: Of the write.
        now: The timeline on which is decided.
        metadata: Of the write.

    Raises:
        DamagedTable: The history cannot be read.
    """
    known, found = (read_schema_history(storage, timeline) for timeline in (state.timeline, now))
    if found is None:
        return None
    is_same = known is not None and known.newest.number == found.newest.number
    is_latest = found.requested < state.requested or not _adds(metadata, state.requested)
    if is_same and is_latest:
        return None
    other = now.get(found.requested)
    action = "write" if other is None else other.action
    return Conflict(state.requested, (), found.requested, action, "another writer", 0, _ADVICE)


def _adds(metadata: CommitMetadata, instant: str) -> bool:
    with interpreting("newest columns", instant):
        return int(json.loads(metadata.extra[NEWEST_COLUMNS])["version_id"]) == int(instant)


def keep_history(storage: Storage, timeline: Timeline, *, instant: str, metadata: CommitMetadata) -> None:
    """Make the file of the history for a commit that says which columns are the newest; nothing for others.

    Args:
        storage: Of the table.
        timeline: On which the commit was decided.
        instant: Requested time of the commit.
        metadata: Of the commit.

    Raises:
        DamagedTable: The history cannot be read.
        StorageError: The store failed.
    """
    told = metadata.extra.get(NEWEST_COLUMNS)
    if told is None or instant in (made := list_schema_files(storage)):
        return
    history = read_schema_history(storage, timeline)
    versions = () if history is None else history.versions
    with interpreting("newest columns", instant):
        newest = ColumnVersion.decode(json.loads(told))
    is_known = bool(versions) and versions[0].number == newest.number
    store_history(storage, SchemaHistory("", versions if is_known else (newest, *versions)), instant=instant)
    first = timeline.first_active
    stale = [path for time, path in made.items() if first and time < first and history and path != history.path]
    for path in stale:
        with suppress(StorageError):  # the next commit tries again
            storage.delete(path)


def store_history(storage: Storage, history: SchemaHistory, *, instant: str) -> None:
    """Write a file of the history for the commit begun at `instant`, which may come to nothing.

    Raises:
        StorageError: The store failed.
    """
    storage.replace(f"{SCHEMA_FOLDER}/{instant}_{instant}.schemacommit", encode_versions(history.versions))


def altering_operations(storage: Storage, timeline: Timeline, *, beside: str) -> Iterator[ConcurrentOperation]:
    """ALTER TABLE statements of JVM Hudi that are under way: files begun after one would be read by its columns.

    Args:
        storage: Of the table.
        timeline: As it is now.
        beside: The write that asks, which is passed over.

    Raises:
        DamagedTable: An inflight file is unreadable.
    """
    for instant in timeline.pending(_WRITES):
        if instant.state is State.INFLIGHT and instant.requested != beside:
            path = timeline.paths[instant]
            found = CommitMetadata.decode(storage.read(path) or b"", path, may_be_empty=True)
            if found.operation == ALTER_SCHEMA:
                what = (instant.requested, instant.action, ALTER_SCHEMA)
                yield ConcurrentOperation(*what, is_completed=False, groups=frozenset(), covers_table=True)
