"""The timeline: where instants live, and what they say."""

from hudi_locks.timeline.layout import LAYOUT_1, LAYOUT_2, TimelineLayout
from hudi_locks.timeline.timeline import Timeline, create_instant, delete_instant, read_instant

__all__ = ["LAYOUT_1", "LAYOUT_2", "Timeline", "TimelineLayout", "create_instant", "delete_instant", "read_instant"]
