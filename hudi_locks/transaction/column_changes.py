"""Changes of the columns beside a write, and the history of columns that its commit keeps up.

The file of the history is made before the claim, as JVM Hudi makes it before the commit: readers take it for one only
when the commit is completed. Every commit makes one, since the JVM goes by those of active commits alone.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Final

from hudi_locks.errors import StorageError
from hudi_locks.format import CommitMetadata, Instant, State, TimelineLayout, interpreting
from hudi_locks.format.column_versions import ColumnVersion, encode_versions
from hudi_locks.storage import Storage
from hudi_locks.table import (
    NEWEST_COLUMNS,
    SCHEMA_FOLDER,
    SchemaHistory,
    list_schema_files,
    read_schema_history,
)
from hudi_locks.timeline import Timeline
from hudi_locks.transaction.write_state import Conflict, WriteState

__all__ = ["find_changed_columns", "keep_history", "store_history"]

_ACTION: Final = "schemacommit"
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
    """Make the file of the history for a commit that says which columns are the newest.

    Args:
        storage: Of the table.
        timeline: On which the commit was decided.
        instant: Requested time of the commit.
        metadata: Of the commit.

    Raises:
        DamagedTable: The history cannot be read.
        StorageError: The store failed.
    """
    made = list_schema_files(storage)
    if instant in made:
        return
    history = read_schema_history(storage, timeline)
    versions = () if history is None else history.versions
    with interpreting("newest columns", instant):
        newest = ColumnVersion.decode(json.loads(metadata.extra[NEWEST_COLUMNS]))
    is_known = bool(versions) and versions[0].number == newest.number
    kept = SchemaHistory("", versions if is_known else (newest, *versions))
    store_history(storage, kept, instant=instant, layout=timeline.layout)
    first = timeline.first_active
    stale = [path for time, path in made.items() if first and time < first and history and path != history.path]
    for path in stale:
        with suppress(StorageError):  # the next commit tries again
            storage.delete(path)


def store_history(storage: Storage, history: SchemaHistory, *, instant: str, layout: TimelineLayout) -> None:
    """Write a file of the history for the commit begun at `instant`, which may come to nothing.

    Raises:
        StorageError: The store failed.
    """
    name = Instant(instant, _ACTION, State.COMPLETED, instant).file_name(layout.version)
    storage.replace(f"{SCHEMA_FOLDER}/{name}", encode_versions(history.versions))
