"""Which rows changed in a span of completion times (Hudi's incremental queries)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from hudi_locks.errors import TableError
from hudi_locks.format import (
    FIRST_TIME,
    LAST_TIME,
    WRITE_ACTIONS,
    BaseFileName,
    CommitMetadata,
    Instant,
    State,
    is_time,
)
from hudi_locks.storage import Storage
from hudi_locks.table.data_files import BaseFile, FileSlice, LogFile, list_data_files
from hudi_locks.table.file_groups import find_removed, latest_file_slices
from hudi_locks.table.losses import Loss, OvertakenSnapshot, damage_of, is_amiss, leave_out_taken
from hudi_locks.table.table import read_commit
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import list_archived_since, list_archived_times

__all__ = ["Changes", "SliceChanges", "files_changed", "slices_changed"]


_Commit = tuple[Instant, CommitMetadata]
_Group = tuple[str, str]


@dataclass(frozen=True)
class Changes:
    """What changed in a span of time: the rows of `files` whose `_hoodie_commit_time` is one of `instants`.

    Attributes:
        commits: Those that completed in the span, archived ones too, in the order of their completion.
        files: The newest file of each group that they wrote and that none of them replaced.
    """

    commits: tuple[Instant, ...]
    files: tuple[BaseFile, ...]

    @property
    def instants(self) -> tuple[str, ...]:
        """Requested times of the commits."""
        return tuple(one.requested for one in self.commits)


@dataclass(frozen=True)
class SliceChanges:
    """What changed in a span of time: the merged rows of `slices` whose `_hoodie_commit_time` is one of `instants`.

    Attributes:
        commits: Those that completed in the span, archived ones too, in the order of their completion.
        slices: What each file group that they wrote was at the end of the span.
    """

    commits: tuple[Instant, ...]
    slices: tuple[FileSlice, ...]

    @property
    def instants(self) -> tuple[str, ...]:
        """Requested times of the commits."""
        return tuple(one.requested for one in self.commits)


def files_changed(storage: Storage, timeline: Timeline, *, begin: str, end: str | None = None) -> Changes:
    """What commits with begin < completion time <= end changed in a table without logs.

    Commits that are archived are read from the history. Each file is named by a commit of the span and holds all rows
    of its file group, so one that a clean has taken can only be missed, never stand for fewer rows.

    Raises:
        TableError: Files of these commits are cleaned, so that the answer would not be whole.
        DamagedTable: A file of an active commit is lost; or a commit, or the history, cannot be read.
        OvertakenSnapshot: A commit was undone since `timeline` was loaded.
    """
    commits = _list_commits(storage, timeline, begin=begin, end=end)
    replaced = frozenset(group for _, commit in commits for group in commit.replaced_file_groups)
    written = sorted(file for instant, commit in commits for file in _files_of(instant, commit))
    newest = {(file.partition, file.file_id): file for file in written}
    files = tuple(file for group, file in sorted(newest.items()) if group not in replaced)
    _refuse_gone(storage, timeline, files, begin=begin)
    return Changes(tuple(instant for instant, _ in commits), files)


def slices_changed(
    storage: Storage,
    timeline: Timeline,
    *,
    begin: str,
    end: str | None = None,
    partitions: Collection[str] | None = None,
) -> SliceChanges:
    """What commits with begin < completion time <= end changed, logs included: the slices are listed, and merged then.

    A row of the span may be merged with files from before it. So with an end the slices must be whole as of that time.
    Only the slices of these partitions are listed; all if None.

    Raises:
        TableError: A file that the span ends with, or is merged with there, is cleaned, so that the answer would not
            be whole.
        DamagedTable: A commit, or the history, cannot be read.
    """
    commits = _list_commits(storage, timeline, begin=begin, end=end)
    written = {(stat.partition_path, stat.file_id) for _, commit in commits for stat in commit.stats if stat.path}
    touched = {partition for partition, _ in written if partitions is None or partition in partitions}
    listed = latest_file_slices(storage, timeline, partitions=touched, as_of=end, refuses_overtaken=True)
    slices = {(piece.partition, piece.file_id): piece for piece in listed}
    gone = None if end is None else _find_gone(storage, timeline, commits, slices=slices, end=end)
    if gone is not None:
        raise _refusal(begin, timeline.first_active, f"{gone} was cleaned", path=gone)
    shown = tuple(piece for group, piece in slices.items() if group in written)
    return SliceChanges(tuple(instant for instant, _ in commits), shown)


def _find_gone(
    storage: Storage, timeline: Timeline, commits: list[_Commit], *, slices: Mapping[_Group, FileSlice], end: str
) -> str | None:
    """A file that the end of the span needs, and that is not there: one of its own, or one that it is merged with."""
    if gone := sorted(_list_gone(commits, slices)):
        return gone[0]
    written = frozenset(group for _, commit in commits for group in commit.written_file_groups)

    def is_wanted(file: BaseFile | LogFile) -> bool:
        return (file.partition, file.file_id) in written

    return find_removed(storage, timeline, slices.values(), moment=end, is_wanted=is_wanted) if written else None


def _list_gone(commits: list[_Commit], slices: Mapping[_Group, FileSlice]) -> Iterator[str]:
    """Files of the span that its end needs, and that are not there: what no base file below the end took over."""
    replaced = frozenset(group for _, commit in commits for group in commit.replaced_file_groups)
    there = {path for piece in slices.values() for path in piece.paths}
    for instant, commit in commits:
        for stat in commit.stats:
            group = (stat.partition_path, stat.file_id)
            piece = slices.get(group)
            barrier = piece.base.instant if piece is not None and piece.base is not None else ""
            since = str(instant.completion) if stat.log_version is not None else instant.requested
            if stat.path and stat.path not in there and since >= barrier and group not in replaced:
                yield stat.path


def _list_commits(storage: Storage, timeline: Timeline, *, begin: str, end: str | None) -> list[_Commit]:
    """The commits of the span with their metadata, in the order of their completion."""
    instants = timeline.completed_between(begin, end)
    active = [(i, read_commit(storage, timeline, requested=i.requested)) for i in instants]
    archived = _read_archived(storage, timeline, begin=begin, end=end)
    return sorted([*archived, *active], key=lambda found: (str(found[0].completion), found[0].requested))


def _files_of(instant: Instant, commit: CommitMetadata) -> Iterator[BaseFile]:
    for stat in commit.stats:
        if stat.path and BaseFileName.parse(stat.path.rpartition("/")[2]):
            yield BaseFile(stat.partition_path, stat.file_id, instant.requested, stat.path, stat.file_size_bytes)


def _read_archived(storage: Storage, timeline: Timeline, *, begin: str, end: str | None) -> list[_Commit]:
    """Archived writes with begin < completion time <= end, without those that were archived since `timeline`."""
    since = begin if is_time(begin) else FIRST_TIME
    if not list_archived_times(storage, timeline.layout, completed_after=since):
        return []
    found = list_archived_since(storage, timeline.layout, completed_after=since)
    inside = [i for i in found if i.action in WRITE_ACTIONS and begin < i.completion <= (end or LAST_TIME)]
    return [
        (
            Instant(i.requested, i.action, State.COMPLETED, i.completion),
            CommitMetadata.decode(i.metadata, f"archived {i.action} {i.requested}"),
        )
        for i in inside
        if timeline.get(i.requested) is None
    ]


def _refuse_gone(storage: Storage, timeline: Timeline, files: Iterable[BaseFile], *, begin: str) -> None:
    """Refuse a span of which rows are gone: cleaned, undone since `timeline` was loaded, or lost."""
    named = tuple(files)
    there = {file.path: file.size for file in list_data_files(storage, {file.partition for file in named}).bases}
    losses = [Loss(file, there.get(file.path)) for file in named if is_amiss(file, there.get(file.path))]
    gone = [loss for loss in losses if timeline.get(loss.file.instant) is None]
    if gone:
        raise _refusal(begin, timeline.first_active, f"{gone[0].file.path} was cleaned", path=gone[0].file.path)
    if losses:
        _refuse_lost(storage, losses, now=Timeline.load(storage, timeline.layout), begin=begin)


def _refuse_lost(storage: Storage, losses: list[Loss], *, now: Timeline, begin: str) -> None:
    if any(not now.is_completed(loss.file.instant) for loss in losses):
        raise OvertakenSnapshot.of(now.newest_time() or "")
    if lost := leave_out_taken(storage, now, losses):
        raise damage_of(lost[0], storage, others=len(lost) - 1)
    path = losses[0].file.path
    message = f"what commits after {begin!r} wrote is not whole any more: {path} was cleaned; begin later"
    raise TableError(message, begin=begin, path=path)


def _refusal(begin: str, first: str | None, why: str, **facts: object) -> TableError:
    message = (
        f"commits after {begin!r} are archived, and {why}: the timeline begins at {first}; begin there or read a"
        " snapshot"
    )
    return TableError(message, begin=begin, first_active=first, **facts)
