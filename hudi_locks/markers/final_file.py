"""How a task gives a data file its one final name, so that no retried, speculative or zombie attempt leaves a second.

Commit metadata does not filter files: both of Hudi's readers return the rows of every file whose instant is completed.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Protocol

from hudi_locks.errors import StorageError, WriteAborted
from hudi_locks.format import Instant, IOType, MarkerName, State
from hudi_locks.markers.marker_folder import DirectMarkers, staging_folder
from hudi_locks.storage import Storage
from hudi_locks.timeline import TimelineLayout

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FinalFiles", "StagedFile"]


@dataclass(frozen=True)
class StagedFile:
    """A data file under preparation.

    Attributes:
        storage: Of the table.
        path: Where the task writes it, relative to the base path; nobody else writes there. Its folder may be missing.
        target: The final path, relative to the base path.
        is_taken: Whether an earlier attempt has made the final file: write nothing, read its footer after `finish`.
    """

    storage: Storage
    path: str
    target: str
    is_taken: bool = False

    def open(self) -> pa.NativeFile:
        """Where its bytes go; the only way in which a task writes rows to a table."""
        return self.storage.open_output(self.path)

    @property
    def native(self) -> str:
        """Where the file lies, for who opens it by himself; goes in 0.3.0."""
        message = "StagedFile.native goes in 0.3.0; write to what StagedFile.open() returns"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.storage.address(self.path)


class MarkerMaker(Protocol):
    """Makes the markers of one instant, after a look at other writes."""

    def create_all(self, names: Sequence[MarkerName]) -> float:
        """Announce data files together; quiet where one was announced before. Durable when it returns.

        Returns:
            How long it looked at other writes, in seconds.
        """


@dataclass(frozen=True)
class FinalFiles:
    """Makes the data files of one instant. Runs on executors; picklable if its storage is.

    Attributes:
        storage: Of the table.
        layout: Of its timeline.
        requested: Requested time of the instant.
        action: Of the instant, as its pending files name it.
        maker: Makes the markers; None for direct ones without a look at other writes.
        turn: How often the write ended its tasks and went on with others.
    """

    storage: Storage
    layout: TimelineLayout
    requested: str
    action: str
    maker: MarkerMaker | None = None
    turn: int = 0

    @property
    def folder(self) -> str:
        """Where the tasks of this turn prepare their files."""
        return f"{staging_folder(self.requested)}/{self.turn}"

    def open_turn(self) -> None:
        """Let tasks prepare files. Runs on the driver alone: tasks never make the folder, so what is ended stays so."""
        self.storage.make_folder(self.folder)

    def end_turn(self) -> None:
        """Let no task of this turn name a file any more, however late it wakes up. Runs on the driver.

        A look could not do that, since a task may sleep between a look and its move. What was named before is there for
        whoever lists next; after it a name that becomes free stays free.
        """
        self.storage.delete_folder(self.folder)

    @property
    def markers(self) -> DirectMarkers:
        """The markers of the instant."""
        return DirectMarkers(self.storage, self.requested)

    def announce(self, names: Sequence[MarkerName]) -> float:
        """Look whether the instant is still pending, and make the markers of files that are started next.

        A task that knows its files beforehand announces them together, which costs less than one by one where other
        writes are looked at.

        Returns:
            How long other writes were looked at, in seconds; 0 where none is.

        Raises:
            HoodieEarlyConflictDetectionException: An earlier write is at one of the file groups.
            WriteAborted: The instant was rolled back.
        """
        if not self._is_inflight():
            self._abort()
        if self.maker is not None:
            return self.maker.create_all(names)
        self.markers.create_all(names)
        return 0.0

    def start(self, partition: str, file_name: str, *, io_type: IOType, is_announced: bool = False) -> StagedFile:
        """Announce a file, unless that was done, and say where to write. Raises what `announce` raises."""
        marker = MarkerName(partition, file_name, io_type)
        if not is_announced:
            self.announce([marker])
        path = f"{self.folder}/{uuid.uuid4().hex}"
        return StagedFile(self.storage, path, marker.data_path, is_taken=self.storage.exists(marker.data_path))

    def finish(self, staged: StagedFile) -> bool:
        """Give the file its final name, and look again; False if an earlier attempt has it: read that one's footer.

        Raises:
            WriteAborted: The instant was rolled back meanwhile; the file is taken away again, if this call made it.
        """
        is_ours = not staged.is_taken and self._move(staged)
        if not is_ours:
            self.storage.delete(staged.path)
        if not self._is_inflight():
            if is_ours:
                self.storage.delete(staged.target)
            self._abort()
        return is_ours

    def _move(self, staged: StagedFile) -> bool:
        try:
            return self.storage.move_if_absent(staged.path, staged.target)
        except StorageError:
            if not self._is_inflight():
                self._abort()  # the rollback took the staged file too
            raise

    @contextmanager
    def within_turn(self) -> Iterator[None]:
        """Wraps writes to the staging folder, which the driver deletes when it starts a new round of rewriting.

        Raises:
            WriteAborted: In place of an error of the store: the instant was rolled back, or the turn has ended.
        """
        try:
            yield
        except (StorageError, OSError):
            if self.storage.exists(self.folder):
                raise
            if not self._is_inflight():
                self._abort()
            message = f"the turn of this task of instant {self.requested} has ended: its rows are written by others"
            raise WriteAborted(message, instant=self.requested) from None

    def discard(self, staged: StagedFile) -> None:
        """Take a staged file away that is not needed; its marker stays, and announces nothing."""
        self.storage.delete(staged.path)

    def _is_inflight(self) -> bool:
        return self.storage.exists(self.layout.path(Instant(self.requested, self.action, State.INFLIGHT)))

    def _abort(self) -> NoReturn:
        message = f"instant {self.requested} is no longer inflight: it was rolled back; begin a new write"
        raise WriteAborted(message, instant=self.requested)
