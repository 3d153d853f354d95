"""What a task must know to look for conflicts before it writes, and the other writes that it looks at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.format import WRITE_ACTIONS
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import MARKER_FOLDER
from hudi_locks.storage import Storage
from hudi_locks.table import read_commit
from hudi_locks.timeline import Timeline, TimelineLayout
from hudi_locks.timeline.heartbeat import select_alive

__all__ = ["DetectionContext", "find_candidates", "find_completed"]


@dataclass(frozen=True)
class DetectionContext:
    """One write among others. Picklable if its storage is.

    Attributes:
        storage: Of the table.
        layout: Of its timeline.
        requested: Requested time of the write.
        known: Instants that were completed on the snapshot that the write builds on: it has seen what they did.
        exempt: Pending table services, which neither check nor are checked against.
        heartbeat_limit_ms: How old a heartbeat may be, ms.
        is_bucketed: Whether a bucket index says where rows lie. Then two writes that make the same new bucket make file
            groups of different ids, and what is compared are buckets.
        checks_commits: Whether completed commits are looked at too.
        lock_options: Hudi's keys of the lock provider, for strategies that lock file groups. Never shown.
        clock: Measures how long a check takes.
    """

    storage: Storage
    layout: TimelineLayout
    requested: str
    known: frozenset[str] = frozenset()
    exempt: frozenset[str] = frozenset()
    heartbeat_limit_ms: int = 120_000
    is_bucketed: bool = False
    checks_commits: bool = False
    lock_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    clock: Clock = field(default_factory=SystemClock, repr=False)

    def key_of(self, group: FileGroupId) -> FileGroupId:
        """What stands for a file group where writes are compared."""
        return group.bucket if self.is_bucketed else group


def find_candidates(context: DetectionContext, *, later: bool = False) -> tuple[str, ...]:
    """Requested times of the writes whose markers may be in the way, by one listing and one look at each heartbeat.

    A write gives way to those that were begun before it, so that of two one goes on. Excluded: commits visible in this
    write's snapshot, table services, and writers with an expired heartbeat, which will be rolled back. A completed
    write is included as long as its heartbeat is there: it has changed what this write did not see.

    Args:
        context: The write.
        later: Whether to name those that were begun after it instead.

    Raises:
        StorageError: The store failed.
    """
    names = context.storage.list_names(MARKER_FOLDER)
    own = context.requested.lower()
    passed_over = context.known | context.exempt
    others = [name for name in names if name.lower() != own and name not in passed_over]
    chosen = sorted(name for name in others if (name.lower() > own) is later)
    return select_alive(context.storage, chosen, limit_ms=context.heartbeat_limit_ms)


def find_completed(context: DetectionContext) -> Iterator[tuple[str, frozenset[FileGroupId]]]:
    """Each write that was completed since the snapshot, and the file groups that it wrote or replaced.

    The JVM looks at what was written alone, so that a file group that clustering replaced passes its check. Compactions
    and log compactions are passed over: what is logged beside them is no conflict, or one that the publish alone tells.

    Raises:
        DamagedTable: A commit is unreadable: it may hide a conflict.
        StorageError: The store failed.
    """
    timeline = Timeline.load(context.storage, context.layout)
    for instant in timeline.completed(WRITE_ACTIONS):
        if instant.requested not in context.known and instant.requested != context.requested:
            commit = read_commit(context.storage, timeline, requested=instant.requested)
            groups = commit.written_file_groups | commit.replaced_file_groups
            if not commit.compacted:
                yield instant.requested, frozenset(FileGroupId(*group) for group in groups)
