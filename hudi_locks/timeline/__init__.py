"""The timeline: where instants live, and what they say."""

from hudi_locks.format import LAYOUT_1, LAYOUT_2, TimelineLayout
from hudi_locks.timeline.archive import read_instant
from hudi_locks.timeline.holes import end_before_holes
from hudi_locks.timeline.timeline import (
    PENDING_ENDINGS,
    Timeline,
    TimelineReader,
    create_instant,
    delete_instant,
    find_completion,
    index_files,
    is_unfinished,
)

__all__ = [
    "LAYOUT_1",
    "LAYOUT_2",
    "PENDING_ENDINGS",
    "Timeline",
    "TimelineLayout",
    "TimelineReader",
    "create_instant",
    "delete_instant",
    "end_before_holes",
    "find_completion",
    "index_files",
    "is_unfinished",
    "read_instant",
]
