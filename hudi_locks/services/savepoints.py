"""Savepoints: a moment of the table that no clean touches, and to which it can go back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import SavepointRefused
from hudi_locks.format import WRITE_ACTIONS, Instant, SavepointMetadata, State
from hudi_locks.services.savepointed import find_missing, read_savepoint
from hudi_locks.table import latest_file_slices, read_clean_plans, read_last_clean
from hudi_locks.timeline import Timeline, create_instant, index_files
from hudi_locks.transaction import TableCoordinator, View

__all__ = ["Savepoint", "Savepoints"]

_ACTION: Final = "savepoint"


@dataclass(frozen=True)
class Savepoint:
    """A write whose snapshot is kept.

    Attributes:
        instant: Requested time of the write.
        completion_time: When the savepoint was made.
        user: By whom.
        comments: Why.
        files: How many data files it keeps.
    """

    instant: str
    completion_time: str
    user: str
    comments: str
    files: int


class Savepoints:
    """The savepoints of one table. Runs on the driver.

    A savepoint and its end are claims, so that either a clean is planned after it and regards it, or it is made after
    the plan and sees that files of its snapshot are to go.

    Args:
        coordinator: With the writers and the cleaners.
    """

    def __init__(self, coordinator: TableCoordinator) -> None:
        self._table = coordinator
        self._storage = coordinator.storage

    def create(self, instant: str | None = None, *, user: str = "", comments: str = "") -> Savepoint:
        """Keep what the write begun at `instant` shows; the last completed write if None. Quiet if there is one.

        Raises:
            AcquireTimeout: The table lock could not be had.
            SavepointRefused: There is no such write on the active timeline, or files of its snapshot are, or will be,
                removed.
            StorageError: The store failed; the same call goes on.
        """
        while True:
            with self._table.hold():
                view = self._table.look()
                requested = self._choose(view.timeline, instant)
                found = self._find(view.timeline, requested) or self._make(view, requested, user, comments)
            if found is not None:
                return found

    def delete(self, instant: str) -> bool:
        """Let cleans remove what only this savepoint keeps; False if there is none.

        Raises:
            AcquireTimeout: The table lock could not be had.
            SavepointRefused: The table is going back to it.
        """
        while True:
            with self._table.hold():
                view = self._table.look()
                if pending := view.timeline.pending(("restore",)):
                    raise _refusal(instant, f"restore {pending[0].requested} is pending: finish it first")
                was_there = instant in view.timeline.savepoints
                if not was_there or self._table.note(view, _ACTION):
                    self.remove_files(instant)
                    return was_there

    def list(self) -> list[Savepoint]:
        """All of them, the oldest first."""
        timeline = self._table.peek().timeline
        return list(filter(None, (self._find(timeline, requested) for requested in sorted(timeline.savepoints))))

    def remove_files(self, instant: str) -> None:
        """Remove a savepoint from the timeline, the completed file first: a part of it is none."""
        files = index_files(self._storage, self._table.layout).get((instant, _ACTION), ())
        for path in reversed(files):
            self._storage.delete(path)

    def _choose(self, timeline: Timeline, instant: str | None) -> str:
        writes = [write.requested for write in timeline.completed(WRITE_ACTIONS)]
        if instant is None and writes:
            return writes[-1]
        if instant is None or instant not in writes:
            raise _refusal(instant or "", "no completed write of that time is on the active timeline")
        return instant

    def _find(self, timeline: Timeline, requested: str) -> Savepoint | None:
        metadata = read_savepoint(self._storage, timeline, requested=requested)
        made = next((i for i in timeline.completed((_ACTION,)) if i.requested == requested), None)
        if metadata is None or made is None:
            return None
        return Savepoint(requested, str(made.completion), metadata.user, metadata.comments, files=len(metadata.paths))

    def _make(self, view: View, requested: str, user: str, comments: str) -> Savepoint | None:
        """A savepoint; None if a claim came in between."""
        metadata = SavepointMetadata(
            user, self._table.clock.wall_ms(), comments, self._list_files(view.timeline, requested)
        )
        self._refuse_cleaned(view.timeline, requested, metadata)
        pending = Instant(requested, _ACTION, State.INFLIGHT)
        create_instant(self._storage, self._table.layout, instant=pending)
        completed = pending.as_completed(self._table.time_after(view))
        if not self._table.note(view, _ACTION, completed=completed, content=metadata.encode()):
            return None
        return Savepoint(requested, str(completed.completion), user, comments, files=len(metadata.paths))

    def _list_files(self, timeline: Timeline, requested: str) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for piece in latest_file_slices(self._storage, timeline, as_of_requested=requested):
            names = (path.rpartition("/")[2] for path in piece.paths)
            found[piece.partition] = (*found.get(piece.partition, ()), *names)
        return found

    def _refuse_cleaned(self, timeline: Timeline, requested: str, metadata: SavepointMetadata) -> None:
        last = read_last_clean(self._storage, timeline)
        if last is not None and last.earliest > requested:
            raise _refusal(requested, f"a clean kept only what is shown since {last.earliest}: choose a later write")
        for clean, plan in read_clean_plans(self._storage, timeline):
            if gone := sorted(plan.paths & metadata.paths):
                path = timeline.layout.path(clean.as_requested())
                raise _refusal(requested, f"{path} is to remove {gone[0]}: let that clean finish, choose a later write")
        if missing := find_missing(self._storage, timeline, requested=requested, paths=metadata.paths):
            raise _refusal(requested, f"the version of {missing} that it shows was cleaned: choose a later write")


def _refusal(instant: str, why: str) -> SavepointRefused:
    return SavepointRefused(f"no savepoint of {instant or 'the table'}: {why}", instant=instant, reason=why)
