"""Which part of the past a clean has left."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_locks.errors import TableError
from hudi_locks.format import WRITE_ACTIONS, CleanMetadata, CleanPlan, Instant
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline, read_instant

__all__ = ["read_clean_plans", "read_last_clean", "refuse_cleaned"]


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
