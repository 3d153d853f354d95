"""What a clean would remove, read off a timeline and the folders that it makes worth a look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hudi_locks.format import WRITE_ACTIONS, CleanMetadata, CleanPlan, CommitMetadata, Instant
from hudi_locks.services.retention import Keep, choose_files, find_border
from hudi_locks.services.savepointed import list_savepointed
from hudi_locks.services.settings import CleanSettings
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import BaseFile, list_base_files, list_partitions, read_commit
from hudi_locks.timeline import Timeline, read_instant

__all__ = ["CleanPlanner", "count_commits_since_clean", "read_last_clean"]

_NEVER: Final = "9" * 17
_NO_COMMIT_BEFORE: Final = "null"


def read_last_clean(storage: Storage, timeline: Timeline) -> CleanMetadata | None:
    """What the last completed clean on the active timeline did; None if there is none.

    Raises:
        DamagedTable: It cannot be read.
    """
    cleans = timeline.completed(("clean",))
    if not cleans:
        return None
    data = read_instant(storage, timeline, instant=cleans[-1])
    return CleanMetadata.decode(data, timeline.paths[cleans[-1]]) if data else None


def count_commits_since_clean(storage: Storage, timeline: Timeline) -> int:
    """How many completed writes came after the last clean was planned."""
    last = read_last_clean(storage, timeline)
    writes = timeline.completed(WRITE_ACTIONS)
    return len(writes if last is None else [i for i in writes if i.requested > last.last_completed])


@dataclass(frozen=True)
class CleanPlanner:
    """Makes plans of one table.

    Attributes:
        storage: The table's files.
        settings: What is kept.
        oldest_shown: What was completed after this time is kept, under KEEP_LATEST_BY_HOURS.
    """

    storage: Storage
    settings: CleanSettings
    oldest_shown: str

    def plan(self, timeline: Timeline, *, everywhere: bool) -> CleanPlan | None:
        """The plan for the table as `timeline` shows it; None if there is nothing to remove.

        Args:
            timeline: What is completed, pending and savepointed.
            everywhere: Whether to look into all partitions where no clean is known that did so before. Otherwise only
                what writes on the active timeline superseded is found.

        Raises:
            DamagedTable: A commit, clean or savepoint cannot be read.
        """
        border = find_border(timeline, self.settings, oldest_shown=self.oldest_shown)
        if border is None:
            return None
        keep = self._keep(timeline, border)
        files = choose_files(list_base_files(self.storage, self._partitions(keep, everywhere=everywhere)), keep)
        if not files:
            return None
        last = timeline.completed(WRITE_ACTIONS)[-1].requested
        earliest = None if self.settings.counts_versions else border
        savepoints = tuple(sorted(timeline.savepoints))
        return CleanPlan(earliest, last, self.settings.policy, self._by_partition(files), savepoints)

    def _keep(self, timeline: Timeline, border: Instant) -> Keep:
        counts = self.settings.counts_versions
        moment = _NEVER if counts and not timeline.pending(WRITE_ACTIONS) else border.requested
        replacing = [i for i in timeline.completed(("replacecommit",)) if str(i.completion) <= moment]
        replaced = {
            group: instant.requested
            for instant in replacing
            for group in self._read(timeline, instant).replaced_file_groups
        }
        versions = self.settings.versions if counts else 1
        return Keep(timeline, moment, versions, list_savepointed(self.storage, timeline), replaced)

    def _partitions(self, keep: Keep, *, everywhere: bool) -> tuple[str, ...]:
        since = self._find_start(keep)
        if since is None and everywhere:
            return list_partitions(self.storage)
        superseding = [
            instant
            for instant in keep.timeline.completed(WRITE_ACTIONS)
            if (since or "") < str(instant.completion) <= keep.moment
        ]
        found = map_in_threads(lambda instant: self._read(keep.timeline, instant), superseding)
        return tuple(sorted({partition for commit in found for partition in _superseded_in(commit)}))

    def _find_start(self, keep: Keep) -> str | None:
        """Writes completed until this time had their turn in an earlier clean; None if no such time is known."""
        last = read_last_clean(self.storage, keep.timeline)
        first = keep.timeline.first_active
        if last is None or not self.settings.is_incremental or first is None or last.earliest < first:
            return None
        gone = [time for time in last.savepoints if time not in keep.timeline.savepoints]
        return min([last.earliest, *gone])

    def _by_partition(self, files: list[BaseFile]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for file in files:
            found[file.partition] = (*found.get(file.partition, ()), self.storage.native(file.path))
        return found

    def _read(self, timeline: Timeline, instant: Instant) -> CommitMetadata:
        return read_commit(self.storage, timeline, requested=instant.requested)


def _superseded_in(commit: CommitMetadata) -> Iterator[str]:
    yield from commit.replaced_file_ids
    for stat in commit.stats:
        if stat.prev_commit != _NO_COMMIT_BEFORE:
            yield stat.partition_path
