"""Tables on HDFS, through WebHDFS or Hadoop's own protocol: read and written, on the driver and on executors alike."""

from __future__ import annotations

import errno
import io
import uuid
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hudi_locks.config import Options
from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.redaction import open_log
from hudi_locks.storage import (
    TICKETS_FOLDER,
    Entry,
    StagedFile,
    Storage,
    StorageCapabilities,
    draw_staged,
    find_staged,
    map_in_threads,
    reporting,
)
from hudi_locks_providers._files.hdfs_client import HdfsClient, HdfsStatus
from hudi_locks_providers._files.name_nodes import find_link
from hudi_locks_providers._files.native_hdfs import NativeHdfs
from hudi_locks_providers._files.webhdfs import WebHdfs
from hudi_locks_providers._storage.ranges import FIRST_BYTES, Block, RangeReader

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["HdfsStorage", "open_hdfs_storage"]

_STAGING: Final = ".hoodie/.hudi_locks/tmp"
"""Half-written files wait here, as on a disk."""
_HDFS: Final = "hdfs"
_PIECE_BYTES: Final = 4 << 20
_log = open_log(__name__)


def open_hdfs_storage(path: str, options: Mapping[str, object]) -> HdfsStorage:
    """The storage of a table on HDFS; sends nothing.

    Args:
        path: `hdfs://namenode:8020/table`, or `webhdfs://namenode:9870/table` and `swebhdfs://` for HTTPS.
        options: `hudi_locks.filesystem.webhdfs_url` says where the name nodes of an `hdfs://` path speak HTTP, and
            `hudi_locks.hdfs.client` whether they are asked by that at all. Without them Hadoop's configuration, of the
            running Spark or of HADOOP_CONF_DIR, tells it. Where that has no address for WebHDFS, turns it off or asks
            for Kerberos, the package hdfs-native is used if it is installed, else port 9870 of the host.

    Raises:
        ConfigError: The path names no host, and neither options nor Hadoop's configuration say where to ask; that
            configuration is not whole; or it asks for what only hdfs-native speaks, which is not installed.
    """
    base = path.rstrip("/")
    return HdfsStorage(base, *find_link(base, Options({**options})))


@dataclass(frozen=True, eq=False)
class HdfsStorage(Storage):
    """The files below one folder of HDFS.

    The name node moves a file in one step, and never onto a name that is taken: so files are written aside, and get
    their names by that. What a file holds is with the data nodes when it is closed; they bring it to their disks when
    they see fit, as for every other writer of HDFS. A name has no colon there.

    Attributes:
        base: See `Storage`.
        addresses: Of the name nodes, such as `http://namenode:9870`; one such as `hdfs://namenode:8020`, or with the
            name of a name service, where Hadoop's own protocol is spoken.
        settings: Hadoop's, for that protocol.
    """

    base: str
    addresses: tuple[str, ...] = field(repr=False)
    settings: Mapping[str, str] = field(repr=False, default_factory=dict)

    capabilities: StorageCapabilities = field(
        default=StorageCapabilities(conditional_create=True, tickets=True, renewal_in_place=True, ended_folders=True),
        init=False,
        repr=False,
    )
    is_remote = True

    @cached_property
    def hdfs(self) -> HdfsClient:
        """The name nodes."""
        if urlsplit(self.addresses[0]).scheme != _HDFS:
            return WebHdfs(self.addresses)
        return NativeHdfs(self.addresses[0], self.settings, scratch=self._locate(_STAGING))

    @property
    def place(self) -> Hashable:
        """See `Storage.place`."""
        return (type(self).__name__, self.addresses, self._locate(""))

    def list(self, folder: str) -> list[Entry]:
        """See `Storage.list`."""
        with reporting("list", folder):
            try:
                found = self.hdfs.list_statuses(self._locate(folder))
            except FileNotFoundError:
                return []
        return sorted(_entry(status.name, status) for status in found if status.name)

    def walk(self, folder: str) -> Iterable[tuple[str, Entry]]:
        """See `Storage.walk`; the folders of one depth are listed side by side."""
        folders, files = [folder], list[tuple[str, Entry]]()
        while folders:
            children = self.list_each(folders)
            found = [
                (f"{above}/{entry.name}" if above else entry.name, entry)
                for above, entries in zip(folders, children, strict=True)
                for entry in entries
            ]
            files += [(path, entry) for path, entry in found if not entry.is_folder]
            folders = [path for path, entry in found if entry.is_folder]
        return sorted(files)

    def read(self, path: str) -> bytes | None:
        """See `Storage.read`."""
        with reporting("read", path):
            try:
                return self.hdfs.read(self._locate(path))
            except FileNotFoundError:
                return None

    def stat(self, path: str) -> Entry | None:
        """See `Storage.stat`."""
        with reporting("look at", path):
            status = self.hdfs.find_status(self._locate(path))
        return None if status is None else _entry(path.rpartition("/")[2], status)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """See `Storage.create_if_absent`.

        Raises:
            StorageError: No answer: the file may be there, now or later.
        """
        with reporting("create", path):
            return self._write(path, data)

    def create_transient(self, path: str, data: bytes) -> bool:
        """See `Storage.create_transient`. What is empty is whole from the begin, and nobody reads what is staged."""
        if data and not path.startswith(f"{TICKETS_FOLDER}/"):
            return self.create_if_absent(path, data)
        with reporting("create", path):
            try:
                self.hdfs.create(self._locate(path), data)
            except FileExistsError:
                return False
            return True

    def replace(self, path: str, data: bytes) -> None:
        """See `Storage.replace`."""
        with reporting("replace", path):
            if not self._write(path, data, replaces=True):
                raise StorageError(f"cannot replace {path!r}: what was written aside is gone", path=path)

    def touch(self, path: str) -> bool:
        """See `Storage.touch`: with the name node's own time, as far as its answers tell it."""
        with reporting("touch", path):
            try:
                self.hdfs.set_modified(self._locate(path), self.hdfs.now_ms())
            except FileNotFoundError:
                return False
            return True

    def set_modified(self, path: str, modified_ms: int) -> bool:
        """See `Storage.set_modified`."""
        with reporting("date", path):
            try:
                self.hdfs.set_modified(self._locate(path), modified_ms)
            except FileNotFoundError:
                return False
            return True

    def stage(self, target: str, *, instant: str) -> StagedFile:
        """See `Storage.stage`: a file aside, which `redeem` gives its name and `cancel` removes."""
        return _HdfsFile(self, target, draw_staged(instant))

    def redeem(self, ticket: str, target: str) -> bool:
        """See `Storage.redeem`."""
        aside = self.locate_staged(ticket)
        with reporting("name", target):
            if self._name(aside, target):
                return True
            self.hdfs.delete(aside)  # the name is taken, which uses the ticket up
            return False

    def cancel(self, ticket: str, target: str) -> None:
        """See `Storage.cancel`. The name node moves no file that was deleted."""
        with reporting("cancel", target):
            self.hdfs.delete(self.locate_staged(ticket))

    def list_staged(self) -> set[str]:
        """See `Storage.list_staged`."""
        return set(self.list_names(TICKETS_FOLDER))

    def cancel_staged(self, instants: Collection[str]) -> None:
        """See `Storage.cancel_staged`."""
        map_in_threads(lambda instant: self.delete_folder(f"{TICKETS_FOLDER}/{instant}"), instants)

    def move_if_absent(self, source: str, target: str) -> bool:
        """See `Storage.move_if_absent`."""
        with reporting("move to", target):
            if self._name(self._locate(source), target):
                return True
        if self.exists(target):
            return False
        raise NoSuchFile(f"cannot move {source!r}: it is not there", path=source)

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        with reporting("delete", path):
            try:
                return self.hdfs.delete(self._locate(path), recursive=False)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
                return False  # a folder

    def delete_folder(self, folder: str) -> None:
        """See `Storage.delete_folder`."""
        with reporting("delete", folder):
            self.hdfs.delete(self._locate(folder))

    def make_folder(self, folder: str) -> None:
        """See `Storage.make_folder`."""
        with reporting("make", folder):
            self.hdfs.make_folders(self._locate(folder))

    def open_input(self, path: str) -> pa.NativeFile:
        """See `Storage.open_input`."""
        import pyarrow as pa

        found = self.stat(path)
        if found is None or found.is_folder:
            raise NoSuchFile(f"cannot open {path!r}: it is not there", path=path)
        return pa.PythonFile(_Reader(self.hdfs, self._locate(path), found.size), mode="r")

    def open_place(self, place: str) -> pa.NativeFile:
        """Where the bytes of a file go, by its path on HDFS; its folder is made."""
        import pyarrow as pa

        return pa.PythonFile(io.BufferedWriter(self.hdfs.open_output(place), _PIECE_BYTES), mode="w")

    def address(self, path: str) -> str:
        """See `Storage.address`: with the scheme that the user wrote."""
        return f"{self.base}/{path}" if path else self.base

    def now_ms(self) -> int:
        """See `Storage.now_ms`."""
        with reporting("ask for the time of", ""):
            return self.hdfs.now_ms()

    def locate_staged(self, ticket: str) -> str:
        """Where a staged file lies on HDFS.

        Raises:
            StorageError: The text is no ticket.
        """
        return self._locate(find_staged(ticket, self.base))

    def _locate(self, path: str) -> str:
        root = urlsplit(self.base).path.rstrip("/")
        return f"{root}/{path}" if path else root or "/"

    def _name(self, aside: str, path: str, *, replaces: bool = False) -> bool:
        """Give a file aside its name; False if that is taken, or the file gone. The folder is made where it is not."""
        place = self._locate(path)
        while (is_named := self._move(aside, place, replaces=replaces)) is None:
            self.hdfs.make_folders(place.rpartition("/")[0])
        return is_named

    def _move(self, aside: str, place: str, *, replaces: bool) -> bool | None:
        """Whether the file has its name now; None where the folder is missing."""
        try:
            self.hdfs.move(aside, place, replaces=replaces)
        except FileExistsError:
            return False
        except FileNotFoundError:
            return None if self.hdfs.find_status(aside) is not None else False
        return True

    def _write(self, path: str, data: bytes, *, replaces: bool = False) -> bool:
        """Write a file aside, and give it its name; what did not get it is taken away.

        Where it is gone, its name was taken, or the answer to the move was lost and it was asked again: what is there
        tells.
        """
        aside = self._locate(f"{_STAGING}/{uuid.uuid4().hex}")
        try:
            self.hdfs.create(aside, data)
            is_named = self._name(aside, path, replaces=replaces)
        except OSError:
            self._remove_quietly(aside)
            raise
        return is_named or (not self._remove_quietly(aside) and self.read(path) == data)

    def _remove_quietly(self, aside: str) -> bool:
        """Whether it was there, or may be."""
        try:
            return self.hdfs.delete(aside)
        except OSError as error:
            _log.info("%s is left, and swept later: %s", aside, error)
            return True

    def __reduce__(self) -> tuple[Any, ...]:
        return HdfsStorage, (self.base, self.addresses, self.settings)


@dataclass(frozen=True)
class _HdfsFile(StagedFile):
    """See `StagedFile`."""

    storage: HdfsStorage
    target: str
    ticket: str

    def open(self) -> pa.NativeFile:
        with reporting("write", self.target):
            return self.storage.open_place(self.storage.locate_staged(self.ticket))

    def seal(self) -> str:
        with reporting("seal", self.target):
            if self.storage.hdfs.find_status(self.storage.locate_staged(self.ticket)) is None:
                message = f"cannot seal {self.target!r}: it is cancelled, or was never written"
                raise NoSuchFile(message, path=self.target)
        return self.ticket

    def discard(self) -> None:
        self.storage.cancel(self.ticket, self.target)


class _Reader(RangeReader):
    """See `RangeReader`; a request for each range, and the answer to it comes from a data node."""

    def __init__(self, hdfs: HdfsClient, place: str, size: int) -> None:
        self._hdfs = hdfs
        self._place = place
        begin = max(0, size - FIRST_BYTES)
        super().__init__(Block(self.fetch(begin, size) if size else b"", begin, size))

    def fetch(self, begin: int, end: int) -> bytes:
        """See `RangeReader.fetch`."""
        with reporting("read", self._place):  # Arrow calls damage what is an OSError without a number
            return self._hdfs.read(self._place, offset=begin, length=end - begin)


def _entry(name: str, status: HdfsStatus) -> Entry:
    version = "" if status.is_folder else f"{status.number} {status.size} {status.modified_ms}"
    return Entry(name, status.size, status.modified_ms, is_folder=status.is_folder, version=version)
