"""What an instant says, also when it left the active timeline since that was loaded."""

from __future__ import annotations

from hudi_locks.errors import DamagedTable
from hudi_locks.format import Instant
from hudi_locks.storage import Storage
from hudi_locks.timeline.archive import find_archived_content
from hudi_locks.timeline.timeline import Timeline

__all__ = ["read_instant"]


def read_instant(storage: Storage, timeline: Timeline, *, instant: Instant) -> bytes:
    """The content of the file that `timeline` shows for `instant`; b"" for an empty one.

    A completed instant that was archived since the timeline was loaded is read from the history: a write that stands
    on an older snapshot goes on. The archive of a table of version 6 is not read.

    Raises:
        DamagedTable: The file is gone since the timeline was loaded, and not archived; load it again.
    """
    path = timeline.paths.get(instant) or timeline.layout.path(instant)
    data = storage.read(path)
    if data is None and instant.is_completed:
        # Archivers remove the file only once the history has its content.
        data = find_archived_content(storage, timeline.layout, instant=instant)
    if data is None:
        raise DamagedTable(f"{path} is gone: rolled back or removed since the timeline was loaded", path=path)
    return data
