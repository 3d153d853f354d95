"""Lock files on a file system that fsspec reaches, such as HDFS.

fsspec offers no exclusive create that holds everywhere, so a file is written under a name of its own and moved; HDFS
does not move onto a file that exists. What counts is neither answer nor error of the move, but what is read back.
"""

from __future__ import annotations

import contextlib
import errno
import posixpath
import threading
import uuid
from collections.abc import Callable
from typing import Any, Final

import fsspec

from hudi_locks.lock.lease import generation
from hudi_locks_providers._files.lock_file import Found, LockFile, LockFolder

__all__ = ["MOVING_SCHEMES", "Opened", "RemoteLockFile", "RemoteLockFolder"]

MOVING_SCHEMES: Final = frozenset({"hdfs", "viewfs", "dfs", "hopsfs", "webhdfs"})
"""Schemes on which a move never replaces; on all others the file is opened with mode "xb"."""

_SSH_SCHEMES: Final = ("sftp:", "ssh:")
"""paramiko opens a file for writing only where the mode holds a w; with the x it is exclusive all the same."""


class Opened:
    """A file system of fsspec's, opened by each thread for itself: over SFTP threads take each other's answers.

    Attributes:
        path: The path within it that the address names.
        exclusive_mode: How a file is opened that must not be there.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.exclusive_mode = "wxb" if url.startswith(_SSH_SCHEMES) else "xb"
        self._local = threading.local()
        _, self.path = self._open()

    @property
    def fs(self) -> Any:
        """That of the calling thread."""
        return self._open()[0]

    def _open(self) -> tuple[Any, str]:
        found: tuple[int, tuple[Any, str]] | None = getattr(self._local, "found", None)
        if found is None or found[0] != generation():
            found = self._local.found = (generation(), fsspec.core.url_to_fs(self._url))
        return found[1]


class RemoteLockFile(LockFile):
    """See `LockFile`; a grip is the content, which no other hold has."""

    def __init__(self, opened: Opened, path: str, *, moves: bool) -> None:
        self.path = path
        self._opened = opened
        self._moves = moves

    @property
    def _fs(self) -> Any:
        return self._opened.fs

    def create(self, data: bytes, modified_ms: int | None) -> bytes | None:  # noqa: ARG002  # the contract's signature
        """See `LockFile.create`; the store stamps the file itself."""
        if self._fs.exists(self.path):
            return None
        self._fs.makedirs(posixpath.dirname(self.path), exist_ok=True)
        (self._create_by_move if self._moves else self._create_by_open)(data)
        return data if self.is_ours(data) else None

    def _create_by_move(self, data: bytes) -> None:
        away = f"{self.path}.{uuid.uuid4().hex}"
        self._fs.pipe_file(away, data)
        try:
            self._fs.mv(away, self.path)
        except OSError:
            if not self._fs.exists(self.path):
                raise
        finally:
            if self._fs.exists(away):
                self._fs.rm_file(away)

    def _create_by_open(self, data: bytes) -> None:
        try:
            file = self._fs.open(self.path, self._opened.exclusive_mode)
        except OSError:
            if not self._fs.exists(self.path):  # SFTP has no error of its own for a name that is taken
                raise
            return
        try:
            with file:
                file.write(data)
        except BaseException:
            self._fs.rm_file(self.path)  # ours, for nobody else could make it
            raise

    def is_ours(self, grip: bytes) -> bool | None:
        """See `LockFile.is_ours`."""
        try:
            return bool(self._fs.cat_file(self.path) == grip)
        except FileNotFoundError:
            return None

    def touch(self, grip: bytes, modified_ms: int) -> None:  # noqa: ARG002  # the contract's signature
        """See `LockFile.touch`: rewritten, for fsspec cannot set times. Only while the lease is fresh."""
        if self.is_ours(grip):
            self._fs.pipe_file(self.path, grip)

    def remove_own(self, grip: bytes, *, contended: bool) -> None:
        """See `LockFile.remove_own`; what others may take over is moved first, and put back if it is another's."""
        if contended:
            found = self.find()
            if found is not None and found.data == grip:
                self.remove_found(found, lambda _: True)
        elif self.is_ours(grip):
            self._fs.rm_file(self.path)

    def find(self) -> Found | None:
        """See `LockFile.find`."""
        try:
            info = self._fs.info(self.path)
            if info["type"] == "directory":
                raise IsADirectoryError(errno.EISDIR, "a folder lies where the lock file belongs", self.path)
            modified_ms = int(self._fs.modified(self.path).timestamp() * 1000)
            data = bytes(self._fs.cat_file(self.path))
        except FileNotFoundError:
            return None
        return Found(data, modified_ms, (data, modified_ms))

    def remove_found(self, found: Found, still: Callable[[Found], bool]) -> bool:
        """See `LockFile.remove_found`: moved to a name of its own, looked at there, and put back if it is newer."""
        seen = self.find()
        if seen is None or seen != found or not still(seen):
            return False
        away = RemoteLockFile(self._opened, f"{self.path}.{uuid.uuid4().hex}", moves=self._moves)
        try:
            self._fs.mv(self.path, away.path)
        except FileNotFoundError:
            return False
        moved = away.find()
        if moved is None:
            return False
        if moved.data == found.data:
            self._fs.rm_file(away.path)
            return True
        self._put_back(away.path)
        return False

    def _put_back(self, away: str) -> None:
        if not self._fs.exists(self.path):
            self._fs.mv(away, self.path)


class RemoteLockFolder(LockFolder):
    """See `LockFolder`."""

    def __init__(self, url: str, scheme: str) -> None:
        self._opened = Opened(url)
        self._path = self._opened.path
        self._moves = scheme in MOVING_SCHEMES

    @property
    def _fs(self) -> Any:
        return self._opened.fs

    def lock_file(self, name: str) -> RemoteLockFile:
        """See `LockFolder.lock_file`."""
        return RemoteLockFile(self._opened, f"{self._path}/{name}", moves=self._moves)

    def is_there(self) -> bool:
        """See `LockFolder.is_there`."""
        return bool(self._fs.isdir(self._path))

    def make(self) -> None:
        """See `LockFolder.make`."""
        self._fs.makedirs(self._path, exist_ok=True)

    def list_names(self, folder: str) -> list[str]:
        """See `LockFolder.list_names`."""
        with contextlib.suppress(FileNotFoundError):
            return self._list(f"{self._path}/{folder}")
        return []

    def next_token(self, floor: int) -> int:  # noqa: ARG002  # the contract's signature
        """See `LockFolder.next_token`: a file for each number, made by one only; the last one stays."""
        folder = f"{self._path}/.hudi_locks/tokens"
        self._fs.makedirs(folder, exist_ok=True)
        while True:
            seen = self._numbers(folder)
            number = max(seen, default=0) + 1
            made = RemoteLockFile(self._opened, f"{folder}/{number:020d}", moves=self._moves).create(
                uuid.uuid4().hex.encode(), None
            )
            if made and max(self._numbers(folder)) == number:
                for old in seen:
                    self._fs.rm_file(f"{folder}/{old:020d}")
                return number

    def _numbers(self, folder: str) -> list[int]:
        return [int(name) for name in self._list(folder) if name.isdigit()]

    def _list(self, folder: str) -> list[str]:
        self._fs.invalidate_cache(folder)
        return [posixpath.basename(path) for path in self._fs.ls(folder, detail=False)]
