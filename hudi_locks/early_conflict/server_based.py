"""Early conflict detection strategies for markers of a timeline server, which looks in the background (RFC-56)."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import ClassVar

from hudi_locks.early_conflict.blooms import find_possible, write_bloom
from hudi_locks.early_conflict.strategy import MarkerBased
from hudi_locks.errors import StorageError, TableError
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import TIMELINE_SERVER_BASED
from hudi_locks.redaction import open_log

__all__ = ["AsyncTimelineServerBased", "BloomAsyncTimelineServerBased"]

_log = open_log(__name__)


class AsyncTimelineServerBased(MarkerBased):
    """Looks at all that the write has announced, again and again (AsyncTimelineServerBasedDetectionStrategy).

    An earlier writer whose markers cannot be read in one look counts as one without markers, until the next: one that
    is hard to read hides no other. What it cannot promise: both may write until then, and meet at the publish.
    """

    markers_type: ClassVar[str] = TIMELINE_SERVER_BASED

    def look_at(self, other: str, keys: Set[FileGroupId]) -> frozenset[FileGroupId]:
        """See `MarkerBased.look_at`."""
        try:
            return self._read(other, keys)
        except (StorageError, TableError) as error:
            _log.warning("markers of %s could not be read, the next look comes: %s", other, error)
            return frozenset()

    def _read(self, other: str, keys: Set[FileGroupId]) -> frozenset[FileGroupId]:
        return super().look_at(other, keys)


class BloomAsyncTimelineServerBased(AsyncTimelineServerBased):
    """The same, and reads the filters of an earlier writer before its markers (phase 2 of RFC-56).

    The filter of a batch is there before its names are.
    """

    def _read(self, other: str, keys: Set[FileGroupId]) -> frozenset[FileGroupId]:
        possible = find_possible(self.context, other, keys)
        return super()._read(other, possible) if possible else frozenset()

    def announce(self, groups: Iterable[FileGroupId]) -> None:
        """See `EarlyConflictDetectionStrategy.announce`."""
        write_bloom(self.context, groups)
