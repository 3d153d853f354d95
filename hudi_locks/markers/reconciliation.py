"""Removing, before a commit, what was announced and is not part of it."""

from __future__ import annotations

from collections.abc import Set

from hudi_locks.errors import WriteAborted
from hudi_locks.format import IOType
from hudi_locks.markers.final_file import end_turns
from hudi_locks.markers.peer import read_markers
from hudi_locks.storage import Storage

__all__ = ["reconcile"]


def reconcile(storage: Storage, requested: str, *, written: Set[str], fail_on_stray: bool = False) -> list[str]:
    """Remove data files that were announced and are not in the commit, such as those of failed attempts.

    Runs inside the table lock, before the instant is published: a stray file of a completed instant would show up as
    duplicate rows in every reader.

    Args:
        storage: Of the table.
        requested: Requested time of the instant.
        written: Paths of the commit's data files, relative to the base path.
        fail_on_stray: `hoodie.fail.job.on.duplicate.data.file.detection`.

    Returns:
        The paths removed.

    Raises:
        WriteAborted: There are strays, and `fail_on_stray` is set; nothing was removed.
    """
    announced = read_markers(storage, requested).select_own(IOType.CREATE, IOType.MERGE)
    stray = [path for path in sorted(announced - written) if (found := storage.stat(path)) and not found.is_folder]
    if stray and fail_on_stray:
        message = f"{len(stray)} data files of failed attempts are not in the commit, the first is {stray[0]}"
        raise WriteAborted(message, instant=requested, stray=tuple(stray))
    if stray:
        # A name that becomes free could be taken by a task that outlived its job, and then be part of the commit.
        end_turns(storage, requested)
    return [path for path in stray if storage.delete(path)]
