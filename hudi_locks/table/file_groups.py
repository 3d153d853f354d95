"""Which files make up a snapshot, and which ones changed (Hudi's AbstractTableFileSystemView)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import TableError
from hudi_locks.format import WRITE_ACTIONS, BaseFileName, CommitMetadata, Instant, State, is_time
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.data_files import BaseFile, DataFiles, list_data_files, list_partitions
from hudi_locks.table.file_slices import Completion, FileSlice, slice_file_groups
from hudi_locks.table.table import read_commit
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import find_archived_completions, list_archived_since, list_archived_times

__all__ = ["Changes", "files_changed", "latest_base_files", "latest_file_slices"]

_LATE: Final = "9" * 17
_BEGINNING: Final = "19700102000000000"


@dataclass(frozen=True)
class Changes:
    """What changed in a span of time: the rows of `files` whose `_hoodie_commit_time` is one of `instants`.

    Attributes:
        instants: Requested times of the commits that completed in the span, in the order of their completion.
        files: The newest file of each group that they wrote and that none of them replaced.
    """

    instants: tuple[str, ...]
    files: tuple[BaseFile, ...]


def latest_file_slices(
    storage: Storage,
    timeline: Timeline,
    *,
    partitions: Iterable[str] | None = None,
    as_of: str | None = None,
    as_of_requested: str | None = None,
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

    Raises:
        DamagedTable: A replacing commit, or the archive where it is needed, cannot be read.
    """
    listed = list_data_files(storage, list_partitions(storage) if partitions is None else partitions)
    completion = _find_completions(storage, timeline, listed, exactly=as_of is not None)

    def shows(requested: str) -> bool:
        completed = completion(requested)
        in_time = (as_of is None or (completed or "") <= as_of) and (as_of_requested or requested) >= requested
        return completed is not None and in_time

    bases = [file for file in listed.bases if shows(file.instant)]
    logs = [file for file in listed.logs if shows(file.instant)]
    replaced = _replaced(storage, timeline, shows)
    groups = slice_file_groups(bases, logs, completion)
    return tuple(slices[0] for group, slices in groups.items() if group not in replaced)


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


def _find_completions(storage: Storage, timeline: Timeline, files: DataFiles, *, exactly: bool) -> Completion:
    """When the writes of these files completed.

    The archive is asked only where it matters: for logs, and for what would be taken for pending otherwise. A base
    file of an archived write counts as completed when it was begun, unless `exactly` is wanted.
    """
    logged = {file.instant for file in files.logs}
    absent = {time for time in logged | {file.instant for file in files.bases} if timeline.get(time) is None}
    late = _find_late(storage, timeline, absent)
    asked = {t for t in absent - late if exactly or t in logged or not timeline.is_completed(t)}
    archived = find_archived_completions(storage, timeline.layout, requested=asked)

    def complete(requested: str) -> str | None:
        instant = timeline.get(requested)
        if instant is not None:
            return instant.completion or (requested if instant.is_completed else None)
        if requested in late:
            return None
        return archived.get(requested) or (requested if timeline.is_completed(requested) else None)

    return complete


def files_changed(storage: Storage, timeline: Timeline, *, begin: str, end: str | None = None) -> Changes:
    """What commits with begin < completion time <= end changed.

    Commits that are archived are read from the history.

    Raises:
        TableError: Files of archived commits are cleaned, so that the answer would not be whole; or the table has
            version 6, whose archive is not read.
        DamagedTable: A commit, or the history, cannot be read.
    """
    _refuse_archived(storage, timeline, begin)
    instants = timeline.completed_between(begin, end)
    active = [(i, read_commit(storage, timeline, requested=i.requested)) for i in instants]
    archived = _read_archived(storage, timeline, begin=begin, end=end)
    commits = sorted([*archived, *active], key=lambda found: (str(found[0].completion), found[0].requested))
    replaced = frozenset(group for _, commit in commits for group in commit.replaced_file_groups)
    written = sorted(file for instant, commit in commits for file in _files_of(instant, commit))
    newest = {(file.partition, file.file_id): file for file in written}
    files = tuple(file for group, file in sorted(newest.items()) if group not in replaced)
    if archived:
        _refuse_cleaned(storage, timeline, files, begin=begin)
    return Changes(tuple(instant.requested for instant, _ in commits), files)


def _files_of(instant: Instant, commit: CommitMetadata) -> Iterator[BaseFile]:
    for stat in commit.stats:
        if stat.path and BaseFileName.parse(stat.path.rpartition("/")[2]):
            yield BaseFile(stat.partition_path, stat.file_id, instant.requested, stat.path, stat.file_size_bytes)


def _find_late(storage: Storage, timeline: Timeline, absent: Collection[str]) -> frozenset[str]:
    """Instants that look archived, and came to the timeline after it was loaded, with an older time.

    Two writers that lost the lock may begin in another order than that of their times.
    """
    now = Timeline.load(storage, timeline.layout) if absent else timeline
    return frozenset(requested for requested in absent if now.get(requested) is not None)


def _replaced(storage: Storage, timeline: Timeline, shows: Callable[[str], bool]) -> frozenset[tuple[str, str]]:
    replacing = [i.requested for i in timeline.completed(["replacecommit"]) if shows(i.requested)]
    commits = (read_commit(storage, timeline, requested=requested) for requested in replacing)
    return frozenset(group for commit in commits for group in commit.replaced_file_groups)


def _read_archived(
    storage: Storage, timeline: Timeline, *, begin: str, end: str | None
) -> list[tuple[Instant, CommitMetadata]]:
    """Archived writes with begin < completion time <= end, without those that were archived since `timeline`."""
    since = begin if is_time(begin) else _BEGINNING
    if not list_archived_times(storage, timeline.layout, completed_after=since):
        return []
    found = list_archived_since(storage, timeline.layout, completed_after=since)
    inside = [i for i in found if i.action in WRITE_ACTIONS and begin < i.completion <= (end or _LATE)]
    return [
        (
            Instant(i.requested, i.action, State.COMPLETED, i.completion),
            CommitMetadata.decode(i.metadata, f"archived {i.action} {i.requested}"),
        )
        for i in inside
        if timeline.get(i.requested) is None
    ]


def _refuse_archived(storage: Storage, timeline: Timeline, begin: str) -> None:
    """Refuse a span whose archive is none that is read here."""
    first = timeline.first_active
    if timeline.layout.version > 1 or (first is not None and begin >= first):
        return
    if any(entry.size for entry in storage.list(timeline.layout.archive)):
        raise _refusal(begin, first, "that of a table of version 6 is not read")


def _refuse_cleaned(storage: Storage, timeline: Timeline, files: Iterable[BaseFile], *, begin: str) -> None:
    """Refuse a span of archived commits if some of its rows are gone."""
    named = [file.path for file in files if timeline.get(file.instant) is None]
    gone = [path for path, is_there in zip(named, map_in_threads(storage.exists, named), strict=True) if not is_there]
    if gone:
        raise _refusal(begin, timeline.first_active, f"{gone[0]} was cleaned", path=gone[0])


def _refusal(begin: str, first: str | None, why: str, **facts: object) -> TableError:
    message = (
        f"commits after {begin!r} are archived, and {why}: the timeline begins at {first}; begin there or read a"
        " snapshot"
    )
    return TableError(message, begin=begin, first_active=first, **facts)
