"""Calls to a POSIX file system, by absolute paths, as a storage on a disk combines them."""

from __future__ import annotations

import errno
import os
import shutil
from typing import BinaryIO, Final

__all__ = [
    "create",
    "create_empty",
    "flush",
    "flush_names",
    "is_same_file",
    "link",
    "make_parent",
    "remove",
    "remove_checksum",
    "remove_tree",
]

_MOST_KNOWN: Final = 10_000
_NO_FILE: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_NO_LINKS: Final = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)
_LINKLESS: Final = (
    "its file system makes no hard link ({}), by which a file gets its name at once and once only: a bucket that is"
    " mounted (s3fs, gcsfuse, rclone and the like) makes none; give the address of the bucket itself, such as"
    " s3://bucket/path"
)
_known: dict[str, int] = {}
"""Folders whose own names this process has brought to the disk, with their inode numbers; emptied when full."""


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
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise OSError(_LINKLESS.format(error.strerror)) from error
        raise
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
