"""Lock files on HDFS, through WebHDFS.

A file is written under a name of its own and moved to the lock's: the name node moves in one step, and never onto a
name that is taken. So the file appears whole, and an attempt that breaks off leaves the lock's name free, where a file
created in place would stay behind empty. HDFS gives every file a number that it keeps when it moves; it tells for
certain whether the file under the name is the one that was made.

An expired file is moved to a grave that is called by its number, and stays there for a while: of several contenders
that judged the same file only one can move it, and a late one does not move the file that came after it.
"""

from __future__ import annotations

import contextlib
import errno
import posixpath
import uuid
from collections.abc import Callable
from typing import Final

from hudi_locks_providers._files.lock_file import Found, LockFile, LockFolder
from hudi_locks_providers._files.webhdfs import WebHdfs

__all__ = ["HdfsLockFile", "HdfsLockFolder"]

_GRAVES_KEPT: Final = 100
_BY_NUMBER: Final = "/.reserved/.inodes"
"""Where HDFS shows each file under its number, wherever it has been moved."""


class HdfsLockFile(LockFile):
    """See `LockFile`; a grip is the file's number."""

    def __init__(self, hdfs: WebHdfs, path: str, graves: str) -> None:
        self.path = path
        self._hdfs = hdfs
        self._graves = graves

    def create(self, data: bytes, modified_ms: int | None) -> int | None:
        """See `LockFile.create`; asked about first, since others poll a lock that is taken."""
        if self._hdfs.find_status(self.path) is not None:
            return None
        away = f"{self.path}.{uuid.uuid4().hex}"
        try:
            return self._create(away, data, modified_ms)
        except BaseException:
            self._remove_quietly(away)
            raise

    def _create(self, away: str, data: bytes, modified_ms: int | None) -> int | None:
        self._hdfs.create(away, data)  # makes the folders too
        if modified_ms is not None:
            self._hdfs.set_modified(away, modified_ms)
        made = self._hdfs.find_status(away)
        if made is None:
            raise OSError(f"{away} is gone right after it was made")
        grip = made.number
        if self._move(away, grip):
            return grip
        self._hdfs.delete(away)
        return None

    def _move(self, away: str, grip: int) -> bool:
        """Whether the name is ours now, also where the answer to the move was lost."""
        try:
            return self._hdfs.rename(away, self.path)
        except OSError:
            if self.is_ours(grip):
                return True
            raise

    def _remove_quietly(self, away: str) -> None:
        try:
            self._hdfs.delete(away)
        except OSError:
            return  # the first error is the one to tell

    def is_ours(self, grip: int) -> bool | None:
        """See `LockFile.is_ours`."""
        status = self._hdfs.find_status(self.path)
        return None if status is None else status.number == grip

    def touch(self, grip: int, modified_ms: int) -> None:
        """See `LockFile.touch`; by the file's number, so that no file which came under the name since is touched."""
        if self.is_ours(grip):
            with contextlib.suppress(FileNotFoundError):
                self._hdfs.set_modified(f"{_BY_NUMBER}/{grip}", modified_ms)

    def remove_own(self, grip: int, *, contended: bool) -> None:
        """See `LockFile.remove_own`."""
        if not self.is_ours(grip):
            return
        if contended:
            self._bury(grip)
        else:
            self._hdfs.delete(self.path)

    def find(self) -> Found | None:
        """See `LockFile.find`."""
        return self._find(self.path)

    def _find(self, path: str) -> Found | None:
        status = self._hdfs.find_status(path)
        if status is None:
            return None
        if status.is_folder:
            raise IsADirectoryError(errno.EISDIR, "a folder lies where the lock file belongs", path)
        try:
            data = self._hdfs.read(path)
        except FileNotFoundError:
            return None
        return Found(data, status.modified_ms, (status.number, status.modified_ms))

    def remove_found(self, found: Found, still: Callable[[Found], bool]) -> bool:
        """See `LockFile.remove_found`."""
        seen = self.find()
        if seen is None or seen.identity != found.identity or not still(seen):
            return False
        return self._bury(found.identity[0], found.modified_ms)

    def _bury(self, number: int, modified_ms: int | None = None) -> bool:
        """Move the file of that number to its grave; one that shows another sign of life there is put back."""
        grave = f"{self._graves}/{number}"
        self._prune()
        if not self._hdfs.rename(self.path, grave):
            return False
        status = self._hdfs.find_status(grave)
        if status is not None and status.number == number and modified_ms in (None, status.modified_ms):
            return True
        self._hdfs.rename(grave, self.path)
        return False

    def _prune(self) -> None:
        """Make the folder of graves, and remove old ones; numbers grow, so the smallest are the oldest."""
        self._hdfs.make_folders(self._graves)
        numbers = sorted(int(name) for name in self._hdfs.list_names(self._graves) if name.isdigit())
        for number in numbers[:-_GRAVES_KEPT]:
            self._hdfs.delete(f"{self._graves}/{number}")


class HdfsLockFolder(LockFolder):
    """See `LockFolder`."""

    def __init__(self, hdfs: WebHdfs, path: str) -> None:
        self.hdfs = hdfs
        self._path = posixpath.normpath(f"/{path.strip('/')}")
        self._tokens = f"{self._path}/.hudi_locks/tokens"
        self._last: int | None = None

    def lock_file(self, name: str) -> HdfsLockFile:
        """See `LockFolder.lock_file`."""
        return HdfsLockFile(self.hdfs, f"{self._path}/{name}", f"{self._path}/.hudi_locks/expired")

    def is_there(self) -> bool:
        """See `LockFolder.is_there`."""
        status = self.hdfs.find_status(self._path)
        return status is not None and status.is_folder

    def make(self) -> None:
        """See `LockFolder.make`."""
        self.hdfs.make_folders(self._path)

    def list_names(self, folder: str) -> list[str]:
        """See `LockFolder.list_names`."""
        with contextlib.suppress(FileNotFoundError):
            return self.hdfs.list_names(f"{self._path}/{folder}")
        return []

    def next_token(self, floor: int) -> int:
        """See `LockFolder.next_token`: one empty file whose name is the number; moving it to the next is the step."""
        while True:
            last = self._find_last(floor) if self._last is None else self._last
            self._last = None
            if self.hdfs.rename(self._token_path(last), self._token_path(last + 1)):
                self._last = last + 1
                return last + 1

    def _find_last(self, floor: int) -> int:
        while True:
            try:
                numbers = [int(name) for name in self.hdfs.list_names(self._tokens) if name.isdigit()]
            except FileNotFoundError:
                self._begin(floor)
                continue
            if numbers:
                return max(numbers)
            self._remove_empty()

    def _begin(self, number: int) -> None:
        """Make the folder whole, with its file in it: one made in two steps could begin again from an old number."""
        fresh = f"{self._tokens}.{uuid.uuid4().hex}"
        self.hdfs.create(f"{fresh}/{number:020d}", b"")
        if not self.hdfs.rename(fresh, self._tokens):
            self.hdfs.delete(fresh)

    def _remove_empty(self) -> None:
        try:
            self.hdfs.delete(self._tokens, recursive=False)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise

    def _token_path(self, number: int) -> str:
        return f"{self._tokens}/{number:020d}"
