"""Lock files on a file system of this machine, or mounted on it.

A hold keeps its file open, so that its inode cannot be given to another file: comparing inodes tells for certain
whether the file under the name is still the one that was made.
"""

from __future__ import annotations

import errno
import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from hudi_locks_providers._files.lock_file import Found, LockFile, LockFolder
from hudi_locks_providers._files.tokens import LocalTokens

__all__ = ["LocalLockFile", "LocalLockFolder", "link"]

_NANOS_PER_MS: Final = 1_000_000
_O_TMPFILE: Final = getattr(os, "O_TMPFILE", 0)
_NO_TMPFILE: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.EXDEV})
_NO_FLOCK: Final = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})


class _Grip(NamedTuple):
    fd: int
    device: int
    inode: int


class LocalLockFile(LockFile):
    """See `LockFile`.

    Args:
        path: Where it lies.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = os.path.dirname(path)  # noqa: PTH120  # plain strings: a lock cycle is a few microseconds

    def create(self, data: bytes, modified_ms: int | None) -> _Grip | None:
        """See `LockFile.create`: written under no name, or another one, and linked to its own."""
        try:
            return self._create(data, modified_ms)
        except FileNotFoundError:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
            return self._create(data, modified_ms)

    def _create(self, data: bytes, modified_ms: int | None) -> _Grip | None:
        fd, name = _open_unnamed(self._folder)
        try:
            os.write(fd, data)
            if modified_ms is not None:
                _set_modified(fd, modified_ms)
            link(fd, name, self.path)
        except OSError as error:
            return self._settle(_grip(fd), error)
        except BaseException:
            os.close(fd)
            raise
        finally:
            if name:
                os.unlink(name)  # noqa: PTH108
        return _grip(fd)

    def _settle(self, grip: _Grip, error: OSError) -> _Grip | None:
        """What a failed create came to: over a network the file may have been made and only the answer lost."""
        try:
            if self.is_ours(grip):
                return grip
        except OSError:
            os.close(grip.fd)
            raise
        os.close(grip.fd)
        if isinstance(error, FileExistsError):
            return None
        raise error

    def is_ours(self, grip: _Grip) -> bool | None:
        """See `LockFile.is_ours`."""
        try:
            seen = os.stat(self.path, follow_symlinks=False)  # noqa: PTH116
        except FileNotFoundError:
            return None
        return seen.st_ino == grip.inode and seen.st_dev == grip.device

    def touch(self, grip: _Grip, modified_ms: int) -> None:
        """See `LockFile.touch`."""
        _set_modified(grip.fd, modified_ms)

    def remove_own(self, grip: _Grip, *, contended: bool) -> None:
        """See `LockFile.remove_own`."""
        if contended:
            with _flocked(grip.fd):
                self._remove_own(grip)
        else:
            self._remove_own(grip)
        os.close(grip.fd)  # not if that failed: while it is open, no other file can have its inode

    def _remove_own(self, grip: _Grip) -> None:
        if self.is_ours(grip):
            os.unlink(self.path)  # noqa: PTH108

    def find(self) -> Found | None:
        """See `LockFile.find`."""
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return _found(fd)
        finally:
            os.close(fd)

    def remove_found(self, found: Found, still: Callable[[Found], bool]) -> bool:
        """See `LockFile.remove_found`.

        Takers of our own kind, and a holder that releases, exclude each other by `flock` on the file itself: a taker
        that finds it locked leaves the file to the other one. Against all others it is moved to a name of its own
        first and looked at again there; a file that is not the one meant goes back.
        """
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            with _flocked(fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
                return self._remove_flocked(fd, found, still)
        except BlockingIOError:
            return False
        finally:
            os.close(fd)

    def _remove_flocked(self, fd: int, found: Found, still: Callable[[Found], bool]) -> bool:
        seen = _found(fd)
        if seen != found or not self.is_ours(_grip(fd)) or not still(seen):
            return False
        away = f"{self.path}.{uuid.uuid4().hex}"
        try:
            os.rename(self.path, away)  # noqa: PTH104
        except FileNotFoundError:
            return False
        moved = LocalLockFile(away)
        meant = moved.is_ours(_grip(fd)) and _found(fd) == found
        if not meant:
            _put_back(away, self.path)
        os.unlink(away)  # noqa: PTH108
        if meant:
            self._remove_checksum()
        return bool(meant)

    def _remove_checksum(self) -> None:
        """Hadoop keeps a checksum beside each local file; left there, it would make the next file unreadable to it."""
        Path(self._folder, f".{Path(self.path).name}.crc").unlink(missing_ok=True)


class LocalLockFolder(LockFolder):
    """See `LockFolder`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._tokens = LocalTokens(f"{path}/.hudi_locks/tokens")

    def lock_file(self, name: str) -> LocalLockFile:
        """See `LockFolder.lock_file`."""
        return LocalLockFile(f"{self._path}/{name}")

    def is_there(self) -> bool:
        """See `LockFolder.is_there`."""
        return Path(self._path).is_dir()

    def make(self) -> None:
        """See `LockFolder.make`."""
        Path(self._path).mkdir(parents=True, exist_ok=True)

    def list_names(self, folder: str) -> list[str]:
        """See `LockFolder.list_names`."""
        with suppress(FileNotFoundError):
            return os.listdir(f"{self._path}/{folder}")  # noqa: PTH208  # as quick as looking at one file
        return []

    def next_token(self, floor: int) -> int:
        """See `LockFolder.next_token`."""
        return self._tokens.advance(floor)


def _open_unnamed(folder: str) -> tuple[int, str]:
    """A new file and its name: "" where the file system can make files without one, which no crash leaves behind."""
    if _O_TMPFILE:
        try:
            return os.open(folder, _O_TMPFILE | os.O_WRONLY, 0o666), ""
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
    name = f"{folder}/.lock.{uuid.uuid4().hex}"
    return os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), name


def link(fd: int, name: str, path: str) -> None:
    """Give an open file its name; fails if the name is taken."""
    if name:
        os.link(name, path)
    else:
        os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd, follow_symlinks=True)  # the descriptor asks for linkat


def _put_back(away: str, path: str) -> None:
    """Undo a move that met a newer file; if there is a still newer one, that one stays."""
    try:
        os.link(away, path)
    except FileExistsError:
        return


def _set_modified(fd: int, modified_ms: int) -> None:
    os.utime(fd, ns=(modified_ms * _NANOS_PER_MS,) * 2)


def _grip(fd: int) -> _Grip:
    seen = os.fstat(fd)
    return _Grip(fd, seen.st_dev, seen.st_ino)


def _found(fd: int) -> Found:
    seen = os.fstat(fd)
    data = os.pread(fd, max(seen.st_size, 1), 0)
    return Found(data, seen.st_mtime_ns // _NANOS_PER_MS, (seen.st_dev, seen.st_ino, seen.st_mtime_ns))


@contextmanager
def _flocked(fd: int, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the advisory lock of a file, where the file system has such; those who take over files do.

    Raises:
        BlockingIOError: Somebody else holds it, and `how` says not to wait.
    """
    try:
        fcntl.flock(fd, how)
    except OSError as error:
        if error.errno not in _NO_FLOCK:
            raise
    yield  # closing the descriptor lets go of it
