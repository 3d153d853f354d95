"""Which files of a moment of the past cleans have removed, by what the cleans say themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from hudi_locks.errors import TableError
from hudi_locks.storage import Storage
from hudi_locks.table.cleaned import list_replaced, list_taken
from hudi_locks.table.data_files import BaseFile, DataFiles, FileSlice, LogFile
from hudi_locks.table.file_groups import find_completions
from hudi_locks.timeline import Timeline

__all__ = ["find_removed", "refuse_removed"]


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
    named = (path.rpartition("/") for path in sorted(paths))
    files = [
        file
        for partition, _, name in named
        for file in (BaseFile.parse(partition, name, 0), LogFile.parse(partition, name, 0))
    ]
    bases = tuple(file for file in files if isinstance(file, BaseFile))
    return DataFiles(bases, tuple(file for file in files if isinstance(file, LogFile)))
