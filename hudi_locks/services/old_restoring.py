"""Going back to a savepoint of a merge-on-read table of version 6, whose logs are named by what is below them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from hudi_locks.errors import SavepointRefused
from hudi_locks.format import Instant, RestorePlan, RollbackPlan, State
from hudi_locks.storage import Storage
from hudi_locks.table import list_partitions, read_commit
from hudi_locks.table.old_logs import list_undone_logs
from hudi_locks.timeline import Timeline

__all__ = ["drop_rollbacks", "is_completed", "leave_old_compactions", "list_old_logs"]

_COMPACTIONS: Final = ("commit", "compaction")
"""What one is called once it is completed, and before."""


def leave_old_compactions(
    storage: Storage, timeline: Timeline, later: Sequence[Instant], savepoint: str
) -> list[Instant]:
    """What is undone of `later`: no compaction that was planned before the savepoint.

    What the savepoint keeps is named by its requested time. So it stays, planned or completed: it changes no row.

    Args:
        storage: Of the table.
        timeline: Of the table.
        later: Writes that the savepoint does not keep.
        savepoint: Requested time of the write to go back to.

    Raises:
        DamagedTable: A commit cannot be read.
        SavepointRefused: A compaction that stays has merged what is undone.
    """
    left = [one for one in later if one.action in _COMPACTIONS and one.requested < savepoint]
    undone = [one for one in later if one not in left]
    for compaction in left:
        if merged := next(_find_merged(storage, timeline, compaction, undone), ""):
            reason = (
                f"compaction {compaction.requested} was planned before it and has merged {merged}, which was completed"
                " after it: go back to an earlier one, or let a JVM job restore the table, which leaves that write"
            )
            raise SavepointRefused(f"no restore to {savepoint}: {reason}", instant=savepoint, reason=reason)
    return undone


def _find_merged(storage: Storage, timeline: Timeline, compaction: Instant, undone: Sequence[Instant]) -> Iterator[str]:
    if compaction.state is not State.COMPLETED:
        return
    groups = read_commit(storage, timeline, requested=compaction.requested).written_file_groups
    for write in undone:
        if write.is_completed and write.requested < compaction.requested:
            commit = read_commit(storage, timeline, requested=write.requested)
            yield from [write.requested] * bool(groups & commit.written_file_groups)


def list_old_logs(storage: Storage, timeline: Timeline, undone: Collection[str]) -> dict[str, frozenset[str]]:
    """Logs of the writes that are undone, by requested time; see `list_undone_logs`.

    Read are those of the partitions that these writes name; of all while one of them is pending, or partly undone.
    """
    if not undone:
        return {}
    if all(is_completed(timeline, requested) for requested in undone):
        commits = (read_commit(storage, timeline, requested=requested) for requested in undone)
        folders = sorted({stat.partition_path for commit in commits for stat in commit.stats})
    else:
        folders = list(list_partitions(storage))

    def is_kept(requested: str) -> bool:
        return requested not in undone and timeline.is_completed(requested)

    return list_undone_logs(storage, folders, undone, is_kept=is_kept)


def is_completed(timeline: Timeline, requested: str) -> bool:
    """Whether a write is on the timeline, and completed."""
    found = timeline.get(requested)
    return found is not None and found.is_completed


def drop_rollbacks(storage: Storage, timeline: Timeline, restore: str, plan: RestorePlan) -> None:
    """Remove the pending rollbacks that a JVM restore makes, one of each write, and removes at its end.

    Args:
        storage: Of the table.
        timeline: Of the table.
        restore: Requested time of the restore, which another one finishes.
        plan: Its plan.

    Raises:
        DamagedTable: The plan of a rollback cannot be read.
    """
    undone = dict(plan.instants)
    for rollback in timeline.pending(("rollback",)):
        path = timeline.layout.path(rollback.as_requested())
        if rollback.requested > restore and RollbackPlan.decode(storage.read(path) or b"", path).rolled_back in undone:
            storage.delete(timeline.layout.path(rollback.as_inflight()))
            storage.delete(path)
