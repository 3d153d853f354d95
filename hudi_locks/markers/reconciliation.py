"""Removing, before a commit, what was announced and is not part of it."""

from __future__ import annotations

from collections.abc import Set

from hudi_locks.errors import WriteAborted
from hudi_locks.format import IOType, MarkerName
from hudi_locks.markers.direct import DirectMarkers
from hudi_locks.markers.final_file import end_turns
from hudi_locks.markers.server_files import ServerFiles
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
    names = _list_announced(storage, DirectMarkers(storage, requested).folder)
    announced = {marker.data_path for marker in names if marker.io_type is not IOType.APPEND}
    stray = [path for path in sorted(announced - written) if storage.exists(path)]
    if stray and fail_on_stray:
        message = f"{len(stray)} data files of failed attempts are not in the commit, the first is {stray[0]}"
        raise WriteAborted(message, instant=requested, stray=tuple(stray))
    if stray:
        # A name that becomes free could be taken by a task that outlived its job, and then be part of the commit.
        end_turns(storage, requested)
    return [path for path in stray if storage.delete(path)]


def _list_announced(storage: Storage, folder: str) -> list[MarkerName]:
    """Markers of both kinds, by one walk: the files of a server cost calls only where there are some."""
    paths = [path.removeprefix(f"{folder}/") for path, _ in storage.walk(folder)]
    direct = [marker for path in paths if (marker := MarkerName.parse(path)) is not None]
    return direct + ServerFiles(storage, folder).read_names(paths)
