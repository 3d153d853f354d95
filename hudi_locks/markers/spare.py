"""Markers of a task that has lost the timeline server of its write."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from hudi_locks.format import MarkerName
from hudi_locks.markers.marker_folder import TIMELINE_SERVER_BASED, DirectMarkers, ServerFiles
from hudi_locks.storage import Storage

__all__ = ["SPARE_NUMBERS", "SpareMarkers"]

SPARE_NUMBERS: Final = range(1_000, 2**31 - 1)
"""Numbers of files that tasks make themselves: above those of any server, and what the JVM still takes for a number."""


class SpareMarkers:
    """A file of its own beside those of the server, of the same form, so that every rollback reads it too.

    Direct markers would not do: where `MARKERS.type` is, readers look for no others. For one task; picklable.

    Args:
        storage: Of the table.
        requested: Requested time of the instant.
    """

    markers_type: ClassVar[str] = TIMELINE_SERVER_BASED

    def __init__(self, storage: Storage, requested: str) -> None:
        self.storage = storage
        self.requested = requested
        self._names: list[str] = []
        self._number: int | None = None

    def create_all(self, names: Iterable[MarkerName]) -> None:
        """Announce data files; durable when it returns.

        Raises:
            StorageError: The store failed.
        """
        if self._number is None:
            self._number = random.SystemRandom().choice(SPARE_NUMBERS)
        self._names += map(str, names)
        ServerFiles(self.storage, DirectMarkers(self.storage, self.requested).folder).write(self._number, self._names)

    def __reduce__(self) -> Any:
        """A copy elsewhere is for another task, with a file of its own."""
        return SpareMarkers, (self.storage, self.requested)
