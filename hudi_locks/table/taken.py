"""What cleans and replacing writes have taken out of a table, by what they say themselves, archived ones included."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hudi_locks.format import FIRST_TIME, WRITE_ACTIONS, CleanMetadata, CommitMetadata, add_ms
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.cleaned import read_clean_plans
from hudi_locks.table.table import read_commit
from hudi_locks.timeline import Timeline, read_instant
from hudi_locks.timeline.archive import ArchivedInstant, list_archived_since, list_archived_times

__all__ = ["list_replaced", "list_taken", "read_archived_commits"]


def list_taken(storage: Storage, timeline: Timeline, *, moment: str) -> Iterator[frozenset[str]]:
    """Paths of what each clean that was begun after the moment has removed, or is about to remove.

    Raises:
        DamagedTable: A clean, or the history, cannot be read.
    """
    done = [instant for instant in timeline.completed(("clean",)) if instant.requested > moment]
    contents = map_in_threads(lambda instant: read_instant(storage, timeline, instant=instant), done)
    for instant, content in zip(done, contents, strict=True):
        yield CleanMetadata.decode(content, timeline.paths[instant]).paths if content else frozenset()
    yield from (plan.paths for _, plan in read_clean_plans(storage, timeline, after=moment))
    for archived in _list_archived(storage, timeline, "clean", after=moment):
        yield CleanMetadata.decode(archived.metadata, f"archived clean {archived.requested}").paths


def list_replaced(
    storage: Storage, timeline: Timeline, *, moment: str, by_completion: bool
) -> frozenset[tuple[str, str]]:
    """File groups that had been replaced by then, also by writes that are archived."""
    active = (
        read_commit(storage, timeline, requested=instant.requested)
        for instant in timeline.completed(("replacecommit",))
        if str(instant.completion if by_completion else instant.requested) <= moment
    )
    archived = (
        CommitMetadata.decode(instant.metadata, f"archived replacecommit {instant.requested}")
        for instant in _list_archived(storage, timeline, "replacecommit", after=FIRST_TIME)
        if (instant.completion if by_completion else instant.requested) <= moment
    )
    return frozenset(group for commit in (*active, *archived) for group in commit.replaced_file_groups)


def read_archived_commits(
    storage: Storage, timeline: Timeline, *, requested: Collection[str]
) -> dict[str, CommitMetadata]:
    """What archived writes say, by requested time; those that the history does not have are left out."""
    if timeline.layout.version == 1 or not requested:
        return {}
    since = add_ms(min(requested), -1)
    found = list_archived_since(storage, timeline.layout, completed_after=since)
    return {
        one.requested: CommitMetadata.decode(one.metadata, f"archived {one.action} {one.requested}")
        for one in found
        if one.requested in requested and one.action in WRITE_ACTIONS and one.metadata
    }


def _list_archived(storage: Storage, timeline: Timeline, action: str, *, after: str) -> list[ArchivedInstant]:
    """Archived instants of `action` with a later completion time; of a table of version 6 the archive is not read."""
    if timeline.layout.version == 1 or not list_archived_times(storage, timeline.layout, completed_after=after):
        return []
    found = list_archived_since(storage, timeline.layout, completed_after=after)
    return [instant for instant in found if instant.action == action and instant.metadata]
