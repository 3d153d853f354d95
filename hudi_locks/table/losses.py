"""Data files that are gone: what cleans and replacing writes took, and what a snapshot needs and does not find whole.

A listing alone cannot tell that a file is lost: the version before is shown in its place, or nothing. But completed
writes name what they made, so the newest slice of each file group follows from them too. A file is lost if it belongs
there, and the listing lacks it. Of archived writes the active timeline tells nothing; `hudi-locks verify` reads those.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hudi_locks.errors import DamagedTable, TableError
from hudi_locks.format import (
    FIRST_TIME,
    LAST_TIME,
    WRITE_ACTIONS,
    CleanMetadata,
    CleanPlan,
    CommitMetadata,
    Instant,
    add_ms,
)
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.data_files import (
    BaseFile,
    BlockScope,
    Completion,
    DataFiles,
    FileSlice,
    LogFile,
    join_planned,
    slice_file_groups,
)
from hudi_locks.table.partition_path import PARTITION_METADATA
from hudi_locks.table.table import CommitFiles, read_commit
from hudi_locks.timeline import Timeline, read_instant
from hudi_locks.timeline.archive import ArchivedInstant, list_archived_since, list_archived_times

__all__ = [
    "Loss",
    "OvertakenSnapshot",
    "Scope",
    "damage_of",
    "find_losses",
    "is_amiss",
    "leave_out_strays",
    "leave_out_taken",
    "list_replaced",
    "list_taken",
    "read_archived_commits",
    "read_clean_plans",
    "read_last_clean",
    "refuse_cleaned",
]

_DataFile = BaseFile | LogFile


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


def read_clean_plans(storage: Storage, timeline: Timeline, *, after: str = "") -> Iterator[tuple[Instant, CleanPlan]]:
    """What the cleans that are under way are about to do; one that has just ended may be left out.

    Args:
        storage: Of the table.
        timeline: What is read.
        after: Only those with a later requested time.

    Raises:
        DamagedTable: A plan cannot be read.
    """
    for instant in timeline.pending(("clean",)):
        path = timeline.layout.path(instant.as_requested())
        data = storage.read(path) if instant.requested > after else None
        if data:
            yield instant, CleanPlan.decode(data, path)


def refuse_cleaned(
    storage: Storage, timeline: Timeline, *, completed: str | None = None, requested: str | None = None
) -> None:
    """Refuse a time of which a clean, done or under way, keeps no whole snapshot, as JVM readers do.

    A clean that counts versions names no such time, and one that is archived is not looked at: `refuse_removed` tells
    what these have taken. What a savepoint keeps may be asked for, by the requested time of its write, and so may every
    time after the last write.

    Args:
        storage: Of the table.
        timeline: What is read.
        completed: A completion time that is asked for.
        requested: Or a requested time.

    Raises:
        TableError: Files of that snapshot may be gone.
        DamagedTable: The clean cannot be read.
    """
    moment = completed if completed is not None else requested
    if moment is None or requested in timeline.savepoints:
        return
    earliest, clean = max(_list_earliest(storage, timeline), default=("", ""))
    writes = timeline.completed(WRITE_ACTIONS)
    is_behind = any(moment < (write.requested if completed is None else str(write.completion)) for write in writes)
    if moment < earliest and is_behind:
        message = (
            f"the table as of {moment} is not whole any more: clean {clean} kept what is shown since {earliest}; ask"
            " for a later time, or let hoodie.clean.* keep more, or keep a time by a savepoint"
        )
        raise TableError(message, time=moment, earliest=earliest, clean=clean)


def _list_earliest(storage: Storage, timeline: Timeline) -> Iterator[tuple[str, str]]:
    """From when on the last clean, and those that are under way, keep everything; and their requested times."""
    last = read_last_clean(storage, timeline)
    if last is not None:
        yield last.earliest, last.started
    for instant, plan in read_clean_plans(storage, timeline):
        yield (plan.earliest.requested if plan.earliest else ""), instant.requested


def list_taken(storage: Storage, timeline: Timeline, *, moment: str) -> Iterator[frozenset[str]]:
    """Paths of what each clean that was begun after the moment has removed, or is about to remove.

    Raises:
        DamagedTable: A clean, or the history, cannot be read.
    """
    done = [instant for instant in timeline.completed(("clean",)) if instant.requested > moment]
    contents = map_in_threads(lambda instant: read_instant(storage, timeline, instant=instant), done)
    for instant, content in zip(done, contents, strict=True):
        yield CleanMetadata.decode(content, timeline.paths[instant]).paths if content else frozenset()
    yield from (plan.paths for _, plan in read_clean_plans(storage, timeline, after=moment))
    for archived in _list_archived(storage, timeline, "clean", after=moment):
        yield CleanMetadata.decode(archived.metadata, f"archived clean {archived.requested}").paths


def list_replaced(
    storage: Storage, timeline: Timeline, *, moment: str, by_completion: bool
) -> frozenset[tuple[str, str]]:
    """File groups that had been replaced by then, also by writes that are archived."""
    active = (
        read_commit(storage, timeline, requested=instant.requested)
        for instant in timeline.completed(("replacecommit",))
        if str(instant.completion if by_completion else instant.requested) <= moment
    )
    archived = (
        CommitMetadata.decode(instant.metadata, f"archived replacecommit {instant.requested}")
        for instant in _list_archived(storage, timeline, "replacecommit", after=FIRST_TIME)
        if (instant.completion if by_completion else instant.requested) <= moment
    )
    return frozenset(group for commit in (*active, *archived) for group in commit.replaced_file_groups)


def read_archived_commits(
    storage: Storage, timeline: Timeline, *, requested: Collection[str]
) -> dict[str, CommitMetadata]:
    """What archived writes say, by requested time; those that the history does not have are left out."""
    if timeline.layout.is_version_6 or not requested:
        return {}
    since = add_ms(min(requested), -1)
    found = list_archived_since(storage, timeline.layout, completed_after=since)
    return {
        one.requested: CommitMetadata.decode(one.metadata, f"archived {one.action} {one.requested}")
        for one in found
        if one.requested in requested and one.action in WRITE_ACTIONS and one.metadata
    }


def _list_archived(storage: Storage, timeline: Timeline, action: str, *, after: str) -> list[ArchivedInstant]:
    """Archived instants of `action` with a later completion time; of a table of version 6 the archive is not read."""
    if timeline.layout.is_version_6 or not list_archived_times(storage, timeline.layout, completed_after=after):
        return []
    found = list_archived_since(storage, timeline.layout, completed_after=after)
    return [instant for instant in found if instant.action == action and instant.metadata]


class OvertakenSnapshot(TableError):
    """What the snapshot shows was superseded and cleaned, or undone, since its timeline was loaded: load it again."""

    @classmethod
    def of(cls, time: str) -> OvertakenSnapshot:
        """The error that names the newest time of the snapshot."""
        message = (
            f"files of the table as of {time} were superseded and cleaned, or undone, while it was looked at: load the"
            " timeline again, and read then"
        )
        return cls(message, time=time)


@dataclass(frozen=True)
class Scope:
    """What a reader asks for.

    Attributes:
        partitions: Only these; all if None.
        as_of: Only what was completed at this time or before.
        as_of_requested: Only what was begun at this time or before.
        blocks: What counts of logs, of a table that is of version 6, or was.
    """

    partitions: frozenset[str] | None = None
    as_of: str | None = None
    as_of_requested: str | None = None
    blocks: BlockScope | None = None

    def on(self, timeline: Timeline, completion: Completion) -> Scope:
        """The same with what the timeline tells of the blocks of logs, if they are to be asked."""
        if not timeline.layout.has_old_logs:
            return self
        moments = [moment for moment in (self.as_of, self.as_of_requested) if moment is not None]
        blocks = BlockScope(
            timeline.layout.is_version_6,
            frozenset(i.requested for i in timeline.completed(WRITE_ACTIONS) if self.shows(i.requested, completion)),
            timeline.first_active or "",
            min(moments, default=None),
            frozenset(i.requested for i in timeline.pending(("compaction",))),
        )
        return replace(self, blocks=blocks)

    @property
    def is_past(self) -> bool:
        """Whether a moment is asked for, of which a clean may have taken files."""
        return self.as_of is not None or self.as_of_requested is not None

    def shows(self, requested: str, completion: Completion) -> bool:
        """Whether the write begun at `requested` is seen."""
        completed = completion(requested)
        in_time = (self.as_of is None or (completed or "") <= self.as_of) and (
            self.as_of_requested or requested
        ) >= requested
        return completed is not None and in_time

    def holds(self, file: _DataFile, completion: Completion) -> bool:
        """Whether a file is looked at, if nothing newer is there."""
        return (self.partitions is None or file.partition in self.partitions) and self.shows_file(file, completion)

    def shows_file(self, file: _DataFile, completion: Completion) -> bool:
        """Whether what a file holds may be seen."""
        is_above_plan = self.blocks is not None and isinstance(file, LogFile) and self.blocks.takes_log(file)
        return is_above_plan or self.shows(file.instant, completion)

    def choose_newest(self, slices: list[FileSlice]) -> FileSlice:
        """Where logs are named by base files, a planned compaction has a slice of its own, without a base file yet."""
        return join_planned(slices) if self.blocks is not None and self.blocks.names_bases else slices[0]


@dataclass(frozen=True)
class Loss:
    """A file that is not what its write left.

    Attributes:
        file: As the write names it; as it was listed, where only that tells that it is empty.
        found: Its size; None if it is gone.
    """

    file: _DataFile
    found: int | None

    @property
    def group(self) -> tuple[str, str]:
        """(partition path, file id)."""
        return self.file.partition, self.file.file_id


def is_amiss(file: _DataFile, found: int | None) -> bool:
    """Whether a file of `found` bytes (None: no file) is not what a write names.

    A log may have grown, as where somebody appended to it; a base file never changes. Neither is ever empty.
    """
    if not found:
        return True
    return found < file.size if isinstance(file, LogFile) else file.size not in (0, found)


def find_losses(
    listed: DataFiles, named: Mapping[str, CommitFiles], *, scope: Scope, completion: Completion
) -> tuple[Loss, ...]:
    """Files of the newest slices that are gone, cut off or otherwise changed, as the listing of sizes shows it.

    Args:
        listed: What is there, of completed writes and of others.
        named: What the completed writes say, by requested time. A file of another write is amiss if it is empty.
        scope: What is asked for.
        completion: When writes completed.
    """
    there = {file.path: file.size for file in listed.both}
    suspects = {file.path: file for commit in named.values() for file in commit.files.both if _is_suspect(file, there)}
    empty = (file for file in listed.both if not file.size and file.instant not in named)
    suspects = {file.path: file for file in (*empty, *suspects.values()) if scope.holds(file, completion)}
    if not suspects:
        return ()
    groups = {(file.partition, file.file_id) for file in suspects.values()}
    needed = set(_list_needed(listed, suspects.values(), groups, scope=scope, completion=completion))
    return tuple(Loss(suspects[path], there.get(path)) for path in sorted(needed & suspects.keys()))


def damage_of(loss: Loss, storage: Storage, *, others: int = 0) -> DamagedTable:
    """The error that names a file, what is amiss, and the way out."""
    file, found = loss.file, loss.found
    if found is None and storage.exists(file.path):
        path = f"{file.partition}/{PARTITION_METADATA}".removeprefix("/")
        message = f"{path} is gone, so that no reader looks into a partition with {file.path}: bring it back"
        return DamagedTable(f"{message}; `hudi-locks verify PATH` lists all that is damaged", path=path)
    kind = "log" if isinstance(file, LogFile) else "base file"
    what = "is gone" if found is None else f"has {found} bytes"
    wanted = f" of {file.size} bytes" if file.size else ""
    more = f", and {others} more files are not whole" if others else ""
    message = (
        f"{file.path} {what}, and the write {file.instant}, which is completed, made it as a {kind}{wanted}{more}: rows"
        " would be missing without a word. Bring the file back from a copy, or restore the table to a savepoint;"
        " `hudi-locks verify PATH` lists all that is damaged"
    )
    return DamagedTable(message, path=file.path, instant=file.instant, expected=file.size or None, found=found)


def leave_out_taken(storage: Storage, timeline: Timeline, losses: list[Loss]) -> list[Loss]:
    """Those that no clean has taken, and no write ended, archived ones included."""
    if not losses:
        return losses
    first = min(loss.file.instant for loss in losses)
    taken = frozenset(path for paths in list_taken(storage, timeline, moment=first) for path in paths)
    left = [loss for loss in losses if loss.file.path not in taken]
    ended = list_replaced(storage, timeline, moment=LAST_TIME, by_completion=False) if left else frozenset()
    return [loss for loss in left if loss.group not in ended]


def leave_out_strays(
    storage: Storage, timeline: Timeline, losses: list[Loss], *, named: Mapping[str, CommitFiles]
) -> list[Loss]:
    """Those that an active commit names, or that no archived one leaves out: a task that failed leaves empty files."""
    if all(loss.file.instant in named for loss in losses):
        return losses
    archived = read_archived_commits(storage, timeline, requested={loss.file.instant for loss in losses} - named.keys())
    return [
        loss
        for loss in losses
        if loss.file.instant not in archived or loss.file.path in archived[loss.file.instant].paths
    ]


def _is_suspect(file: _DataFile, there: dict[str, int]) -> bool:
    return is_amiss(file, there.get(file.path))


def _list_needed(
    listed: DataFiles,
    suspects: Iterable[_DataFile],
    groups: set[tuple[str, str]],
    *,
    scope: Scope,
    completion: Completion,
) -> Iterator[str]:
    """Paths of the newest slices of these groups, had nothing been lost."""
    mine = (file for file in listed.both if (file.partition, file.file_id) in groups)
    known = {file.path: file for file in mine if scope.shows_file(file, completion)}
    files = {**known, **{file.path: file for file in suspects}}.values()
    bases = [file for file in files if isinstance(file, BaseFile)]
    logs = [file for file in files if isinstance(file, LogFile)]
    for slices in slice_file_groups(bases, logs, completion, blocks=scope.blocks).values():
        yield from scope.choose_newest(slices).paths
