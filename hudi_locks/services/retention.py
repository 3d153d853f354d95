"""Which old files nobody needs any more: pure decisions on a timeline and listings.

The border of what is kept is a write: every snapshot from the moment when that write began stays readable, by
completion time and by requested time. JVM Hudi compares requested times alone, and may remove the version below a
write that was begun before the border and completed after it; what is chosen here is a part of what it would choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from hudi_locks.config import service_keys
from hudi_locks.format import WRITE_ACTIONS, Instant
from hudi_locks.services.settings import CleanSettings
from hudi_locks.table import BaseFile
from hudi_locks.timeline import Timeline

__all__ = ["Keep", "choose_files", "find_border"]

_NEVER: Final = "9" * 17
Group = tuple[str, str]


@dataclass(frozen=True)
class Keep:
    """What must stay.

    Attributes:
        timeline: Says what is completed, and when.
        moment: Every snapshot from this time on stays.
        versions: So many versions of a file group stay besides.
        savepointed: Paths that a savepoint keeps.
        replaced: Requested time of the write that ended a file group before `moment`, by (partition, file id).
    """

    timeline: Timeline
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


def choose_files(files: Iterable[BaseFile], keep: Keep) -> list[BaseFile]:
    """Those of `files` that may go; all files of a file group must be among them, or none."""
    groups: dict[Group, list[BaseFile]] = {}
    for file in files:
        if keep.timeline.is_completed(file.instant):
            groups.setdefault((file.partition, file.file_id), []).append(file)
    chosen = (file for group, members in groups.items() for file in _choose(members, keep, keep.replaced.get(group)))
    return sorted(file for file in chosen if file.path not in keep.savepointed)


def _choose(members: list[BaseFile], keep: Keep, replaced_by: str | None) -> list[BaseFile]:
    if replaced_by is not None:
        return [file for file in members if file.instant < replaced_by]
    newest = sorted({file.instant for file in members}, reverse=True)
    shown = [instant for instant in newest if _completion(keep.timeline, instant) <= keep.moment]
    kept = {*newest[: keep.versions], *shown[:1]}
    return [file for file in members if file.instant not in kept and file.instant in shown]


def _completion(timeline: Timeline, requested: str) -> str:
    """When a write became visible; of an archived one its requested time, for it is older than all that is asked."""
    instant = timeline.get(requested)
    return (instant.completion if instant else None) or requested
