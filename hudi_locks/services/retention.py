"""Which old files nobody needs any more: pure decisions on a timeline and listings.

The border of what is kept is a write: every snapshot from the moment when that write began stays readable, by
completion time and by requested time. JVM Hudi compares requested times alone, and may remove the version below a
write that was begun before the border and completed after it; what is chosen here is a part of what it would choose.

A pending write is never behind the border, and a planned compaction or clustering is one: what it reads was shown when
it was planned. Logs go with the slice to which they belong by the completion of their writes, whatever their names say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hudi_locks.config import service_keys
from hudi_locks.format import WRITE_ACTIONS, Instant
from hudi_locks.services.settings import CleanSettings
from hudi_locks.table import BaseFile, Completion, DataFiles, FileSlice, LogFile, slice_file_groups
from hudi_locks.timeline import Timeline

__all__ = ["Keep", "choose_files", "find_border"]

Group = tuple[str, str]


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
    while straddling := [i for i in replacing if i.requested < border.requested < str(i.completion)]:
        border = straddling[0]
    return border


def choose_files(files: DataFiles, keep: Keep, completion: Completion) -> list[BaseFile | LogFile]:
    """Those of `files` that may go; all files of a file group must be among them, or none.

    Args:
        files: As they are listed.
        keep: What must stay.
        completion: When their writes completed. What is not completed stays.
    """
    done = DataFiles(
        tuple(file for file in files.bases if completion(file.instant) is not None),
        tuple(file for file in files.logs if completion(file.instant) is not None),
    )
    groups = slice_file_groups(done.bases, done.logs, completion)
    oldest = {group: _find_oldest(slices, keep, completion) for group, slices in groups.items()}

    def may_go(file: BaseFile | LogFile) -> bool:
        group = (file.partition, file.file_id)
        if group in keep.replaced:
            return file.instant < keep.replaced[group]
        completed = str(completion(file.instant))
        if isinstance(file, LogFile):
            return completed < oldest[group]
        return file.instant < oldest[group] and completed <= keep.moment

    return [file for file in done.both if may_go(file) and file.path not in keep.savepointed]


def _find_oldest(slices: Sequence[FileSlice], keep: Keep, completion: Completion) -> str:
    """The barrier of the oldest slice that stays; before all times if that is the oldest one.

    It is one whose base file was there at the moment, and none above it hides it from the snapshots before.
    """
    shown = (n for n, piece in enumerate(slices) if piece.base and str(completion(piece.barrier)) <= keep.moment)
    number = max(next(shown, len(slices)), keep.versions - 1)
    return slices[number].barrier if number < len(slices) else ""
