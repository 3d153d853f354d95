"""The work folders of an instant: its direct markers, the files of a timeline server, and where tasks stage files.

A direct marker is one empty file for each data file that a task is about to write (Hudi's DirectWriteMarkers). A
timeline server keeps `MARKERS.type`, and names in `MARKERS0` and so on. Each flush overwrites a whole file, so that a
reader may meet a line that is cut off, and after a restart of a JVM's server a line of several names joined by commas.

Markers are text that anybody may have written. What they announce beside data files of their own instant is reported
and passed over, so that it neither removes anything nor stops a writer.
"""

from __future__ import annotations

import errno
import logging
import random
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from hudi_locks.errors import StorageError
from hudi_locks.format import IOType, MarkerName, find_writer
from hudi_locks.format.claim import PRIVATE_FOLDER, FileGroupId
from hudi_locks.markers.marker_index import MarkerIndex
from hudi_locks.storage import Entry, Storage

__all__ = [
    "DIRECT",
    "FALLBACK_NUMBERS",
    "MARKER_FOLDER",
    "TIMELINE_SERVER_BASED",
    "TYPE_FILE",
    "DirectMarkers",
    "FallbackMarkers",
    "PeerMarkers",
    "ServerFiles",
    "drop_staged",
    "read_markers",
    "staging_folder",
]

DIRECT: Final = "DIRECT"
MARKER_FOLDER: Final = ".hoodie/.temp"
FALLBACK_NUMBERS: Final = range(1_000, 2**31 - 1)
"""Numbers of files that tasks make themselves: above those of any server, and what the JVM still takes for a number."""
_ENDS: Final = tuple(f".marker.{kind.value}" for kind in IOType)
_MOST_SHOWN: Final = 200
_STAGING: Final = f"{PRIVATE_FOLDER}/staging"
_log = logging.getLogger(__name__)


def staging_folder(requested: str) -> str:
    """Where tasks of an instant prepare their files: outside the marker folder, where a JVM would trip over them."""
    return f"{_STAGING}/{requested}"


def drop_staged(storage: Storage, instants: Collection[str]) -> None:
    """Cancel all that these instants have staged, and remove what they keep beside it.

    Raises:
        StorageError: The store failed; a sweep goes on.
    """
    storage.cancel_staged(instants)
    for requested in instants:
        storage.delete_folder(staging_folder(requested))


@dataclass(frozen=True)
class DirectMarkers:
    """The markers of one instant. Runs on driver and executors; picklable if its storage is.

    From table version 8 on, log files are announced by CREATE, since each delta commit makes its own.

    Attributes:
        storage: Of the table.
        requested: Requested time of the instant.
    """

    markers_type: ClassVar[str] = DIRECT

    storage: Storage
    requested: str

    @property
    def folder(self) -> str:
        """Where they lie, relative to the base path; JVM readers take every child of its parent for an instant."""
        return f"{MARKER_FOLDER}/{self.requested}"

    def create(self, partition: str, file_name: str, *, io_type: IOType) -> MarkerName:
        """Announce a data file; quiet if an earlier attempt announced it already. Durable when it returns."""
        marker = MarkerName(partition, file_name, io_type)
        self.create_all([marker])
        return marker

    def create_all(self, names: Iterable[MarkerName]) -> None:
        """Announce data files; see `create`."""
        folder = self.folder
        self.storage.create_empty([f"{folder}/{name}" for name in names])

    def names(self) -> list[MarkerName]:
        """All markers, by path; other files in the folder are passed over."""
        prefix = f"{self.folder}/"
        found = (MarkerName.parse(path.removeprefix(prefix)) for path, _ in self.storage.walk(self.folder))
        return [marker for marker in found if marker is not None]

    def delete(self) -> None:
        """Remove them all; quiet if there are none."""
        self.storage.delete_folder(self.folder)


TYPE_FILE: Final = "MARKERS.type"
TIMELINE_SERVER_BASED: Final = "TIMELINE_SERVER_BASED"
_STEM: Final = "MARKERS"
_SERVER_FILE: Final = re.compile(rf"{_STEM}\d+")
_ONE_NAME: Final = re.compile(r",?(.+?\.marker\.(?:CREATE|MERGE|APPEND))(?=,|$)")


class ServerFiles:
    """Reads and writes them. Runs on driver and executors.

    Args:
        storage: Of the table.
        folder: Marker folder of the instant.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._has_type = False

    def is_used(self) -> bool:
        """Whether the markers of the instant are kept by a server; none but a server makes `MARKERS.type`."""
        return bool(self.read_type())

    def read_type(self) -> str:
        """What `MARKERS.type` says, in whatever state it is; "" if there is no such file."""
        try:
            data = self._storage.read(f"{self._folder}/{TYPE_FILE}") or b""
        except StorageError as error:
            if error.errno != errno.EISDIR:
                raise
            return ""
        return data.strip().decode(errors="replace")

    def read_lines(self, names: Iterable[str]) -> list[str]:
        """The lines of those files among `names` that a server wrote; one that vanishes meanwhile has none."""
        files = [name for name in names if _SERVER_FILE.fullmatch(name)]
        texts = [(self._storage.read(f"{self._folder}/{name}") or b"").decode(errors="replace") for name in files]
        return [line for text in texts for line in text.split("\n") if line]

    def read_numbered(self) -> dict[int, list[str]]:
        """The whole names in each numbered file."""
        return {number: [*map(str, self.read_names([f"{_STEM}{number}"]))] for number in self.numbers()}

    def numbers(self) -> list[int]:
        """The numbers of the files that are there."""
        return sorted(int(entry.name[len(_STEM) :]) for entry in self.list_files())

    def write(self, number: int, names: Iterable[str]) -> None:
        """Replace a numbered file by these names, one on each line; the type file is made before the first.

        Raises:
            StorageError: The store failed.
        """
        if not self._has_type:
            self._storage.create_if_absent(f"{self._folder}/{TYPE_FILE}", TIMELINE_SERVER_BASED.encode())
            self._has_type = True
        data = "".join(f"{name}\n" for name in names)
        self._storage.replace(f"{self._folder}/{_STEM}{number}", data.encode())

    def read_names(self, files: Iterable[str]) -> list[MarkerName]:
        """The markers in those files among `files` that a server wrote, as far as their lines are whole."""
        return [name for line in self.read_lines(files) for name in self.parse_line(line)]

    def list_files(self) -> list[Entry]:
        """The files that hold names."""
        entries = self._storage.list(self._folder)
        return [entry for entry in entries if _SERVER_FILE.fullmatch(entry.name) and not entry.is_folder]

    def read_index(self, name: str, *, is_bucketed: bool = False) -> MarkerIndex:
        """What a file may announce, by file group or by bucket; nothing if it has vanished."""
        data = self._storage.read(f"{self._folder}/{name}") or b""
        return MarkerIndex.of(data.decode(errors="replace"), self.parse_line, is_bucketed=is_bucketed)

    def read_groups(self, names: Iterable[str]) -> frozenset[FileGroupId]:
        """The file groups that these files announce, as far as their lines are whole."""
        return frozenset(FileGroupId(name.partition_path, name.file_id) for name in self.read_names(names))

    @staticmethod
    def parse_line(line: str) -> list[MarkerName]:
        """The markers that a line names, what is cut off left out."""
        parsed = [MarkerName.parse(match[1]) for match in _ONE_NAME.finditer(line)]
        return [marker for marker in parsed if marker is not None]

    @classmethod
    def is_whole(cls, line: str) -> bool:
        """Whether nothing of a line is cut off, or announces what cannot be."""
        found = [match[0] for match in _ONE_NAME.finditer(line)]
        return sum(map(len, found)) == len(line) and len(cls.parse_line(line)) == len(found)


class FallbackMarkers:
    """A file of its own beside those of the server, of the same form, so that every rollback reads it too.

    Direct markers would not do: where `MARKERS.type` is, readers look for no others. For one task; picklable.

    Args:
        storage: Of the table.
        requested: Requested time of the instant.
    """

    markers_type: ClassVar[str] = TIMELINE_SERVER_BASED

    def __init__(self, storage: Storage, requested: str) -> None:
        self.storage = storage
        self.requested = requested
        self._names: list[str] = []
        self._number: int | None = None

    def create_all(self, names: Iterable[MarkerName]) -> None:
        """Announce data files; durable when it returns.

        Raises:
            StorageError: The store failed.
        """
        if self._number is None:
            self._number = random.SystemRandom().choice(FALLBACK_NUMBERS)
        self._names += map(str, names)
        ServerFiles(self.storage, DirectMarkers(self.storage, self.requested).folder).write(self._number, self._names)

    def __reduce__(self) -> Any:
        """A copy elsewhere is for another task, with a file of its own."""
        return FallbackMarkers, (self.storage, self.requested)


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
        return frozenset(name.data_path for name in self.names if self.is_own(name))

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
    odd = [*folder.odd, *[str(name) for name in folder.names if _is_odd(found, name)]]
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
