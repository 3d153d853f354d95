"""What locks and tables ask of an HDFS, however its name nodes are reached."""

from __future__ import annotations

import errno
import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["HdfsClient", "HdfsOutput", "HdfsStatus", "make_hdfs_error"]

_ERRNOS: Final = {
    "AccessControlException": errno.EACCES,
    "AlreadyBeingCreatedException": errno.EEXIST,
    "AuthorizationException": errno.EACCES,
    "DSQuotaExceededException": errno.EDQUOT,
    "FileAlreadyExistsException": errno.EEXIST,
    "FileNotFoundException": errno.ENOENT,
    "NSQuotaExceededException": errno.EDQUOT,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "SecurityException": errno.EACCES,
}


@dataclass(frozen=True)
class HdfsStatus:
    """What the name node knows of a file or folder.

    Attributes:
        name: In its folder; empty where it was asked for by its whole path.
        size: In bytes; 0 of a folder.
        modified_ms: The name node's time, ms since the epoch.
        is_folder: Whether it is one.
        number: Which HDFS gives it when it is made, and which it keeps when it is moved; 0 if the client is not told.
    """

    name: str
    size: int
    modified_ms: int
    is_folder: bool
    number: int


class HdfsOutput(io.RawIOBase, ABC):
    """A file that is written to data nodes, piece by piece.

    Args:
        path: Of the file, for messages.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._at = 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """How many bytes were written."""
        return self._at

    def write(self, data: Any) -> int:
        """Send a piece."""
        piece = memoryview(data).cast("B")
        if len(piece):
            self._send(piece)
            self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        """End the file; it is whole where this raises nothing."""
        if self.closed:
            return
        try:
            self._end()
        finally:
            super().close()

    @abstractmethod
    def _send(self, piece: memoryview) -> None:
        """Send some bytes."""

    @abstractmethod
    def _end(self) -> None:
        """Say that there are no more, and hear that they arrived."""


class HdfsClient(ABC):
    """One HDFS. Thread-safe.

    Every call raises `OSError`, of the class that a local file system would give where there is one, and with its errno
    where that says all there is to say. Paths begin with a slash.
    """

    @abstractmethod
    def create(self, path: str, data: bytes) -> None:
        """Make a file, and the folders above it; `FileExistsError` if the name is taken."""

    @abstractmethod
    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """The content of a file, or a part of it, which lies within it."""

    @abstractmethod
    def open_output(self, path: str) -> HdfsOutput:
        """Where the bytes of a file go, piece by piece; one that is there is replaced. The caller closes it."""

    @abstractmethod
    def find_status(self, path: str) -> HdfsStatus | None:
        """What the name node knows of a file or folder; None if there is none."""

    @abstractmethod
    def move(self, path: str, to: str, *, replaces: bool = False) -> None:
        """Give a file or folder another name, in one step.

        With an option, which the file system calls strict: else a folder of that name would swallow it.

        Args:
            path: What is there.
            to: Its new name.
            replaces: Whether a file of that name goes.

        Raises:
            FileExistsError: The name is taken.
            FileNotFoundError: Nothing is there, or the folder of the new name is not. A client that asks again where an
                answer was lost tells this of a move that was made, too.
        """

    @abstractmethod
    def delete(self, path: str, *, recursive: bool = True) -> bool:
        """Remove a file, or a folder with all that is in it; False if there is none."""

    @abstractmethod
    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file."""

    @abstractmethod
    def make_folders(self, path: str) -> None:
        """Make a folder and those above it; quiet if it is there."""

    @abstractmethod
    def list_statuses(self, path: str) -> list[HdfsStatus]:
        """What the name node knows of all that lies in a folder; of a file of that name, of itself."""

    @abstractmethod
    def now_ms(self) -> int:
        """The name node's clock, ms since the epoch; it is asked only where it told no time for half a minute."""

    def list_names(self, path: str) -> list[str]:
        """What lies in a folder."""
        return [status.name for status in self.list_statuses(path)]

    def rename(self, path: str, to: str) -> bool:
        """Give a file or folder another name; False if there is none, or if the other name is taken."""
        try:
            self.move(path, to)
        except (FileNotFoundError, FileExistsError):
            return False
        return True


def make_hdfs_error(kind: str, message: str, path: str) -> OSError:
    """What the name node said is kept, where no errno says as much: who lacks which right, and why it is not ready.

    Args:
        kind: The Java exception, without its package; empty where none was told.
        message: Its first line.
        path: What was asked for.
    """
    number = _ERRNOS.get(kind)
    if number == errno.EACCES:
        return PermissionError(message)
    if number is None:
        return OSError(f"{kind}: {message}" if kind else message)
    return OSError(number, f"{kind}: {message}", path)
