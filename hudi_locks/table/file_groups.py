"""Which files make up a snapshot (Hudi's AbstractTableFileSystemView), and which of a past one cleans have removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from hudi_locks.errors import TableError
from hudi_locks.format import WRITE_ACTIONS
from hudi_locks.format.claim import FileGroupId
from hudi_locks.storage import Storage
from hudi_locks.table.bootstrap import refuse_lost_sources
from hudi_locks.table.data_files import (
    BaseFile,
    Completion,
    DataFiles,
    FileSlice,
    LogFile,
    list_data_files,
    slice_file_groups,
)
from hudi_locks.table.losses import (
    Loss,
    OvertakenSnapshot,
    Scope,
    damage_of,
    find_losses,
    leave_out_strays,
    leave_out_taken,
    list_replaced,
    list_taken,
)
from hudi_locks.table.table import CommitFiles, read_commit, read_commit_files
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import find_archived_completions, refuse_forgotten
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER

__all__ = [
    "Completions",
    "find_changed",
    "find_completions",
    "find_removed",
    "latest_base_files",
    "latest_file_slices",
    "refuse_removed",
]


@dataclass(frozen=True)
class Completions:
    """When the writes of some files completed.

    Attributes:
        timeline: What was asked first.
        late: Instants that looked archived, and came to the timeline after it was loaded.
        archived: Completion times that the history told, by requested time.
    """

    timeline: Timeline
    late: frozenset[str]
    archived: Mapping[str, str]

    def find(self, requested: str) -> str | None:
        """The completion time as timeline or history tell it; None for a pending write, and where neither tells."""
        instant = self.timeline.get(requested)
        if instant is not None:
            return instant.completion or (requested if instant.is_completed else None)
        return None if requested in self.late else self.archived.get(requested)

    def take(self, requested: str) -> str | None:
        """The same as readers take it: what is older than the timeline, and untold, was completed when it was begun."""
        is_told = self.timeline.get(requested) is not None or requested in self.late
        untold = requested if not is_told and self.timeline.is_completed(requested) else None
        return self.find(requested) or untold


def latest_file_slices(
    storage: Storage,
    timeline: Timeline,
    *,
    partitions: Iterable[str] | None = None,
    as_of: str | None = None,
    as_of_requested: str | None = None,
    refuses_overtaken: bool = False,
    listed: DataFiles | None = None,
) -> tuple[FileSlice, ...]:
    """The newest slice of each file group, of completed files only, in order of partition and file id.

    Replaced file groups are left out. Load the timeline first, so that no file of a later commit can be missing. A
    compaction that is planned or under way is no barrier here: its slice and the one before are read as one.

    Args:
        storage: The table's files.
        timeline: Says what is completed.
        partitions: Only these; all if None.
        as_of: Only what was completed at this time or before.
        as_of_requested: Only what was begun at this time or before, as the JVM reads `as.of.instant`.
        refuses_overtaken: Whether a timeline that is too old to show everything is an error. A writer goes on: what has
            superseded its files is a conflict.
        listed: The files of these partitions, if they are known; else they are listed.

    Raises:
        DamagedTable: A file of these slices is gone, empty, or not as long as its commit says; or the source of a
            skeleton is gone; or a commit, or the archive where it is needed, cannot be read.
        UnsupportedTable: The source of a skeleton lies in another store.
        OvertakenSnapshot: Files were superseded and cleaned since `timeline` was loaded, if that is refused.
    """
    only = None if partitions is None else frozenset(partitions)
    scope = Scope(only, as_of, as_of_requested)
    if listed is None:
        listed = list_data_files(storage, only)
    completion = find_completions(storage, timeline, listed, exactly=as_of is not None).take
    scope = scope.on(timeline, completion)
    if not scope.is_past:
        _refuse_forgotten(storage, timeline, {f.instant for f in listed.both if completion(f.instant) is None})
    named = read_commit_files(storage, timeline)
    replaced = _find_replaced(storage, timeline, named, scope=scope, completion=completion)
    losses = find_losses(listed, named, scope=scope, completion=completion)
    losses = tuple(loss for loss in losses if loss.group not in replaced)
    is_overtaken = bool(losses) and _judge(storage, timeline, losses, listed=listed, scope=scope)
    if refuses_overtaken and (is_overtaken or _lacks_some(timeline, named)):
        raise OvertakenSnapshot.of(timeline.newest_time() or "")
    bases = [file for file in listed.bases if scope.shows_file(file, completion)]
    logs = [file for file in listed.logs if scope.shows_file(file, completion)]
    groups = slice_file_groups(bases, logs, completion, blocks=scope.blocks)
    found = tuple(scope.choose_newest(slices) for group, slices in groups.items() if group not in replaced)
    if skeletons := [piece.base.path for piece in found if piece.base is not None and piece.base.is_skeleton]:
        refuse_lost_sources(storage, skeletons)
    return found


def latest_base_files(
    storage: Storage,
    timeline: Timeline,
    *,
    partitions: Iterable[str] | None = None,
    as_of: str | None = None,
    as_of_requested: str | None = None,
) -> tuple[BaseFile, ...]:
    """The base files of `latest_file_slices`: of a merge-on-read table what a read-optimised query shows."""
    limits = {"partitions": partitions, "as_of": as_of, "as_of_requested": as_of_requested}
    slices = latest_file_slices(storage, timeline, **limits)  # type: ignore[arg-type]
    return tuple(piece.base for piece in slices if piece.base is not None)


def find_changed(before: Iterable[BaseFile], now: Iterable[BaseFile]) -> frozenset[FileGroupId]:
    """File groups whose newest file is another one, those that are new or gone included."""
    known = {FileGroupId(file.partition, file.file_id): file.path for file in before}
    found = {FileGroupId(file.partition, file.file_id): file.path for file in now}
    return frozenset(group for group in known | found if known.get(group) != found.get(group))


def find_completions(storage: Storage, timeline: Timeline, files: DataFiles, *, exactly: bool) -> Completions:
    """When the writes of these files completed.

    The archive is asked only where it matters: for logs, and for what would be taken for pending otherwise. A base
    file of an archived write counts as completed when it was begun, unless `exactly` is wanted.

    Raises:
        DamagedTable: The archive cannot be read.
    """
    logged = {file.instant for file in files.logs}
    absent = {time for time in logged | {file.instant for file in files.bases} if timeline.get(time) is None}
    late = _find_late(storage, timeline, absent)
    asked = {t for t in absent - late if exactly or t in logged or not timeline.is_completed(t)}
    return Completions(timeline, late, find_archived_completions(storage, timeline.layout, requested=asked))


def _find_late(storage: Storage, timeline: Timeline, absent: Collection[str]) -> frozenset[str]:
    """Instants that look archived, and came to the timeline after it was loaded, with an older time.

    Two writers that lost the lock may begin in another order than that of their times.
    """
    now = Timeline.load(storage, timeline.layout) if absent else timeline
    return frozenset(requested for requested in absent if now.get(requested) is not None)


def _find_replaced(
    storage: Storage,
    timeline: Timeline,
    named: Mapping[str, CommitFiles],
    *,
    scope: Scope,
    completion: Completion,
) -> frozenset[tuple[str, str]]:
    """File groups that ended; a commit that was archived meanwhile is read from the history."""
    replacing = [i.requested for i in timeline.completed(("replacecommit",)) if scope.shows(i.requested, completion)]
    known = (
        named[requested].replaced
        if requested in named
        else read_commit(storage, timeline, requested=requested).replaced_file_groups
        for requested in replacing
    )
    return frozenset(group for groups in known for group in groups)


def _refuse_forgotten(storage: Storage, timeline: Timeline, unfinished: set[str]) -> None:
    """Refuse files of writes that look unfinished, and that the claim log published; of the living nobody is asked."""
    quiet = unfinished.difference(storage.list_names(HEARTBEAT_FOLDER)) if unfinished else unfinished
    if quiet:
        refuse_forgotten(storage, Timeline.load(storage, timeline.layout), requested=quiet)


def _lacks_some(timeline: Timeline, named: Mapping[str, CommitFiles]) -> bool:
    """Whether a write was undone before its commit could be read."""
    return any(write.requested not in named for write in timeline.completed(WRITE_ACTIONS))


def _judge(storage: Storage, timeline: Timeline, losses: tuple[Loss, ...], *, listed: DataFiles, scope: Scope) -> bool:
    """Whether the files went on purpose since `timeline` was loaded; what it costs is spent on suspicion alone.

    A clean takes a file only once something newer is completed. So what a timeline still shows that was loaded after
    the listing was lost before it.

    Raises:
        DamagedTable: They did not.
    """
    now = Timeline.load(storage, timeline.layout)
    named = {**read_commit_files(storage, timeline), **read_commit_files(storage, now)}
    files = DataFiles((*listed.bases, *(loss.file for loss in losses if isinstance(loss.file, BaseFile))), listed.logs)
    completion = find_completions(storage, now, files, exactly=scope.as_of is not None).take
    replaced = _find_replaced(storage, now, named, scope=scope, completion=completion)
    again = {loss.file.path for loss in find_losses(listed, named, scope=scope, completion=completion)}
    still = [loss for loss in losses if loss.file.path in again and loss.group not in replaced]
    lost = leave_out_strays(storage, now, leave_out_taken(storage, now, still), named=named)
    if lost:
        raise damage_of(lost[0], storage, others=len(lost) - 1)
    return not scope.is_past and len(still) < len(losses)


def refuse_removed(
    storage: Storage,
    timeline: Timeline,
    shown: Iterable[FileSlice],
    *,
    completed: str | None = None,
    requested: str | None = None,
    partitions: Collection[str] | None = None,
) -> None:
    """Refuse a time of which files are gone that its snapshot showed. Runs on the driver.

    What a clean promises to keep is told by `refuse_cleaned`, for less reading; a clean that counts versions promises
    no time, and one that is archived is not asked there.

    Args:
        storage: Of the table.
        timeline: What is read.
        shown: What is left of the snapshot.
        completed: The completion time that is asked for.
        requested: Or the requested time.
        partitions: Only in these; in all if None.

    Raises:
        TableError: Files of that snapshot are gone, or about to go.
        DamagedTable: A clean, or the history, cannot be read.
    """
    moment = completed if completed is not None else requested
    if moment is None:
        return

    def is_wanted(file: BaseFile | LogFile) -> bool:
        return partitions is None or file.partition in partitions

    by_completion = completed is not None
    gone = find_removed(storage, timeline, shown, moment=moment, by_completion=by_completion, is_wanted=is_wanted)
    if gone is not None:
        message = (
            f"the table as of {moment} is not whole any more: {gone} was cleaned; ask for a later time, or let"
            " hoodie.clean.* keep more, or keep a time by a savepoint"
        )
        raise TableError(message, time=moment, path=gone)


def find_removed(
    storage: Storage,
    timeline: Timeline,
    shown: Iterable[FileSlice],
    *,
    moment: str,
    is_wanted: Callable[[BaseFile | LogFile], bool],
    by_completion: bool = True,
) -> str | None:
    """A file that a snapshot showed and a clean has taken, or is to take; None if there is none.

    Only cleans that were begun after the moment are asked, since none takes what the newest snapshot shows. A file
    whose write neither timeline nor history knows is passed over: a restore has undone it.
    """
    files = _list_removed(storage, timeline, moment=moment)
    completion = find_completions(storage, timeline, files, exactly=True).find
    pieces = tuple(shown)
    there = {path for piece in pieces for path in piece.paths}
    barriers = {(piece.partition, piece.file_id): piece.base.instant for piece in pieces if piece.base is not None}

    def is_missed(file: BaseFile | LogFile) -> bool:
        completed, barrier = completion(file.instant), barriers.get((file.partition, file.file_id), "")
        if completed is None or (completed if by_completion else file.instant) > moment:
            return False
        is_above = completed >= barrier if isinstance(file, LogFile) else file.instant > barrier
        return is_above or file.path in there

    missed = [file for file in files.both if is_wanted(file) and is_missed(file)]
    replaced = list_replaced(storage, timeline, moment=moment, by_completion=by_completion) if missed else frozenset()
    missed = [file for file in missed if (file.partition, file.file_id) not in replaced]
    return max(missed, key=lambda file: file.instant).path if missed else None


def _list_removed(storage: Storage, timeline: Timeline, *, moment: str) -> DataFiles:
    """What cleans begun after the moment have removed, and what those under way are about to remove."""
    paths = {path for taken in list_taken(storage, timeline, moment=moment) for path in taken}
    named = (path.rpartition("/") for path in paths)
    return DataFiles.of((partition, name, 0) for partition, _, name in named)
