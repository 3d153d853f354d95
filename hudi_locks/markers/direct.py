"""Direct markers: one empty file for each data file that a task is about to write (Hudi's DirectWriteMarkers)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from hudi_locks.format import IOType, MarkerName
from hudi_locks.storage import Storage

__all__ = ["DIRECT", "MARKER_FOLDER", "DirectMarkers"]

DIRECT: Final = "DIRECT"
MARKER_FOLDER: Final = ".hoodie/.temp"


@dataclass(frozen=True)
class DirectMarkers:
    """The markers of one instant. Runs on driver and executors; picklable if its storage is.

    From table version 8 on, log files are announced by CREATE, since each delta commit makes its own.

    Attributes:
        storage: Of the table.
        requested: Requested time of the instant.
    """

    markers_type: ClassVar[str] = DIRECT

    storage: Storage
    requested: str

    @property
    def folder(self) -> str:
        """Where they lie, relative to the base path; JVM readers take every child of its parent for an instant."""
        return f"{MARKER_FOLDER}/{self.requested}"

    def create(self, partition: str, file_name: str, *, io_type: IOType) -> MarkerName:
        """Announce a data file; quiet if an earlier attempt announced it already. Durable when it returns."""
        marker = MarkerName(partition, file_name, io_type)
        self.create_all([marker])
        return marker

    def create_all(self, names: Iterable[MarkerName]) -> None:
        """Announce data files; see `create`."""
        folder = self.folder
        self.storage.create_empty([f"{folder}/{name}" for name in names])

    def names(self) -> list[MarkerName]:
        """All markers, by path; other files in the folder are passed over."""
        prefix = f"{self.folder}/"
        found = (MarkerName.parse(path.removeprefix(prefix)) for path, _ in self.storage.walk(self.folder))
        return [marker for marker in found if marker is not None]

    def delete(self) -> None:
        """Remove them all; quiet if there are none."""
        self.storage.delete_folder(self.folder)
