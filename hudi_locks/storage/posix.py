"""Calls to a POSIX file system, by absolute paths, as a storage on a disk combines them."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
from collections.abc import Iterator
from functools import lru_cache
from typing import BinaryIO, Final

from hudi_locks.storage.storage import Entry

__all__ = [
    "create",
    "create_empty",
    "describe",
    "describe_child",
    "flush",
    "flush_names",
    "is_same_file",
    "leads_out",
    "link",
    "make_parent",
    "remove",
    "remove_checksum",
    "remove_tree",
    "without_links",
]

_MOST_REPORTED: Final = 4_096
_MOST_KNOWN: Final = 10_000
_NO_FILE: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_log = logging.getLogger(__name__)
_known: dict[str, int] = {}
"""Folders whose own names this process has brought to the disk, with their inode numbers; emptied when full."""


def leads_out(root: str, path: str) -> bool:
    """Whether a folder on the way to `path`, below `root`, is a symbolic link out of it."""
    place = root
    for name in path.split("/") if path else ():
        place = f"{place}/{name}"
        if os.path.islink(place) and not _is_inside(root, place):  # a Path costs ten times as much
            _report(place)
            return True
    return False


def without_links(folder: str) -> Iterator[os.DirEntry[str]]:
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


def describe_child(child: os.DirEntry[str]) -> Entry | None:
    """The entry of a child; None if it is gone."""
    try:
        return describe(child.name, child.stat())
    except (FileNotFoundError, NotADirectoryError):
        return None


def describe(name: str, found: os.stat_result) -> Entry:
    """What a storage tells of a file or folder."""
    modified_ms = found.st_mtime_ns // 1_000_000
    if stat.S_ISDIR(found.st_mode):
        return Entry(name, 0, modified_ms, is_folder=True)
    version = f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
    return Entry(name, found.st_size, modified_ms, is_folder=False, version=version)


def create(target: str) -> BinaryIO:
    """A new file to write to, and the folders above it."""
    try:
        return open(target, "xb")
    except FileNotFoundError:
        make_parent(target)
        return open(target, "xb")


def create_empty(target: str) -> bool:
    """By the bare call: a file object for nothing would cost as much again."""
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
    except FileExistsError:
        return False
    except FileNotFoundError:
        make_parent(target)
        return create_empty(target)
    remove_checksum(target)
    return True


def link(source: str, target: str) -> bool:
    """Give a file a second name; False if that is taken, FileNotFoundError if the file is not there."""
    if not _try_link(source, target):
        return False
    remove_checksum(target)
    return True


def _try_link(source: str, target: str) -> bool:
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    except FileNotFoundError:
        if os.path.exists(target):
            return False
        if not os.path.exists(source):
            raise
        make_parent(target)
        return _try_link(source, target)
    return True


def is_same_file(source: str, target: str) -> bool:
    """Whether two names are there and are those of one file."""
    try:
        return os.path.samestat(os.stat(source), os.stat(target))
    except FileNotFoundError:
        return False


def make_parent(target: str) -> None:
    """Make the folder of a file, and those above it."""
    folder = missing = os.path.dirname(target)
    while not os.path.isdir(missing):
        _known.pop(missing, None)
        missing = os.path.dirname(missing)
    os.makedirs(folder, exist_ok=True)


def remove(target: str) -> bool:
    """Unlink a file; False if it was not there."""
    try:
        os.unlink(target)
    except _NO_FILE:
        return False
    return True


def remove_tree(target: str) -> None:
    """As far as nobody else removes parts of it, or makes new ones, at the same time."""
    try:
        shutil.rmtree(target)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def remove_checksum(target: str) -> None:
    """Take away what Hadoop keeps beside a file; a question costs half as much as a removal in vain."""
    folder, _, name = target.rpartition("/")
    checksum = f"{folder}/.{name}.crc"
    if os.access(checksum, os.F_OK):
        remove(checksum)


def flush(target: str) -> int:
    """Bring a file's bytes, or a folder's names, to the disk, whoever wrote them; its inode number."""
    handle = os.open(target, os.O_RDONLY)
    try:
        os.fsync(handle)
        return os.fstat(handle).st_ino
    finally:
        os.close(handle)


def flush_names(folder: str) -> None:
    """Bring the names in a folder to the disk, and its own name: whoever made it perhaps did not wait for that."""
    try:
        inode = flush(folder)
    except PermissionError:
        return  # above the table, and there before it
    if _known.get(folder) == inode or folder == "/":
        return
    flush_names(os.path.dirname(folder))
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[folder] = inode
