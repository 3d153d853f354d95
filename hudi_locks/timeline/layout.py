"""Where a table keeps its instants, and in which zone it writes their times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timezone, tzinfo

from hudi_locks.format import Instant, format_time

__all__ = ["LAYOUT_1", "LAYOUT_2", "TimelineLayout"]


@dataclass(frozen=True)
class TimelineLayout:
    """One of Hudi's two timeline layouts.

    Attributes:
        version: `hoodie.timeline.layout.version`: 1 for table version 6, 2 for 8 and 9.
        folder: Of the active instants, relative to the base path.
        archive: Of the archived ones.
        zone: In which instants are written.
    """

    version: int
    folder: str
    archive: str
    zone: tzinfo = timezone.utc

    def path(self, instant: Instant) -> str:
        """The file of `instant`, relative to the base path."""
        return f"{self.folder}/{instant.file_name(self.version)}"

    def time(self, ms: int) -> str:
        """Milliseconds since the epoch as an instant time of this table."""
        return format_time(ms, self.zone)


LAYOUT_1 = TimelineLayout(1, ".hoodie", ".hoodie/archived")
LAYOUT_2 = TimelineLayout(2, ".hoodie/timeline", ".hoodie/timeline/history")
