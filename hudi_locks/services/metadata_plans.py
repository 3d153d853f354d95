"""Plans of services on the timeline of the metadata table: how they are begun, completed and found again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_locks.format import Instant, State, TimelineLayout, add_ms
from hudi_locks.format.claim import ClaimKind
from hudi_locks.metadata_table import find_last_commit
from hudi_locks.timeline import Timeline, create_instant, delete_instant, is_unfinished
from hudi_locks.transaction import StopPoint, TableCoordinator, View

__all__ = ["MetadataPlans"]

_PATIENCE_MS: Final = 3_600_000
"""Plans carry no heartbeat: one is taken for abandoned after so long. JVM writers carry it out at once."""
_COMPACTION: Final = "compaction"
_OLD_ENDINGS: Final = {_COMPACTION: "001", "clean": "002"}
"""In version 6 a service has the time of the last delta commit and these digits, as JVM Hudi has it."""


class MetadataPlans:
    """Those of one table. Every step happens inside the table lock, and harms nobody who believes to hold it too.

    Args:
        coordinator: With the writers.
    """

    def __init__(self, coordinator: TableCoordinator) -> None:
        self._table = coordinator
        self._storage = coordinator.storage

    @property
    def layout(self) -> TimelineLayout:
        """Of the timeline of the metadata table."""
        return self._table.delta_commits.layout

    @property
    def are_old(self) -> bool:
        """Whether the table is of version 6."""
        return self.layout.is_version_6

    def load(self) -> Timeline:
        """The timeline of the metadata table now.

        Raises:
            DamagedTable: It cannot be read.
        """
        return Timeline.load(self._storage, self.layout)

    def begin(self, view: View, action: str, *, plan: bytes, own: Timeline) -> Instant | None:
        """Put a plan on the metadata table's timeline, and claim its time.

        A JVM writer whose clock is behind takes a later one all the same. The claim keeps the time from all later
        instants of the table, which are delta commits of the metadata table. In version 6 the plan has a time between
        those of delta commits, and that of a compaction is not claimed: it stays, and a write that missed it is not
        completed once its logs would lie below (`DeltaCommits.complete`).

        Args:
            view: Of the table, looked at inside the lock.
            action: Of the service.
            plan: Content of the requested file.
            own: The timeline of the metadata table, listed since.

        Returns:
            The requested instant; None if somebody else claimed meanwhile: then nothing is left of it.
        """
        if self.are_old and action == _COMPACTION:
            return self._put(_name_old(own, action), action, plan)
        heartbeat = self._table.reserve(self._table.time_after(view, own.newest_time() or ""))
        with heartbeat.stop_at_end():
            begun = self._put(_name_old(own, action) if self.are_old else heartbeat.requested, action, plan)
            claimed = Instant(heartbeat.requested, action, State.REQUESTED)
            if self._table.claim(view, self._table.new_claim(ClaimKind.SCHEDULE, claimed, time=claimed.requested)):
                return begun
        self.withdraw(begun)
        return None

    def _put(self, requested: str, action: str, plan: bytes) -> Instant:
        begun = Instant(requested, action, State.REQUESTED)
        create_instant(self._storage, self.layout, instant=begun, data=plan)
        self._table.trace(StopPoint.SERVICE_PLANNED)
        return begun

    def rewrite(self, begun: Instant, plan: bytes) -> None:
        """Put another plan in the place of one, as a JVM writer that takes it over would carry it out."""
        path = self.layout.path(begun)
        if self._storage.read(path) != plan:
            self._storage.replace(path, plan)

    def withdraw(self, begun: Instant) -> None:
        """Take a plan off the timeline again, which nobody carried out."""
        for state in (begun.as_inflight(), begun):
            delete_instant(self._storage, self.layout, instant=state)

    def complete(self, begun: Instant, content: bytes) -> str | None:
        """Complete a service, one millisecond after it was requested, whoever does it; None if it is done, or gone."""
        if not is_unfinished(self._storage, self.layout, instant=begun):
            return None
        completion = begun.requested if self.are_old else add_ms(begun.requested, 1)
        path = self.layout.path(begun.as_inflight().as_completed(completion))
        is_made = self._storage.create_if_absent(path, content)
        self._table.trace(StopPoint.SERVICE_COMPLETED)
        if is_unfinished(self._storage, self.layout, instant=begun, but_for=path):
            return begun.requested
        if is_made:
            self._storage.delete(path)
        return None

    def list_abandoned(self, action: str) -> Iterator[tuple[Instant, bytes]]:
        """Requested instants that nobody has completed for an hour, and their plans; those of JVM writers too."""
        limit_ms = self._storage.now_ms() - _PATIENCE_MS
        for instant in self.load().pending((action,)):
            begun = instant.as_requested()
            file = self._storage.stat(self.layout.path(begun))
            data = self._storage.read(self.layout.path(begun))
            if file is not None and data is not None and file.modified_ms < limit_ms:
                yield begun, data


def _name_old(own: Timeline, action: str) -> str:
    return f"{find_last_commit(own)}{_OLD_ENDINGS[action]}"
