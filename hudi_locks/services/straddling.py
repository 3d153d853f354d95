"""Logs that lie on top of a compaction whose time is later than theirs."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence

from hudi_locks.format import Instant
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import list_data_files, read_commit, slice_file_groups
from hudi_locks.timeline import Timeline

__all__ = ["find_straddling"]


def find_straddling(storage: Storage, timeline: Timeline, writes: Sequence[Instant]) -> frozenset[str]:
    """Requested times of those of `writes` that only their completion time puts on top of a base file.

    A write that began before a compaction was planned and completed after it has its log in the newest slice until a
    later compaction takes it, or it is removed. hudi-rs asks the active timeline alone when a write completed, and
    takes the log of one that is not there for part of what the compaction took.

    Reads the commits that overlap a compaction, and lists their partitions once; nothing if there are none.

    Args:
        storage: The table's files.
        timeline: Has the writes, and the compactions that were completed.
        writes: Completed ones.

    Raises:
        DamagedTable: A commit cannot be read.
    """
    compactions = [instant.requested for instant in timeline.completed(("commit",))]
    beside = [i for i in writes if i.action == "deltacommit" and _overlaps(i, compactions)]
    commits = map_in_threads(lambda i: read_commit(storage, timeline, requested=i.requested), beside)
    listed = list_data_files(storage, {p for commit in commits for p in commit.partition_to_write_stats})
    completions = {instant.requested: instant.completion for instant in beside}
    slices = slice_file_groups(
        [file for file in listed.bases if timeline.is_completed(file.instant)],
        [file for file in listed.logs if file.instant in completions],
        completions.get,
    )
    newest = [found[0] for found in slices.values()]
    return frozenset(log.instant for piece in newest for log in piece.logs if log.instant < piece.barrier)


def _overlaps(write: Instant, compactions: Sequence[str]) -> bool:
    """Whether one of `compactions`, in order, was planned while the write was under way."""
    after = bisect(compactions, write.requested)
    return after < len(compactions) and compactions[after] <= str(write.completion)
