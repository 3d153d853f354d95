"""Markers that are made only if nobody else writes the same file groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

from hudi_locks.early_conflict.context import DetectionContext
from hudi_locks.early_conflict.early_conflict import report
from hudi_locks.early_conflict.strategy import EarlyConflictDetectionStrategy
from hudi_locks.format import IOType, MarkerName
from hudi_locks.format.claim import FileGroupId
from hudi_locks.storage import Storage

__all__ = ["GuardedMarkers", "Markers"]


class Markers(Protocol):
    """The markers of one instant, of either kind."""

    @property
    def markers_type(self) -> str:
        """As `hoodie.write.markers.type` calls the kind."""

    @property
    def storage(self) -> Storage:
        """Of the table."""

    @property
    def requested(self) -> str:
        """Requested time of the instant."""

    def create_all(self, names: Iterable[MarkerName]) -> None:
        """Announce data files; durable when it returns."""


@dataclass(frozen=True)
class GuardedMarkers:
    """Makes the markers of a write, after a look for conflicts. Runs on executors; picklable.

    Attributes:
        markers: Of the write.
        context: What the write knows of others.
        strategy: How to look.
    """

    markers: Markers
    context: DetectionContext
    strategy: type[EarlyConflictDetectionStrategy]

    def create_all(self, names: Sequence[MarkerName]) -> float:
        """Announce data files together; durable when it returns.

        File groups that this write makes have ids that nobody else knows: they are announced without a look, so that a
        task which opens one after the other looks once. Not so under a bucket index: two writes may make one bucket.

        Returns:
            How long it took to see that nobody else is at them, locks included, in seconds; 0 where nobody looks.

        Raises:
            HoodieEarlyConflictDetectionException: An earlier write is at a file group; nothing was announced.
            StorageError: The store failed.
        """
        strategy, clock = self.strategy(self.context), self.context.clock
        present = _name_groups(name for name in names if self.context.is_bucketed or not _is_new(name))
        began_s, checked_s = clock.monotonic(), 0.0
        with strategy.guard(present) if present else nullcontext():
            if present:
                self._look(strategy, present)
                checked_s = clock.monotonic() - began_s
            strategy.announce(_name_groups(names))
            self.markers.create_all(names)
        return checked_s

    def _look(self, strategy: EarlyConflictDetectionStrategy, groups: frozenset[FileGroupId]) -> None:
        if conflict := strategy.find_conflict(groups):
            report(self.context.storage, conflict)
            raise conflict.error()


def _name_groups(names: Iterable[MarkerName]) -> frozenset[FileGroupId]:
    return frozenset(FileGroupId(name.partition_path, name.file_id) for name in names)


def _is_new(name: MarkerName) -> bool:
    """Whether the write makes the file group; a log file is created in one that is there."""
    return name.io_type is IOType.CREATE and not name.data_file.startswith(".")
