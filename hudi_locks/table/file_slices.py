"""File slices by completion time (RFC-66; Hudi's HoodieFileGroup and AbstractTableFileSystemView).

The base files of a file group, and the compactions that are planned for it, are barriers: a log belongs to the slice
of the last barrier that was not later than the completion of its write. So a write that began before a compaction was
planned, and completed after it, is on top of what that compaction makes, though its own time is the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from hudi_locks.table.data_files import BaseFile, LogFile

__all__ = ["Completion", "FileSlice", "join_planned", "slice_file_group", "slice_file_groups"]

Completion = Callable[[str], "str | None"]
"""Completion time of a write by its requested time; None while it is pending."""


@dataclass(frozen=True)
class FileSlice:
    """A base file and what was written on top of it.

    Attributes:
        partition: Partition path.
        file_id: Its file group.
        barrier: Requested time of the base file, or of the compaction that is to make it, else of the first log.
        base: The base file; None while there is none.
        logs: Logs in the order in which they are applied.
    """

    partition: str
    file_id: str
    barrier: str
    base: BaseFile | None = None
    logs: tuple[LogFile, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Of its files, relative to the base path."""
        bases = () if self.base is None else (self.base.path,)
        return (*bases, *(log.path for log in self.logs))


def slice_file_group(
    bases: Iterable[BaseFile], logs: Iterable[LogFile], completion: Completion, *, planned: str | None = None
) -> list[FileSlice]:
    """The slices of one file group, the newest first.

    Where the completion of a write equals a barrier, its log belongs to that barrier's slice, as in Hudi; the RFC has
    it the other way. Times that we give are never equal. A log whose write is pending belongs to the newest slice.

    Args:
        bases: Its base files.
        logs: Its log files, in any order.
        completion: When their writes completed.
        planned: Requested time of a compaction that is planned and not completed.
    """
    ordered = sorted(logs)
    slices = {file.instant: FileSlice(file.partition, file.file_id, file.instant, file) for file in bases}
    if planned is not None and (slices or ordered) and planned not in slices:
        some = next(iter(slices.values()), None) or ordered[0]
        slices[planned] = FileSlice(some.partition, some.file_id, planned)
    for log in ordered:
        barrier = _find_barrier(log, slices, completion(log.instant))
        known = slices.get(barrier) or FileSlice(log.partition, log.file_id, barrier)
        slices[barrier] = replace(known, logs=(*known.logs, log))
    return sorted(slices.values(), key=attrgetter("barrier"), reverse=True)


def _find_barrier(log: LogFile, slices: Mapping[str, FileSlice], completed: str | None) -> str:
    if not slices:
        return log.instant
    if completed is None:
        return max(slices)
    return max((barrier for barrier in slices if barrier <= completed), default=log.instant)


def slice_file_groups(
    bases: Iterable[BaseFile],
    logs: Iterable[LogFile],
    completion: Completion,
    *,
    planned: Mapping[tuple[str, str], str] | None = None,
) -> dict[tuple[str, str], list[FileSlice]]:
    """`slice_file_group` for many, by (partition path, file id) in order.

    Args:
        bases: Base files of all of them.
        logs: Log files of all of them.
        completion: When their writes completed.
        planned: Requested time of the compaction that is planned, by file group.
    """
    files: dict[tuple[str, str], tuple[list[BaseFile], list[LogFile]]] = {}
    for base in bases:
        files.setdefault((base.partition, base.file_id), ([], []))[0].append(base)
    for log in logs:
        files.setdefault((log.partition, log.file_id), ([], []))[1].append(log)
    plans = planned or {}
    return {group: slice_file_group(*files[group], completion, planned=plans.get(group)) for group in sorted(files)}


def join_planned(slices: list[FileSlice]) -> FileSlice:
    """What a reader merges: the newest slice, together with the one before while its base file is only planned."""
    newest, *older = slices
    if newest.base is not None or not older:
        return newest
    return replace(older[0], logs=(*older[0].logs, *newest.logs))
