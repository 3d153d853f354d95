"""Which old files nobody needs any more: decisions on a timeline and listings, and the plan of a clean.

The border of what is kept is a write: every snapshot from the moment when that write began stays readable, by
completion time and by requested time. JVM Hudi compares requested times alone, and may remove the version below a
write that was begun before the border and completed after it; what is chosen here is a part of what it would choose.

A pending write is never behind the border, and a planned compaction or clustering is one: what it reads was shown when
it was planned. Logs go with the slice to which they belong by the completion of their writes, whatever their names say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hudi_locks.config import service_keys
from hudi_locks.format import LAST_TIME, WRITE_ACTIONS, CleanPlan, CommitMetadata, Instant
from hudi_locks.services.savepointed import list_savepointed
from hudi_locks.services.settings import CleanSettings
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import (
    BaseFile,
    Completion,
    DataFiles,
    FileSlice,
    LogFile,
    find_completions,
    list_data_files,
    list_partitions,
    read_commit,
    read_last_clean,
    slice_file_groups,
)
from hudi_locks.timeline import Timeline

__all__ = [
    "CleanPlanner",
    "Keep",
    "choose_files",
    "count_commits_since_clean",
    "find_border",
    "find_judged",
    "list_addresses",
]

Group = tuple[str, str]
_NO_COMMIT_BEFORE: Final = "null"


@dataclass(frozen=True)
class Keep:
    """What must stay.

    Attributes:
        moment: Every snapshot from this time on stays.
        versions: So many slices of a file group stay besides.
        savepointed: Paths that a savepoint keeps.
        replaced: Requested time of the write that ended a file group before `moment`, by (partition, file id).
    """

    moment: str
    versions: int = 1
    savepointed: frozenset[str] = frozenset()
    replaced: Mapping[Group, str] = field(default_factory=dict)


def find_border(timeline: Timeline, settings: CleanSettings, *, oldest_shown: str) -> Instant | None:
    """The oldest write that stays with all that its snapshot shows; None if all of them do.

    It is never later than a pending write, whose snapshot is still read, and never between begin and completion of a
    replacing write: JVM archivers count on it that what was replaced before the border is gone.

    Args:
        timeline: The table's.
        settings: Says by what to choose. A policy that counts versions regards only pending writes here.
        oldest_shown: What was completed after this time is kept, under KEEP_LATEST_BY_HOURS.
    """
    pending = timeline.pending(WRITE_ACTIONS)
    completed = timeline.completed(WRITE_ACTIONS)
    if settings.policy == service_keys.KEEP_COMMITS:
        chosen = completed[len(completed) - settings.commits :][:1] if len(completed) > settings.commits else ()
    elif settings.policy == service_keys.KEEP_HOURS:
        chosen = tuple(i for i in completed if str(i.completion) > oldest_shown)[:1]
    else:
        chosen = pending[:1] or completed[-1:]
    if not chosen:
        return None
    return _before_replacing(timeline, min([*chosen, *pending[:1]], key=lambda instant: instant.requested))


def _before_replacing(timeline: Timeline, border: Instant) -> Instant:
    replacing = timeline.completed(("replacecommit",))
    while overlapping := [i for i in replacing if i.requested < border.requested < str(i.completion)]:
        border = overlapping[0]
    return border


def choose_files(files: DataFiles, keep: Keep, completion: Completion) -> list[BaseFile | LogFile]:
    """Those of `files` that may go; all files of a file group must be among them, or none.

    Args:
        files: As they are listed.
        keep: What must stay.
        completion: When their writes completed. What is not completed stays.
    """
    done = files.where(lambda file: completion(file.instant) is not None)
    groups = slice_file_groups(done.bases, done.logs, completion)
    change_logs = frozenset(log.path for log in done.change_logs)
    oldest = {group: _find_oldest(slices, keep, completion) for group, slices in groups.items()}

    def may_go(file: BaseFile | LogFile) -> bool:
        group = (file.partition, file.file_id)
        if group in keep.replaced:
            return file.instant < keep.replaced[group]
        completed = str(completion(file.instant))
        if isinstance(file, LogFile) and file.path not in change_logs:
            return completed < oldest[group]
        return file.instant < oldest.get(group, "") and completed <= keep.moment

    return [file for file in done.every if may_go(file) and file.path not in keep.savepointed]


def _find_oldest(slices: Sequence[FileSlice], keep: Keep, completion: Completion) -> str:
    """The barrier of the oldest slice that stays; before all times if that is the oldest one.

    It is one whose base file was there at the moment, and none above it hides it from the snapshots before.
    """
    shown = (n for n, piece in enumerate(slices) if piece.base and str(completion(piece.barrier)) <= keep.moment)
    number = max(next(shown, len(slices)), keep.versions - 1)
    return slices[number].barrier if number < len(slices) else ""


def list_addresses(storage: Storage, files: Sequence[BaseFile | LogFile]) -> dict[str, tuple[str, ...]]:
    """Full paths of files as a JVM opens them, by partition path, for a plan."""
    found: dict[str, tuple[str, ...]] = {}
    for file in files:
        found[file.partition] = (*found.get(file.partition, ()), storage.address(file.path))
    return found


def find_judged(storage: Storage, timeline: Timeline, listed: DataFiles) -> tuple[DataFiles, Completion]:
    """What may be judged, and when it was completed: of logs by what timeline and history tell, or not at all.

    Where there are no logs the archive is not asked: a base file of an archived write is older than all that is kept,
    whenever it was completed.

    Args:
        storage: The table's files.
        timeline: That of the writes.
        listed: Their files.

    Raises:
        DamagedTable: The history cannot be read.
    """
    if not listed.logs:
        return listed, lambda requested: _complete_as_begun(timeline, requested)
    completions = find_completions(storage, timeline, listed, exactly=True)
    told = tuple(log for log in listed.logs if completions.find(log.instant) is not None)
    return replace(listed, logs=told), completions.take


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
        known: Partitions where a write made something old, by its requested time; a planner fills it for the next one,
            so that a process reads each commit once.
    """

    storage: Storage
    settings: CleanSettings
    oldest_shown: str
    known: dict[str, frozenset[str]] = field(default_factory=dict)

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
        listed = list_data_files(self.storage, self._partitions(timeline, keep, everywhere=everywhere))
        listed, completion = find_judged(self.storage, timeline, listed)
        files = choose_files(listed, keep, completion)
        if not files:
            return None
        last = timeline.completed(WRITE_ACTIONS)[-1].requested
        earliest = None if self.settings.counts_versions else border
        savepoints = tuple(sorted(timeline.savepoints))
        return CleanPlan(earliest, last, self.settings.policy, list_addresses(self.storage, files), savepoints)

    def _keep(self, timeline: Timeline, border: Instant) -> Keep:
        counts = self.settings.counts_versions
        moment = LAST_TIME if counts and not timeline.pending(WRITE_ACTIONS) else border.requested
        replacing = [i for i in timeline.completed(("replacecommit",)) if str(i.completion) <= moment]
        replaced = {
            group: instant.requested
            for instant in replacing
            for group in self._read(timeline, instant).replaced_file_groups
        }
        versions = self.settings.versions if counts else 1
        return Keep(moment, versions, list_savepointed(self.storage, timeline), replaced)

    def _partitions(self, timeline: Timeline, keep: Keep, *, everywhere: bool) -> tuple[str, ...]:
        since = self._find_start(timeline)
        if since is None and everywhere:
            return list_partitions(self.storage)
        superseding = [
            instant
            for instant in timeline.completed(WRITE_ACTIONS)
            if (since or "") < str(instant.completion) <= keep.moment
        ]
        found = map_in_threads(lambda instant: self._list_superseded(timeline, instant), superseding)
        self.known.clear()
        self.known.update(zip((instant.requested for instant in superseding), found, strict=True))
        return tuple(sorted(frozenset[str]().union(*found)))

    def _list_superseded(self, timeline: Timeline, instant: Instant) -> frozenset[str]:
        known = self.known.get(instant.requested)
        return frozenset(_superseded_in(self._read(timeline, instant))) if known is None else known

    def _find_start(self, timeline: Timeline) -> str | None:
        """Writes completed until this time had their turn in an earlier clean; None if no such time is known."""
        last = read_last_clean(self.storage, timeline)
        first = timeline.first_active
        if last is None or not self.settings.is_incremental or first is None or last.earliest < first:
            return None
        gone = [time for time in last.savepoints if time not in timeline.savepoints]
        return min([last.earliest, *gone])

    def _read(self, timeline: Timeline, instant: Instant) -> CommitMetadata:
        return read_commit(self.storage, timeline, requested=instant.requested)


def _superseded_in(commit: CommitMetadata) -> Iterator[str]:
    """Partitions where a write made something old: a log does not, and the first base file above logs does."""
    yield from commit.replaced_file_ids
    for stat in commit.stats:
        if stat.log_version is None and (commit.compacted or stat.prev_commit != _NO_COMMIT_BEFORE):
            yield stat.partition_path


def _complete_as_begun(timeline: Timeline, requested: str) -> str | None:
    instant = timeline.get(requested)
    if instant is None:
        return requested if timeline.is_completed(requested) else None
    return (instant.completion or requested) if instant.is_completed else None
