"""What cleans and replacing writes have taken out of a table, by what they say themselves, archived ones included."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hudi_locks.errors import TableError
from hudi_locks.format import FIRST_TIME, WRITE_ACTIONS, CleanMetadata, CleanPlan, CommitMetadata, Instant, add_ms
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.table import read_commit
from hudi_locks.timeline import Timeline, read_instant
from hudi_locks.timeline.archive import ArchivedInstant, list_archived_since, list_archived_times

__all__ = [
    "list_replaced",
    "list_taken",
    "read_archived_commits",
    "read_clean_plans",
    "read_last_clean",
    "refuse_cleaned",
]


def read_last_clean(storage: Storage, timeline: Timeline) -> CleanMetadata | None:
    """What the last completed clean on the active timeline did; None if there is none.

    Raises:
        DamagedTable: It cannot be read.
    """
    cleans = timeline.completed(("clean",))
    if not cleans:
        return None
    data = read_instant(storage, timeline, instant=cleans[-1])
    return CleanMetadata.decode(data, timeline.paths[cleans[-1]]) if data else None


def read_clean_plans(storage: Storage, timeline: Timeline, *, after: str = "") -> Iterator[tuple[Instant, CleanPlan]]:
    """What the cleans that are under way are about to do; one that has just ended may be left out.

    Args:
        storage: Of the table.
        timeline: What is read.
        after: Only those with a later requested time.

    Raises:
        DamagedTable: A plan cannot be read.
    """
    for instant in timeline.pending(("clean",)):
        path = timeline.layout.path(instant.as_requested())
        data = storage.read(path) if instant.requested > after else None
        if data:
            yield instant, CleanPlan.decode(data, path)


def refuse_cleaned(
    storage: Storage, timeline: Timeline, *, completed: str | None = None, requested: str | None = None
) -> None:
    """Refuse a time of which a clean, done or under way, keeps no whole snapshot, as JVM readers do.

    A clean that counts versions names no such time, and one that is archived is not looked at: `refuse_removed` tells
    what these have taken. What a savepoint keeps may be asked for, by the requested time of its write, and so may every
    time after the last write.

    Args:
        storage: Of the table.
        timeline: What is read.
        completed: A completion time that is asked for.
        requested: Or a requested time.

    Raises:
        TableError: Files of that snapshot may be gone.
        DamagedTable: The clean cannot be read.
    """
    moment = completed if completed is not None else requested
    if moment is None or requested in timeline.savepoints:
        return
    earliest, clean = max(_list_earliest(storage, timeline), default=("", ""))
    writes = timeline.completed(WRITE_ACTIONS)
    is_behind = any(moment < (write.requested if completed is None else str(write.completion)) for write in writes)
    if moment < earliest and is_behind:
        message = (
            f"the table as of {moment} is not whole any more: clean {clean} kept what is shown since {earliest}; ask"
            " for a later time, or let hoodie.clean.* keep more, or keep a time by a savepoint"
        )
        raise TableError(message, time=moment, earliest=earliest, clean=clean)


def _list_earliest(storage: Storage, timeline: Timeline) -> Iterator[tuple[str, str]]:
    """From when on the last clean, and those that are under way, keep everything; and their requested times."""
    last = read_last_clean(storage, timeline)
    if last is not None:
        yield last.earliest, last.started
    for instant, plan in read_clean_plans(storage, timeline):
        yield (plan.earliest.requested if plan.earliest else ""), instant.requested


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
