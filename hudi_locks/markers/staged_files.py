"""How a task makes a data file that gets its name from the claim of the commit, and from nothing else.

Commit metadata does not filter files: both of Hudi's readers return the rows of every file whose instant is completed.
So tasks name nothing. What a retried, speculative or late attempt staged has no ticket in the claim, and no name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from hudi_locks.errors import StorageError, WriteAborted
from hudi_locks.format import BaseFileName, Instant, IOType, LogFileName, LogPlace, MarkerName, State, choose_token
from hudi_locks.format.key_groups import KeyGroups
from hudi_locks.storage import StagedFile, Storage
from hudi_locks.timeline import TimelineLayout

__all__ = ["MarkerMaker", "StagedFiles"]


class MarkerMaker(Protocol):
    """Makes the markers of one instant, after a look at other writes."""

    def create_all(self, names: Sequence[MarkerName]) -> float | None:
        """Announce data files together; quiet where one was announced before. Durable when it returns.

        Returns:
            How long it looked at other writes, in seconds; None if it looks at none.
        """


@dataclass(frozen=True)
class StagedFiles:
    """Makes the data files of one instant. Runs on executors; picklable if its storage is.

    Attributes:
        storage: Of the table.
        layout: Of its timeline.
        requested: Requested time of the instant.
        action: Of the instant, as its pending files name it.
        maker: Makes the markers; None where nobody reads any, since every writer of the table goes by the claims.
        indexed: Columns whose ranges are to be reported with each file, for the metadata table; see `WriteStat.ranges`.
        key_groups: The file groups of its record index, if it has one; tasks report for it the keys that theirs gain
            and lose.
        has_filters: Whether it has the bloom filters of base files; see `WriteStat.key_filter`.
        log_places: In a table of version 6 where the next log of a file group belongs, by (partition path, file id).
        attempt: Tells the base files of this attempt to run a plan from those of others; 0 where there are no others.
    """

    storage: Storage
    layout: TimelineLayout
    requested: str
    action: str
    maker: MarkerMaker | None = None
    indexed: tuple[str, ...] = ()
    key_groups: KeyGroups = field(default_factory=KeyGroups)
    has_filters: bool = False
    log_places: Mapping[tuple[str, str], LogPlace] | None = None
    attempt: int = 0

    def name_base(self, partition: str, file_id: str) -> BaseFileName:
        """The base file of a file group."""
        token = choose_token(partition, file_id) if not self.attempt else f"0-0-{self.attempt}"
        return BaseFileName(file_id, self.requested, token)

    def name_log(self, partition: str, file_id: str, part: int = 1) -> tuple[LogFileName, MarkerName]:
        """The `part`-th log of a file group, and the marker that announces it.

        In version 6 that names the base file below, and is the same for each part, as JVM Hudi has it.
        """
        if self.log_places is None:
            name = LogFileName(file_id, self.requested, part, choose_token(partition, file_id))
            return name, MarkerName(partition, str(name), IOType.CREATE)
        place = self.log_places.get((partition, file_id)) or LogPlace(self.requested, 1)
        name = place.name(file_id, self.requested, part)
        below = BaseFileName(file_id, name.instant, name.write_token)
        return name, MarkerName(partition, str(below), IOType.APPEND)

    def announce(self, names: Sequence[MarkerName]) -> float:
        """Make the markers of files that are started next.

        A task that knows its files beforehand announces them together, which costs less than one by one where other
        writes are looked at.

        Returns:
            How long other writes were looked at, in seconds; 0 where none is.

        Raises:
            HoodieEarlyConflictDetectionException: An earlier write is at one of the file groups.
            WriteAborted: The instant was rolled back, as a failure of the store shows.
        """
        if self.maker is None or not names:
            return 0.0
        with self.while_inflight():
            return self.maker.create_all(names) or 0.0

    def start(self, partition: str, file_name: str, *, io_type: IOType, is_announced: bool = False) -> StagedFile:
        """Announce a file, unless that was done, and say where to write. Raises what `announce` raises."""
        marker = MarkerName(partition, file_name, io_type)
        if not is_announced:
            self.announce([marker])
        return self.storage.stage(marker.data_path, instant=self.requested)

    def seal(self, staged: StagedFile) -> str:
        """The ticket of a file that was closed, for its write stat. Its bytes are durable.

        Raises:
            WriteAborted: The instant was rolled back, and the file with it.
            StorageError: The store failed.
        """
        with self.while_inflight():
            return staged.seal()

    @contextmanager
    def while_inflight(self) -> Iterator[None]:
        """Wraps requests of a task: whoever rolls the instant back takes away what they need.

        Raises:
            WriteAborted: In place of an error of the store: the instant is no longer inflight.
        """
        try:
            yield
        except (StorageError, OSError):
            if self.storage.exists(self.layout.path(Instant(self.requested, self.action, State.INFLIGHT))):
                raise
            message = f"instant {self.requested} is no longer inflight: it was rolled back; begin a new write"
            raise WriteAborted(message, instant=self.requested) from None
