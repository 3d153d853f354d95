"""Moving old instants from the active timeline to its history, so that a listing of it stays short."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Final

from hudi_locks.format import (
    LAST_TIME,
    WRITE_ACTIONS,
    ArchiveRow,
    Instant,
    RollbackMetadata,
    comparable_action,
)
from hudi_locks.markers import drop_staged
from hudi_locks.observe import SpanName
from hudi_locks.services.janitor import Janitor
from hudi_locks.services.retention import find_border
from hudi_locks.services.settings import ArchiveSettings, CleanSettings
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import list_data_files, read_commit, read_commit_files, slice_file_groups
from hudi_locks.timeline import PENDING_ENDINGS, Timeline, index_files, read_instant
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER
from hudi_locks.timeline.history import ArchivedHistory
from hudi_locks.timeline.old_archive import add_to_old_archive
from hudi_locks.transaction import StopPoint, TableCoordinator, View

__all__ = ["ArchiveResult", "Archiver", "find_overlapping", "move_to_history"]

_BESIDE_WRITES: Final = ("clean", "rollback", "restore", "indexing", "schemacommit")
"""What is archived together with the writes around it.

JVM Hudi does so with cleans and rollbacks, and leaves the last two for ever. Nobody reads them once they are done, in a
table without a metadata table; and what stays makes its readers blind to the history from there on.
"""
_BESIDE_OLD_WRITES: Final = ("clean", "rollback")
"""The same in version 6, whose archive has no place for the others. They stay: there readers go by writes alone."""
_HOUR_MS: Final = 3_600_000


def _do_nothing() -> None:
    """Nobody asked."""


@dataclass(frozen=True)
class ArchiveResult:
    """What an archiver did.

    Attributes:
        archived: How many instants left the active timeline.
        first_active: Requested time of the first write that is left on it; None for an empty timeline.
    """

    archived: int = 0
    first_active: str | None = None


class Archiver:
    """Archives instants of one table. Runs on the driver, inside the table lock.

    Readers take a file whose time is before the start of the active timeline for committed. So nothing is archived
    behind a pending instant; the last write before a pending one stays, so that its files are told apart if it is
    rolled back; and before the start moves past a write that was rolled back, what its tasks may have left is swept.

    JVM readers ask the history only for what is older than the first instant of the active timeline, whatever its
    action, and take the logs of other archived writes for pending: a compaction would lose them. So what is archived is
    always the oldest part of the timeline, without a gap.

    hudi-rs asks the history for nothing. So a write stays, and what is later with it, while its log lies on top of a
    compaction or bulk insert that began after it: until a later compaction takes that log, or it is removed. In version
    6 the names of logs tell where they lie.

    Args:
        coordinator: With the writers.
        settings: How many commits stay.
        clean_settings: What the cleaner keeps, for it reads the timeline too.
    """

    def __init__(
        self, coordinator: TableCoordinator, settings: ArchiveSettings, *, clean_settings: CleanSettings
    ) -> None:
        self._table = coordinator
        self._storage = coordinator.storage
        self._settings = settings
        self._clean_settings = clean_settings
        self._beside = _BESIDE_OLD_WRITES if coordinator.layout.is_version_6 else _BESIDE_WRITES

    def is_due(self, timeline: Timeline) -> bool:
        """Whether there are more commits than the settings allow."""
        return len(timeline.completed(WRITE_ACTIONS)) > self._settings.max_commits

    def run(self) -> ArchiveResult:
        """Archive what may go, down to `hoodie.keep.min.commits` commits; nothing unless there are too many.

        Raises:
            AcquireTimeout: The table lock could not be had.
            DamagedTable: An instant or the history cannot be read.
            StorageError: The store failed; another run goes on.
        """
        with self._table.metrics.measure(SpanName.ARCHIVE, "archive", self._table.clock) as told:
            told["numInstantsArchived"] = archived = self._archive_surplus()
        return ArchiveResult(archived, self._table.peek().timeline.first_active)

    def _archive_surplus(self) -> int:
        with self._table.hold():
            view = self._table.look()
            chosen = self._choose(view) if self.is_due(view.timeline) else []
            if chosen:
                self._archive(view.timeline, chosen)
        return len(chosen)

    def _archive(self, timeline: Timeline, chosen: list[Instant]) -> None:
        Janitor(self._table).sweep_writes(self._find_passed(timeline, chosen))
        # So that whoever sleeps on its way to complete one does not bring it back.
        drop = partial(drop_staged, self._storage, list(dict.fromkeys(i.requested for i in chosen)))
        trace = partial(self._table.trace, StopPoint.SERVICE_DONE)
        move_to_history(self._storage, timeline, chosen, settings=self._settings, on_added=trace, on_ended=drop)

    def _choose(self, view: View) -> list[Instant]:
        """What may go, by requested time: a run of writes without a gap, and what was done beside them."""
        writes = view.timeline.completed(WRITE_ACTIONS)
        surplus = writes[: len(writes) - self._settings.min_commits]
        kept = self._find_kept(view)
        limit = min([self._find_limit(view.timeline), *self._list_staying(view.timeline, kept)])
        going = list(takewhile(lambda write: self._may_go(view, write, limit=limit, kept=kept), surplus))
        overlapping = find_overlapping(self._storage, view.timeline, going)
        going = list(takewhile(lambda write: write.requested not in overlapping, going))
        if not going:
            return []
        last = going[-1].requested
        beside = [i for i in view.timeline.completed(self._beside) if i.requested < last]
        return sorted([*going, *beside])

    def _list_staying(self, timeline: Timeline, kept: frozenset[str]) -> Iterator[str]:
        """Completed instants beside the writes that may not go: nothing later than one of them goes."""
        is_old_layout = timeline.layout.is_version_6
        for instant in timeline.completed(self._beside if is_old_layout else None):
            if instant.action not in WRITE_ACTIONS:
                may_go = instant.action in self._beside and instant.requested not in kept and self._is_old(instant)
                yield from () if may_go else (instant.requested,)

    def _find_limit(self, timeline: Timeline) -> str:
        """Only writes that were begun before this time may go."""
        limits = [LAST_TIME, *self._list_uncompacted(timeline)]
        border = find_border(timeline, self._clean_settings, oldest_shown=self._oldest_shown())
        limits += [] if border is None else [border.requested, *_list_running_at(timeline, border.requested)]
        if pending := timeline.pending(WRITE_ACTIONS):
            before = [i.requested for i in timeline.completed(WRITE_ACTIONS) if i.requested < pending[0].requested]
            limits += before[-1:]
        if self._table.find_metadata_table() is not None:
            limits.append(self._table.delta_commits.last_compaction())  # as JVM Hudi, whose readers rest on it
        return min([*limits, *timeline.savepoints])

    def _list_uncompacted(self, timeline: Timeline) -> list[str]:
        """The last compaction with what came after it, or as much of that as makes the next one due, as JVM Hudi."""
        compactions = timeline.completed(("commit",))
        since = compactions[-1].requested if compactions else ""
        later = [i for i in timeline.completed(("deltacommit",)) if str(i.completion) > since]
        newest = [instant.requested for instant in later[-self._settings.delta_commits :]]
        is_due = len(later) >= self._settings.delta_commits
        return newest if is_due or not (later and since) else [since, *newest]

    def _find_kept(self, view: View) -> frozenset[str]:
        """Instants that somebody may still be at: with a heartbeat file, or those of the last claim."""
        beats = {entry.name for entry in self._storage.list(HEARTBEAT_FOLDER)}
        claim = view.head.claim
        claimed = {claim.instant, claim.rollback_instant or ""} if claim else set()
        return frozenset(beats | claimed)

    def _may_go(self, view: View, write: Instant, *, limit: str, kept: frozenset[str]) -> bool:
        pending = view.timeline.pending()
        overlaps = any(instant.requested < str(write.completion) for instant in pending)
        if write.requested >= limit or write.requested in kept or overlaps or not self._is_old(write):
            return False
        return write.action != "replacecommit" or not self._shows_replaced(view.timeline, write)

    def _is_old(self, instant: Instant) -> bool:
        limit_ms = self._storage.now_ms() - self._settings.min_age_ms
        return str(instant.completion) <= self._table.layout.time(limit_ms)

    def _shows_replaced(self, timeline: Timeline, write: Instant) -> bool:
        """Whether files that a write replaced are there still: without it on the timeline they would show again."""
        commit = read_commit(self._storage, timeline, requested=write.requested)
        groups = commit.replaced_file_groups
        files = list_data_files(self._storage, commit.replaced_file_ids).every
        return any((file.partition, file.file_id) in groups and file.instant < write.requested for file in files)

    def _find_passed(self, timeline: Timeline, chosen: list[Instant]) -> Iterator[str]:
        """Writes that were rolled back, and that the start of the timeline moves past, whenever that was."""
        gone = frozenset(chosen)
        left = Timeline(timeline.layout, tuple(instant for instant in timeline.instants if instant not in gone))
        first, limit = timeline.first_active or "", left.first_active or LAST_TIME
        for instant in timeline.completed(("rollback",)):
            data = read_instant(self._storage, timeline, instant=instant)
            metadata = RollbackMetadata.decode(data, timeline.paths[instant])
            yield from (requested for requested, _ in metadata.rolled_back if first < requested < limit)

    def _oldest_shown(self) -> str:
        now_ms = self._table.clock.wall_ms()
        return self._table.layout.time(now_ms - self._clean_settings.hours * _HOUR_MS)


def move_to_history(
    storage: Storage,
    timeline: Timeline,
    chosen: Sequence[Instant],
    *,
    settings: ArchiveSettings,
    on_added: Callable[[], object] = _do_nothing,
    on_ended: Callable[[], object] = _do_nothing,
) -> None:
    """Add completed instants to the history of their timeline, and take them off it. Inside the table lock.

    Args:
        storage: The table's files.
        timeline: Has the instants.
        chosen: The oldest ones of it, by requested time.
        settings: How the history is kept.
        on_added: Called once the history has them.
        on_ended: Called once nobody can complete one of them any more.

    Raises:
        DamagedTable: An instant or the history cannot be read.
        StorageError: The store failed; another run goes on.
    """
    index = index_files(storage, timeline.layout)
    files = {i: index.get((i.requested, comparable_action(i.action)), ()) for i in chosen}
    rows = [_make_row(storage, timeline, instant, files[instant]) for instant in chosen]
    if timeline.layout.is_version_6:
        add_to_old_archive(storage, timeline.layout, rows)
        on_added()
        _remove(storage, files, on_ended)
        return
    history = ArchivedHistory(storage, timeline.layout)
    history.add(rows)
    on_added()
    _remove(storage, files, on_ended)
    history.compact(batch=settings.batch, keep_versions=settings.keep_versions)


def _remove(storage: Storage, files: Mapping[Instant, tuple[str, ...]], on_ended: Callable[[], object]) -> None:
    """Pending files first, or a pending instant would appear; completed ones oldest first, so that no gap does."""
    all_files = [path for paths in files.values() for path in paths]
    storage.delete_all(path for path in all_files if path.endswith(PENDING_ENDINGS))
    on_ended()
    for path in all_files:
        storage.delete_all([path])


def _make_row(storage: Storage, timeline: Timeline, instant: Instant, files: tuple[str, ...]) -> ArchiveRow:
    data = read_instant(storage, timeline, instant=instant)
    plan = next((storage.read(path) for path in files if path.endswith(PENDING_ENDINGS[0])), None)
    return ArchiveRow(instant.requested, str(instant.completion), instant.action, data, plan or None)


def _list_running_at(timeline: Timeline, moment: str) -> Iterator[str]:
    """Writes that a snapshot of `moment` does not show yet: a cleaner takes archived ones for older than that."""
    for write in timeline.completed(WRITE_ACTIONS):
        if write.requested < moment < str(write.completion):
            yield write.requested


def find_overlapping(storage: Storage, timeline: Timeline, writes: Sequence[Instant]) -> frozenset[str]:
    """Requested times of those of `writes` that only their completion time puts on top of a base file.

    A write that began before a compaction was planned and completed after it has its log in the newest slice until a
    later compaction takes it, or it is removed. hudi-rs asks the active timeline alone when a write completed, and
    takes the log of one that is not there for part of what the compaction took. So it is with a bulk insert that gave
    the file group its base file.

    Reads the commits that overlap one of those, and lists their partitions once; nothing if there are none.

    Args:
        storage: The table's files.
        timeline: Has the writes, and what made base files.
        writes: Completed ones.

    Raises:
        DamagedTable: A commit cannot be read.
    """
    if timeline.layout.is_version_6:
        return frozenset()
    logged = [instant for instant in writes if instant.action == "deltacommit"]
    barriers = _list_barriers(storage, timeline) if logged else []
    beside = [instant for instant in logged if _overlaps(instant, barriers)]
    commits = map_in_threads(lambda i: read_commit(storage, timeline, requested=i.requested), beside)
    listed = list_data_files(storage, {p for commit in commits for p in commit.partition_to_write_stats})
    completions = {instant.requested: instant.completion for instant in beside}
    slices = slice_file_groups(
        [file for file in listed.bases if timeline.is_completed(file.instant)],
        [file for file in listed.logs if file.instant in completions],
        completions.get,
    )
    newest = [found[0] for found in slices.values()]
    return frozenset(log.instant for piece in newest for log in piece.logs if log.instant < piece.barrier)


def _list_barriers(storage: Storage, timeline: Timeline) -> list[str]:
    """Requested times of compactions, and of delta commits that made base files."""
    named = read_commit_files(storage, timeline)
    logged = (instant.requested for instant in timeline.completed(("deltacommit",)))
    based = (requested for requested in logged if requested in named and named[requested].files.bases)
    return sorted({*(instant.requested for instant in timeline.completed(("commit",))), *based})


def _overlaps(write: Instant, barriers: Sequence[str]) -> bool:
    """Whether one of `barriers`, in order, was begun while the write was under way."""
    after = bisect(barriers, write.requested)
    return after < len(barriers) and barriers[after] <= str(write.completion)
