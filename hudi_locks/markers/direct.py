"""Direct markers: one empty file for each data file that a task is about to write (Hudi's DirectWriteMarkers)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import WriteAborted
from hudi_locks.format import IOType, MarkerName
from hudi_locks.storage import Storage

__all__ = ["MARKER_FOLDER", "DirectMarkers"]

MARKER_FOLDER: Final = ".hoodie/.temp"


@dataclass(frozen=True)
class DirectMarkers:
    """The markers of one instant. Runs on driver and executors; picklable if its storage is.

    From table version 8 on, log files are announced by CREATE, since each delta commit makes its own.

    Attributes:
        storage: Of the table.
        requested: Requested time of the instant.
    """

    storage: Storage
    requested: str

    @property
    def folder(self) -> str:
        """Where they lie, relative to the base path; JVM readers take every child of its parent for an instant."""
        return f"{MARKER_FOLDER}/{self.requested}"

    def create(self, partition: str, file_name: str, *, io_type: IOType) -> MarkerName:
        """Announce a data file; quiet if an earlier attempt announced it already. Durable when it returns."""
        marker = MarkerName(partition, file_name, io_type)
        self.storage.create_if_absent(f"{self.folder}/{marker}", b"")
        return marker

    def names(self) -> list[MarkerName]:
        """All markers, by path; other files in the folder are passed over."""
        prefix = f"{self.folder}/"
        found = (MarkerName.parse(path.removeprefix(prefix)) for path, _ in self.storage.walk(self.folder))
        return [marker for marker in found if marker is not None]

    def reconcile(self, written: AbstractSet[str], *, fail_on_stray: bool = False) -> list[str]:
        """Remove data files that were announced and are not in the commit, such as those of failed attempts.

        Runs inside the table lock, before the instant is published: a stray file of a completed instant would show up
        as duplicate rows in every reader.

        Args:
            written: Paths of the commit's data files, relative to the base path.
            fail_on_stray: `hoodie.fail.job.on.duplicate.data.file.detection`.

        Returns:
            The paths removed.

        Raises:
            WriteAborted: There are strays, and `fail_on_stray` is set; nothing was removed.
        """
        announced = {marker.data_path for marker in self.names() if marker.io_type is not IOType.APPEND}
        stray = [path for path in sorted(announced - written) if self.storage.exists(path)]
        if stray and fail_on_stray:
            message = f"{len(stray)} data files of failed attempts are not in the commit, the first is {stray[0]}"
            raise WriteAborted(message, instant=self.requested, stray=tuple(stray))
        return [path for path in stray if self.storage.delete(path)]

    def delete(self) -> None:
        """Remove them all; quiet if there are none."""
        self.storage.delete_folder(self.folder)
