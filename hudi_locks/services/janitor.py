"""Removing what nobody will ever finish: strays of rolled back writes, markers, heartbeats and staged files.

Nothing here rests on a lock. Whoever is alive has an instant on the timeline, or a fresh heartbeat while it makes one;
so folders are listed first, and the timeline after them: what it does not show then was never begun, or has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from hudi_locks.format import FIRST_TIME, WRITE_ACTIONS, Instant, find_writer, is_time
from hudi_locks.format.claim import PRIVATE_FOLDER, claim_path
from hudi_locks.markers import MARKER_FOLDER, DirectMarkers, drop_staged, read_markers, staging_folder
from hudi_locks.table import drop_abandoned_input, list_partitions
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import is_archived, list_archived_times, refuse_forgotten
from hudi_locks.timeline.claims import STAGED_FOLDER
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER, find_alive
from hudi_locks.transaction import TableCoordinator

__all__ = ["Janitor", "SweepResult"]

_PATIENCE_MS: Final = 3_600_000
"""Half-written files and heartbeats of nobody known are left alone for so long."""
_STAGING: Final = staging_folder("").rstrip("/")
_HALF_WRITTEN: Final = f"{PRIVATE_FOLDER}/tmp"  # noqa: S108 - a folder of the table


@dataclass(frozen=True)
class SweepResult:
    """What a janitor did.

    Attributes:
        rolled_back: Requested times of failed writes that were rolled back.
        data_files: Paths of data files of writes that were never completed.
        leftovers: How many marker folders, heartbeats and staged files went.
    """

    rolled_back: tuple[str, ...] = ()
    data_files: tuple[str, ...] = ()
    leftovers: int = 0


class Janitor:
    """Sweeps one table. Runs on the driver; needs no lock, and any number of them may run at the same time.

    Args:
        coordinator: With the writers.
    """

    def __init__(self, coordinator: TableCoordinator) -> None:
        self._table = coordinator
        self._storage = coordinator.storage

    def sweep(self, *, everywhere: bool = False) -> SweepResult:
        """Remove what is left of instants that are done.

        Args:
            everywhere: Whether to list all partitions for data files of writes that were never completed. Otherwise
                only those that a marker tells of are found, at the cost of a few listings.

        Raises:
            DamagedTable: The timeline or its archive cannot be read.
            StorageError: The store failed; another sweep goes on.
        """
        listed = self._list_data_files() if everywhere else []
        marked = [entry.name for entry in self._storage.list(MARKER_FOLDER) if is_time(entry.name)]
        staged = self._list_staged()
        beats = [name for name in sorted(self._older_than_patience(HEARTBEAT_FOLDER)) if is_time(_name_beat(name))]
        ended = self._find_ended({*marked, *staged, *map(_name_beat, beats), *(instant for _, instant in listed)})
        undone = [instant for instant in marked if instant in ended.failed]
        announced = [path for instant in undone for path in read_markers(self._storage, instant).own_files]
        strays = [*announced, *(path for path, instant in listed if instant in ended.failed)]
        removed = tuple(sorted(self._table.delete_files(strays)))
        leftovers = self._drop_folders(marked, staged, ended) + self._drop_heartbeats(beats, ended)
        leftovers += self._drop_archived()
        leftovers += self._drop_half_written() + self._drop_claim_contents() + self._drop_unmade_savepoints()
        leftovers += drop_abandoned_input(self._storage)
        return SweepResult(data_files=removed, leftovers=leftovers)

    def sweep_writes(self, instants: Iterable[str]) -> tuple[str, ...]:
        """Remove every data file of these writes, which were rolled back; the paths removed.

        An archiver does so before it moves the start of the active timeline past them: readers take files of a time
        before that start for committed.
        """
        wanted = frozenset(instants)
        if not wanted:
            return ()
        listed = self._list_data_files()
        ended = self._find_ended(wanted)
        strays = (path for path, instant in listed if instant in wanted & ended.failed)
        return tuple(sorted(self._table.delete_files(strays)))

    def _list_data_files(self) -> list[tuple[str, str]]:
        """(path, requested time) of all data files."""
        folders = list_partitions(self._storage)
        listed = zip(folders, self._storage.list_each(folders), strict=True)
        found = (f"{folder}/{e.name}" if folder else e.name for folder, entries in listed for e in entries)
        return [(path, writer) for path in found if (writer := find_writer(path)) is not None]

    def _find_ended(self, instants: Iterable[str]) -> _Ended:
        view = self._table.peek()
        timeline = view.timeline
        pending = {instant.requested for instant in timeline.pending()}
        asked = sorted(frozenset(instants) - pending)
        alive = find_alive(self._storage, asked, limit_ms=self._table.settings.heartbeat_limit_ms)
        quiet = [time for time in asked if time not in alive]
        failed = frozenset(time for time in quiet if self._is_failed(time, timeline))
        refuse_forgotten(self._storage, timeline, requested=failed, done=view.head.number - 1)
        return _Ended(frozenset(quiet), failed)

    def _is_failed(self, requested: str, timeline: Timeline) -> bool:
        """Whether readers pass over the files of an instant, and always will until the archive overtakes it."""
        first = timeline.first_active
        if first is None or requested < first or timeline.get(requested) is not None:
            return False
        return not is_archived(self._storage, timeline.layout, requested=requested)

    def _list_staged(self) -> list[str]:
        """Instants of which tickets are left, or what lies beside staged files."""
        names = {*self._storage.list_staged(), *self._storage.list_names(_STAGING)}
        return sorted(name for name in names if is_time(name))

    def _drop_folders(self, marked: list[str], staged: list[str], ended: _Ended) -> int:
        """Remove the markers of instants that are done, and cancel what they staged.

        Who is taken for dead and claims its commit all the same finds its tickets gone: the commit is voided.
        """
        markers = [requested for requested in marked if requested in ended.quiet]
        folders = [requested for requested in staged if requested in ended.quiet]
        for requested in markers:
            DirectMarkers(self._storage, requested).delete()
        drop_staged(self._storage, folders)
        return len(markers) + len(folders)

    def _drop_archived(self) -> int:
        """Remove completed writes that are archived already, the oldest first, up to the first that is not.

        Readers count from the first one: what is missing behind it was never committed for them.

        A writer that slept while others completed and archived its instant may have made the file again, and died.
        """
        timeline = self._table.peek().timeline
        pending = {instant.requested for instant in timeline.pending()}
        times = list_archived_times(self._storage, timeline.layout, completed_after=FIRST_TIME) - pending
        back = takewhile(lambda write: self._came_back(timeline, write, times), timeline.completed(WRITE_ACTIONS))
        return sum([self._storage.delete(timeline.paths[write]) for write in back])

    def _came_back(self, timeline: Timeline, write: Instant, archived: frozenset[str]) -> bool:
        """Whether it is archived, and no archiver at work on it, who takes its inflight file first."""
        return write.requested in archived and not self._storage.exists(timeline.layout.path(write.as_inflight()))

    def _drop_heartbeats(self, beats: list[str], ended: _Ended) -> int:
        dead = [name for name in beats if _name_beat(name) in ended.quiet]
        return sum(self._storage.delete(f"{HEARTBEAT_FOLDER}/{name}") for name in dead)

    def _drop_half_written(self) -> int:
        old = self._older_than_patience(_HALF_WRITTEN)
        return sum(self._storage.delete(f"{_HALF_WRITTEN}/{name}") for name in old)

    def _drop_claim_contents(self) -> int:
        """Remove staged contents of claims that were decided.

        The content of a claim to come is staged, or touched, after the claim before it was made: what is older than
        the last claim was staged for a number that is taken.
        """
        staged = self._storage.list(STAGED_FOLDER)
        head = self._table.peek().head
        made = self._storage.stat(claim_path(head.number)) if head.number else None
        if made is None or head.claim is None:
            return 0
        needed = {content.sha256 for content in head.claim.contents}
        old = [e.name for e in staged if e.modified_ms < made.modified_ms and e.name not in needed]
        return sum(self._storage.delete(f"{STAGED_FOLDER}/{name}") for name in old)

    def _drop_unmade_savepoints(self) -> int:
        """Remove what is left of savepoints whose makers died: nothing behind them would ever be archived."""
        timeline = self._table.peek().timeline
        pending = [timeline.paths[instant] for instant in timeline.pending(("savepoint",))]
        old = self._older_than_patience(timeline.layout.folder) if pending else frozenset()
        return sum(self._storage.delete(path) for path in pending if path.rpartition("/")[2] in old)

    def _older_than_patience(self, folder: str) -> frozenset[str]:
        entries = self._storage.list(folder)
        limit_ms = self._storage.now_ms() - _PATIENCE_MS if entries else 0
        return frozenset(entry.name for entry in entries if entry.modified_ms < limit_ms)


@dataclass(frozen=True)
class _Ended:
    """Instants that nobody works at: all of them, and those that were never completed."""

    quiet: frozenset[str]
    failed: frozenset[str]


def _name_beat(name: str) -> str:
    """The instant of a heartbeat, or of the checksum that a JVM writer may leave of one which is gone."""
    return name[1:-4] if name.startswith(".") and name.endswith(".crc") else name


def with_rolled_back(result: SweepResult, rolled_back: Iterable[str]) -> SweepResult:
    """The same, with what was rolled back before."""
    return replace(result, rolled_back=tuple(rolled_back))
