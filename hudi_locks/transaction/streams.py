"""How far streams have got: which of their micro-batches are in the table, as the commits themselves tell.

Commits of a stream carry Hudi's own note of the batch (HoodieStreamingSink), so that a stream of the JVM with the same
checkpoint can be gone on with, and the other way round. A second note names the query: batch numbers of another query
mean nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from hudi_locks.format import FIRST_TIME, WRITE_ACTIONS, CommitMetadata, interpreting
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline, TimelineLayout, read_instant
from hudi_locks.timeline.archive import list_archived_since

__all__ = ["StreamLog", "StreamPosition"]

_BATCH_KEY: Final = "_hudi_streaming_sink_checkpoint"
_QUERY_KEY: Final = "_hudi_locks_stream"
_FOLDER: Final = ".hoodie/.hudi_locks/streams"


@dataclass(frozen=True)
class StreamPosition:
    """The last micro-batch of a stream that is in the table.

    Attributes:
        batch: Its number.
        query: Id of the query that wrote it; "" if a JVM stream did.
        completion_time: Of its commit.
    """

    batch: int
    query: str
    completion_time: str


class StreamLog:
    """Finds the position of one stream. Not for several threads at once. Runs on the driver.

    Each commit is read once. What is archived is looked at when the active timeline has lost commits since the last
    look; a hint file, which may lag behind or be missing, says from when on.

    Args:
        storage: Of the table.
        layout: Of its timeline.
        identifier: Of the stream, one for each on a table.
    """

    def __init__(self, storage: Storage, layout: TimelineLayout, identifier: str) -> None:
        self._storage = storage
        self._layout = layout
        self._identifier = identifier
        self._position: StreamPosition | None = None
        self._seen: set[str] = set()
        self._first_active: str | None = None
        self._hint_path = f"{_FOLDER}/{_file_name(identifier)}.json"

    def notes(self, batch: int, query: str) -> dict[str, str]:
        """What the commit of a micro-batch says of it."""
        found = {_BATCH_KEY: json.dumps({self._identifier: str(batch)})}
        return found | ({_QUERY_KEY: json.dumps({self._identifier: query})} if query else {})

    def find(self, timeline: Timeline) -> StreamPosition | None:
        """The last micro-batch in the table; None if none is.

        Raises:
            DamagedTable: A commit is unreadable.
            StorageError: The store failed.
        """
        if not self._seen or timeline.first_active != self._first_active:
            self._look_at_archive()
        for instant in timeline.completed(WRITE_ACTIONS):
            if instant.requested not in self._seen:
                metadata = CommitMetadata.decode(
                    read_instant(self._storage, timeline, instant=instant), timeline.paths[instant]
                )
                self._look_at(metadata, instant.completion or "")
                self._seen.add(instant.requested)
        self._first_active = timeline.first_active
        return self._position

    def remember(self) -> None:
        """Leave a hint for the next process, from which on the archive is to be looked at."""
        if self._position is not None:
            hint = {"identifier": self._identifier, **vars(self._position)}
            self._storage.replace(self._hint_path, json.dumps(hint, sort_keys=True).encode())

    def _look_at_archive(self) -> None:
        if self._position is None:
            self._position = self._read_hint()
        since = self._position.completion_time if self._position else FIRST_TIME
        for instant in list_archived_since(self._storage, self._layout, completed_after=since):
            if instant.action in WRITE_ACTIONS and instant.requested not in self._seen:
                where = f"archived {instant.action} {instant.requested}"
                self._look_at(CommitMetadata.decode(instant.metadata, where), instant.completion)
                self._seen.add(instant.requested)

    def _look_at(self, metadata: CommitMetadata, completion_time: str) -> None:
        batch = self._read_note(metadata, _BATCH_KEY)
        if batch is None or not batch.isdecimal():
            return
        query = self._read_note(metadata, _QUERY_KEY) or ""
        found = StreamPosition(int(batch), query, completion_time)
        if self._position is None or self._position.completion_time < completion_time:
            self._position = found

    def _read_note(self, metadata: CommitMetadata, key: str) -> str | None:
        try:
            noted = json.loads(metadata.extra.get(key) or "{}")
        except (ValueError, RecursionError):
            return None  # a note of somebody else's, under the same name
        value = noted.get(self._identifier) if isinstance(noted, dict) else None
        return None if value is None else str(value)

    def _read_hint(self) -> StreamPosition | None:
        data = self._storage.read(self._hint_path)
        if data is None:
            return None
        with interpreting("hint of a stream; remove it, the commits themselves tell", self._hint_path):
            hint: dict[str, Any] = json.loads(data)
            return StreamPosition(int(hint["batch"]), str(hint["query"]), str(hint["completion_time"]))


def _file_name(identifier: str) -> str:
    """The identifier as a file name, no two alike."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda found: f"%{ord(found[0]):x}.", identifier)
