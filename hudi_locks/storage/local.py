"""Files on a local or mounted POSIX file system.

Symbolic links in a table's folder may lead anywhere, so nothing is listed or removed behind them. Whoever may write to
the table can make one at any moment: this keeps from accidents, and is no wall against an attacker on the machine.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import uuid
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from hudi_locks.clock import SystemClock
from hudi_locks.errors import StorageError
from hudi_locks.storage import posix
from hudi_locks.storage.staged import TICKETS_FOLDER, StagedFile
from hudi_locks.storage.storage import Entry, Storage, StorageCapabilities, reporting

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["LocalStorage"]

_MOST_REPORTED: Final = 4_096
_log = logging.getLogger(__name__)

_PATIENCE_S: Final = 0.005
_AT_ONCE_S: Final = 0.0005
"""A disk lists a folder in 0.1 ms, and a mounted file system may ask a server; a thread costs 0.3 ms."""
_clock: Final = SystemClock()
_STAGING = ".hoodie/.hudi_locks/tmp"
"""Half-written files wait here: JVM readers take every child of the timeline and marker folders for one of theirs."""
_TICKET: Final = re.compile(r"[^/]+/[0-9a-f]{32}")


def _leads_out(root: str, path: str) -> bool:
    """Whether a folder on the way to `path`, below `root`, is a symbolic link out of it."""
    place = root
    for name in path.split("/") if path else ():
        place = f"{place}/{name}"
        if os.path.islink(place) and not _is_inside(root, place):  # a Path costs ten times as much
            _report(place)
            return True
    return False


def _without_links(folder: str) -> Iterator[os.DirEntry[str]]:
    """What is in a folder, symbolic links left out and reported."""
    with os.scandir(folder) as children:
        for child in children:
            if child.is_symlink():
                _report(child.path)
            else:
                yield child


def _is_inside(root: str, place: str) -> bool:
    base = os.path.realpath(root)
    return os.path.commonpath([base, os.path.realpath(place)]) == base


@lru_cache(_MOST_REPORTED)
def _report(place: str) -> None:
    """Once for each."""
    _log.warning("%s is a symbolic link: nothing behind it is listed or removed", place)


def _describe_child(child: os.DirEntry[str]) -> Entry | None:
    """The entry of a child; None if it is gone."""
    try:
        return _describe(child.name, child.stat())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _describe(name: str, found: os.stat_result) -> Entry:
    """What a storage tells of a file or folder."""
    modified_ms = found.st_mtime_ns // 1_000_000
    if stat.S_ISDIR(found.st_mode):
        return Entry(name, 0, modified_ms, is_folder=True)
    version = f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
    return Entry(name, found.st_size, modified_ms, is_folder=False, version=version)


class LocalStorage(Storage):
    """A folder of this machine. Runs on the driver and on executors; picklable; thread-safe.

    Files with content are written to a staging folder, flushed to disk and then linked under their final name, so a
    crash leaves either nothing or the whole file. What a symbolic link below the root leads to is neither listed nor
    removed: the link itself is not listed, and to list a folder behind one that leads out of the table is refused. The
    `.crc` file that Hadoop keeps beside a file goes whenever the file changes, since a stale one makes the JVM refuse
    the file.

    Args:
        root: The table's base path as an absolute path of this machine.
        base: The same as the user wrote it; `root` if not given.
    """

    capabilities: StorageCapabilities = StorageCapabilities(
        conditional_create=True, tickets=True, renewal_in_place=True, ended_folders=True
    )

    def __init__(self, root: str, *, base: str | None = None) -> None:
        self._root = os.path.normpath(root)
        self.base: str = (base if base is not None else root).rstrip("/") or "/"

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    @property
    def place(self) -> Hashable:
        """See `Storage.place`: its folder."""
        return self._root

    def list_names(self, folder: str) -> list[str]:
        """See `Storage.list_names`."""
        with reporting("list", folder):
            if _leads_out(self._root, folder):
                raise self._refuse_link(folder)
            try:
                return [child.name for child in _without_links(self._locate(folder))]
            except FileNotFoundError:
                return []

    def list(self, folder: str) -> list[Entry]:
        """See `Storage.list`."""
        with reporting("list", folder):
            if _leads_out(self._root, folder):
                raise self._refuse_link(folder)
            try:
                children = _without_links(self._locate(folder))
                entries = [entry for child in children if (entry := _describe_child(child))]
            except FileNotFoundError:
                return []
        return sorted(entries, key=lambda entry: entry.name)

    def list_each(self, folders: Iterable[str]) -> Sequence[Sequence[Entry]]:
        """See `Storage.list_each`: one by one for as long as the system answers at once, which threads would delay."""
        left, begun_s = deque(folders), _clock.monotonic()
        listed: deque[Sequence[Entry]] = deque()
        while left and _clock.monotonic() - begun_s <= _PATIENCE_S + _AT_ONCE_S * len(listed):
            listed.append(self.list(left.popleft()))
        return [*listed, *super().list_each(left)]

    def read(self, path: str) -> bytes | None:
        """See `Storage.read`."""
        with reporting("read", path):
            try:
                with open(self._locate(path), "rb", buffering=0) as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def stat(self, path: str) -> Entry | None:
        """See `Storage.stat`."""
        with reporting("look at", path):
            try:
                return _describe(path.rpartition("/")[2], os.stat(self._locate(path)))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def exists(self, path: str) -> bool:
        """See `Storage.exists`."""
        with reporting("look at", path):
            try:
                os.stat(self._locate(path))
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """See `Storage.create_if_absent`. An empty file needs no staging: its name is all of it."""
        if not data:
            return path in self.create_empty([path])
        with reporting("create", path), self._staged(data) as staged:
            return self._link(staged, self._locate(path))

    def create_empty(self, paths: Sequence[str]) -> set[str]:
        """See `Storage.create_empty`: each folder is flushed once."""
        made: set[str] = set()
        for path in paths:
            with reporting("create", path):
                if posix.create_empty(self._locate(path)):
                    made.add(path)
        for folder in {path.rpartition("/")[0] for path in paths}:
            with reporting("flush", folder):
                posix.flush_names(self._locate(folder))
        return made

    def create_transient(self, path: str, data: bytes) -> bool:
        """See `Storage.create_transient`: nothing is flushed to disk."""
        with reporting("create", path):
            target = self._locate(path)
            if not data:
                return posix.create_empty(target)
            with self._staged(data, durable=False) as staged:
                return posix.link(staged, target)

    def replace(self, path: str, data: bytes) -> None:
        """See `Storage.replace`."""
        with reporting("replace", path), self._staged(data) as staged:
            target = self._locate(path)
            posix.make_parent(target)
            posix.remove_checksum(target)
            os.replace(staged, target)
            posix.flush_names(os.path.dirname(target))

    def touch(self, path: str) -> bool:
        """See `Storage.touch`."""
        with reporting("touch", path):
            try:
                os.utime(self._locate(path))
            except FileNotFoundError:
                return False
            return True

    def set_modified(self, path: str, modified_ms: int) -> bool:
        """See `Storage.set_modified`."""
        with reporting("date", path):
            try:
                os.utime(self._locate(path), ns=(modified_ms * 1_000_000,) * 2)
            except FileNotFoundError:
                return False
            return True

    def move_if_absent(self, source: str, target: str) -> bool:
        """See `Storage.move_if_absent`. False if another attempt took `source` away and `target` is there."""
        with reporting("move to", target):
            old, new = self._locate(source), self._locate(target)
            if os.path.exists(old):
                posix.flush(old)  # else a power failure could leave the name without bytes, and a commit counts on it
            if not self._link(old, new):
                return False
            posix.remove_checksum(old)
            posix.remove(old)
            return True

    def stage(self, target: str, *, instant: str) -> StagedFile:
        """See `Storage.stage`: a file aside, which `redeem` gives its name and `cancel` removes."""
        return _LocalFile(self, target, f"{instant}/{uuid.uuid4().hex}")

    def redeem(self, ticket: str, target: str) -> bool:
        """See `Storage.redeem`. The second name comes before the first goes, so the file has one at any moment.

        A process that dies between the two leaves both names for one inode; the next call removes the first.
        """
        with reporting("name", target):
            staged, named = self._locate_staged(ticket), self._locate(target)
            try:
                is_named = posix.link(staged, named) or posix.is_same_file(staged, named)
            except FileNotFoundError:
                return False
            posix.remove(staged)
            return is_named

    def cancel(self, ticket: str, target: str) -> None:
        """See `Storage.cancel`. The kernel links no file that was unlinked everywhere."""
        with reporting("cancel", target):
            posix.remove(self._locate_staged(ticket))

    def list_staged(self) -> set[str]:
        """See `Storage.list_staged`."""
        return set(self.list_names(TICKETS_FOLDER))

    def cancel_staged(self, instants: Collection[str]) -> None:
        """See `Storage.cancel_staged`."""
        for instant in instants:
            self.delete_folder(f"{TICKETS_FOLDER}/{instant}")

    def flush(self, paths: Iterable[str]) -> None:
        """See `Storage.flush`: each folder once."""
        for folder in {path.rpartition("/")[0] for path in paths}:
            with reporting("flush", folder):
                posix.flush_names(self._locate(folder))

    def open_staged(self, ticket: str) -> pa.NativeFile:
        """Where the bytes of a staged file go; its folder is made."""
        import pyarrow as pa

        place = self._locate_staged(ticket)
        with reporting("write", f"{TICKETS_FOLDER}/{ticket}"):
            posix.make_parent(place)
            return pa.OSFile(place, "wb")

    def flush_staged(self, ticket: str) -> None:
        """Bring the bytes of a staged file to the disk.

        Raises:
            NoSuchFile: It is cancelled or lost.
        """
        with reporting("flush", f"{TICKETS_FOLDER}/{ticket}"):
            posix.flush(self._locate_staged(ticket))

    def _locate_staged(self, ticket: str) -> str:
        if not _TICKET.fullmatch(ticket):
            raise StorageError(f"{ticket!r} is no ticket of {self!r}", path=ticket)
        return self._locate(f"{TICKETS_FOLDER}/{ticket}")

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        with reporting("delete", path):
            target = self._locate(path)
            if _leads_out(self._root, path.rpartition("/")[0]):
                return False
            posix.remove_checksum(target)
            return posix.remove(target)

    def delete_folder(self, folder: str) -> None:
        """See `Storage.delete_folder`. The kernel links no file that was unlinked everywhere."""
        target = self._locate(folder)
        with reporting("delete", folder):
            if os.path.islink(target):
                posix.remove(target)
            if _leads_out(self._root, folder):
                return
            while os.path.lexists(target):
                posix.remove_tree(target)

    def make_folder(self, folder: str) -> None:
        """See `Storage.make_folder`."""
        with reporting("make the folder", folder):
            os.makedirs(self._locate(folder), exist_ok=True)

    def open_input(self, path: str) -> pa.NativeFile:
        """See `Storage.open_input`. Not mapped: a disk that fails is an error then, and no signal that ends Python."""
        import pyarrow as pa

        with reporting("open", path):
            return pa.OSFile(self._locate(path))

    def address(self, path: str) -> str:
        """See `Storage.address`: a plain absolute path."""
        return self._locate(path)

    def now_ms(self) -> int:
        """See `Storage.now_ms`: the stamp of a file made for the purpose."""
        with reporting("stamp a file in", _STAGING), self._staged(b"", durable=False) as staged:
            return os.stat(staged).st_mtime_ns // 1_000_000

    def _link(self, source: str, target: str) -> bool:
        """Give a file a second name for good; False if that is taken."""
        is_made = posix.link(source, target)
        if is_made:
            posix.flush_names(os.path.dirname(target))
        return is_made

    def _refuse_link(self, folder: str) -> StorageError:
        """To show nothing would hide rows of whoever put the link there on purpose."""
        found = f"{folder!r} is behind a symbolic link out of the table at {self._root}"
        return StorageError(f"{found}: mount, or move, the folder there", path=folder)

    def _locate(self, path: str) -> str:
        if path.startswith("/") or ".." in path.split("/"):
            raise StorageError(f"{path!r} leads out of the table at {self.base}", path=path)
        return f"{self._root}/{path}" if path else self._root

    @contextmanager
    def _staged(self, data: bytes, *, durable: bool = True) -> Iterator[str]:
        staged = f"{self._root}/{_STAGING}/{uuid.uuid4().hex}"
        try:
            with posix.create(staged) as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            yield staged
        finally:
            posix.remove(staged)


@dataclass(frozen=True)
class _LocalFile(StagedFile):
    """See `StagedFile`."""

    storage: LocalStorage
    target: str
    ticket: str

    def open(self) -> pa.NativeFile:
        return self.storage.open_staged(self.ticket)

    def seal(self) -> str:
        self.storage.flush_staged(self.ticket)
        return self.ticket

    def discard(self) -> None:
        self.storage.cancel(self.ticket, self.target)
