"""What a user asks of a table's services that need no rows."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hudi_locks.services import ArchiveResult, CleanResult, RestoreResult, Savepoint, SweepResult, TableServices

__all__ = ["ServicedTable"]


class ServicedTable(ABC):
    """A table that can be cleaned, archived, kept and taken back; `HoodieTable` is one. Lives on the driver.

    Every method but `list_savepoints` raises AcquireTimeout if the table lock could not be had, and StorageError if the
    store failed: a later call, of anybody, goes on.
    """

    @abstractmethod
    def _open_services(self) -> TableServices:
        """Its services."""

    def clean(self) -> CleanResult:
        """Roll back failed writes and remove old versions of files, as `hoodie.clean.policy` says.

        Any number of processes may do so at the same time, also while others write. Without options of its own a table
        is cleaned after each write (`hoodie.clean.automatic`), and its timeline archived (`hoodie.archive.automatic`).
        """
        return self._open_services().clean()

    def sweep(self) -> SweepResult:
        """Roll back failed writes, and look everywhere for data files, markers and the like that they left."""
        return self._open_services().sweep()

    def archive(self) -> ArchiveResult:
        """Move old instants to the history, if there are more than `hoodie.keep.max.commits`."""
        return self._open_services().archive()

    def savepoint(self, instant: str | None = None, *, user: str = "", comments: str = "") -> Savepoint:
        """Keep what the write begun at `instant` shows (the last one if None), until `delete_savepoint`.

        Raises:
            SavepointRefused: There is no such write on the active timeline, or files of its snapshot are gone.
        """
        return self._open_services().save(instant, user=user, comments=comments)

    def delete_savepoint(self, instant: str) -> bool:
        """Let cleans remove what only the savepoint of this write keeps; False if there is none.

        Raises:
            SavepointRefused: A restore is pending.
        """
        return self._open_services().savepoints.delete(instant)

    def list_savepoints(self) -> list[Savepoint]:
        """All savepoints, the oldest first."""
        return self._open_services().savepoints.list()

    def restore(self, instant: str) -> RestoreResult:
        """Go back to what the write begun at `instant` showed; every later write is undone, for good.

        Writes under way meet a conflict, and none begins before this is done. If it dies, repeat it.

        Raises:
            SavepointRefused: Files of that snapshot are gone, or another restore is not finished.
        """
        return self._open_services().restore(instant)
