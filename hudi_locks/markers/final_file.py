"""How a task gives a data file its one final name, so that no retried, speculative or zombie attempt leaves a second.

Commit metadata does not filter files: both of Hudi's readers return the rows of every file whose instant is completed.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final, NoReturn

from hudi_locks.errors import WriteAborted
from hudi_locks.format import Instant, IOType, State
from hudi_locks.format.claim import PRIVATE_FOLDER
from hudi_locks.markers.direct import DirectMarkers
from hudi_locks.storage import Storage
from hudi_locks.timeline import TimelineLayout

__all__ = ["FinalFiles", "StagedFile", "staging_folder"]

_STAGING: Final = f"{PRIVATE_FOLDER}/staging"


def staging_folder(requested: str) -> str:
    """Where tasks of an instant prepare their files: outside the marker folder, where a JVM would trip over them."""
    return f"{_STAGING}/{requested}"


@dataclass(frozen=True)
class StagedFile:
    """A data file under preparation.

    Attributes:
        path: Where the task writes it, relative to the base path; nobody else writes there.
        native: The same as pyarrow takes it. Its folder may be missing.
        target: The final path, relative to the base path.
        is_taken: Whether an earlier attempt has made the final file: write nothing, read its footer after `finish`.
    """

    path: str
    native: str
    target: str
    is_taken: bool


@dataclass(frozen=True)
class FinalFiles:
    """Makes the data files of one instant. Runs on executors; picklable if its storage is.

    Attributes:
        storage: Of the table.
        layout: Of its timeline.
        requested: Requested time of the instant.
        action: Of the instant, as its pending files name it.
    """

    storage: Storage
    layout: TimelineLayout
    requested: str
    action: str

    @property
    def markers(self) -> DirectMarkers:
        """The markers of the instant."""
        return DirectMarkers(self.storage, self.requested)

    def start(self, partition: str, file_name: str, *, io_type: IOType) -> StagedFile:
        """Look whether the instant is still pending, make the marker, and say where to write.

        Raises:
            WriteAborted: The instant was rolled back.
        """
        if not self._is_inflight():
            self._abort()
        marker = self.markers.create(partition, file_name, io_type=io_type)
        path = f"{staging_folder(self.requested)}/{uuid.uuid4().hex}"
        is_taken = self.storage.exists(marker.data_path)
        return StagedFile(path, self.storage.native(path), marker.data_path, is_taken)

    def finish(self, staged: StagedFile) -> bool:
        """Give the file its final name, and look again; False if an earlier attempt has it: read that one's footer.

        Raises:
            WriteAborted: The instant was rolled back meanwhile; the file is taken away again, if this call made it.
        """
        is_ours = not staged.is_taken and self.storage.move_if_absent(staged.path, staged.target)
        if not is_ours:
            self.storage.delete(staged.path)
        if not self._is_inflight():
            if is_ours:
                self.storage.delete(staged.target)
            self._abort()
        return is_ours

    def discard(self, staged: StagedFile) -> None:
        """Take a staged file away that is not needed; its marker stays, and announces nothing."""
        self.storage.delete(staged.path)

    def _is_inflight(self) -> bool:
        return self.storage.exists(self.layout.path(Instant(self.requested, self.action, State.INFLIGHT)))

    def _abort(self) -> NoReturn:
        message = f"instant {self.requested} is no longer inflight: it was rolled back; begin a new write"
        raise WriteAborted(message, instant=self.requested)
