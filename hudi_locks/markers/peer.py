"""Markers of any instant, whoever wrote them: direct ones, and those of a timeline server.

They are text that anybody may have written. What they announce beside data files of their own instant is reported and
passed over, so that it neither removes anything nor stops a writer.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hudi_locks.errors import WriteAborted
from hudi_locks.format import IOType, MarkerName, find_writer
from hudi_locks.markers.final_file import end_turns
from hudi_locks.markers.marker_folder import TIMELINE_SERVER_BASED, TYPE_FILE, DirectMarkers, ServerFiles
from hudi_locks.storage import Storage

__all__ = ["PeerMarkers", "read_markers", "reconcile"]

_ENDS: Final = tuple(f".marker.{kind.value}" for kind in IOType)
_MOST_SHOWN: Final = 200
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PeerMarkers:
    """What the marker folder of an instant tells.

    Attributes:
        requested: Of the instant.
        names: Every marker that announces something below the base path, perhaps of another instant.
        is_complete: Whether nothing speaks for more: the folder is there, and all in it is as it should be. Otherwise a
            rollback looks for the instant's files by listing.
    """

    requested: str
    names: frozenset[MarkerName]
    is_complete: bool

    @property
    def own_files(self) -> frozenset[str]:
        """Announced paths of data and log files of this very instant: all that may be removed with it."""
        return self.select_own(*IOType)

    def select_own(self, *kinds: IOType) -> frozenset[str]:
        """The same, announced by markers of these kinds alone."""
        return frozenset(name.data_path for name in self.names if name.io_type in kinds and self.is_own(name))

    def is_own(self, name: MarkerName) -> bool:
        """Whether a marker announces a data or log file that carries the instant in its own name."""
        return find_writer(name.data_path) == self.requested


def read_markers(storage: Storage, requested: str) -> PeerMarkers:
    """The markers of the instant begun at `requested`, in either form, or both. What is odd among them is logged.

    Raises:
        StorageError: The store failed.
    """
    folder = _Folder(storage, DirectMarkers(storage, requested).folder)
    found = PeerMarkers(requested, folder.names, is_complete=False)
    odd = [*folder.odd, *(str(name) for name in folder.names if _is_odd(found, name))]
    if odd:
        _log.warning(
            "%s holds %d markers that are passed over, since they announce no data file of that instant, the first: %s;"
            " nothing is removed for them, and the files of the instant are looked for by listing",
            *(folder.path, len(odd), repr(odd[0])[:_MOST_SHOWN]),
        )
    return PeerMarkers(requested, folder.names, is_complete=bool(folder.files) and not odd)


class _Folder:
    """One walk through a marker folder: the files of a server cost calls only where there are some."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.path = path
        self.files = [found.removeprefix(f"{path}/") for found, _ in storage.walk(path)]
        self._server = ServerFiles(storage, path)

    @cached_property
    def _lines(self) -> Sequence[str]:
        return self._server.read_lines(self.files)

    @cached_property
    def names(self) -> frozenset[MarkerName]:
        direct = (MarkerName.parse(file) for file in self.files)
        announced = (name for line in self._lines for name in self._server.parse_line(line))
        return frozenset(name for name in (*direct, *announced) if name is not None)

    @cached_property
    def odd(self) -> list[str]:
        """What announces nothing: lines that are cut off or malformed, and a type that does not exist."""
        direct = [file for file in self.files if file.endswith(_ENDS) and MarkerName.parse(file) is None]
        lines = [line for line in self._lines if not self._server.is_whole(line)]
        kind = self._server.read_type() if TYPE_FILE in self.files else ""
        return [*direct, *lines, *([f"{TYPE_FILE} says {kind!r}"] if kind not in ("", TIMELINE_SERVER_BASED) else ())]


def _is_odd(markers: PeerMarkers, name: MarkerName) -> bool:
    """Up to table version 6 a log is named by the base file below it, not by the write that appends to it."""
    return not markers.is_own(name) and not (name.io_type is IOType.APPEND and find_writer(name.data_path))


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
