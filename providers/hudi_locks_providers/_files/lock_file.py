"""What the file-system provider needs of one lock file, wherever it lies."""

from __future__ import annotations

import errno
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from hudi_locks.errors import BackendRefused, BackendUnavailable, HudiLocksError
from hudi_locks_providers._files.native_hdfs import read_native_error

__all__ = ["Found", "LockFile", "LockFolder", "translate_errors"]

_FINAL_ERRNOS: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}
)


@dataclass(frozen=True)
class Found:
    """A lock file as it was seen: `identity` is another one for every file and every sign of life."""

    data: bytes
    modified_ms: int
    identity: Any


class LockFile(ABC):
    """One lock file. A *grip* is what `create` returns: the proof that this very file is ours."""

    path: str

    @functools.cached_property
    def translated(self) -> translate_errors:
        """A context in which failures of the file system become errors of a lock service that name this file."""
        return translate_errors(self.path)

    @abstractmethod
    def create(self, data: bytes, modified_ms: int | None) -> Any | None:
        """Make the file whole, with its folders; its grip, or None if the name is taken."""

    @abstractmethod
    def is_ours(self, grip: Any) -> bool | None:
        """Whether the file under the name is the one that was made; None if there is none."""

    @abstractmethod
    def touch(self, grip: Any, modified_ms: int) -> None:
        """Give the file that was made, and no other, a new modification time."""

    @abstractmethod
    def remove_own(self, grip: Any, *, contended: bool) -> None:
        """Remove the file if it is the one that was made, and let go of the grip, unless it fails.

        Args:
            grip: From `create`.
            contended: Whether somebody may be taking it over at this moment.
        """

    @abstractmethod
    def find(self) -> Found | None:
        """The file as it is now; None if there is none."""

    @abstractmethod
    def remove_found(self, found: Found, still: Callable[[Found], bool]) -> bool:
        """Remove the file if it is the one that was found and `still` says so of it; a newer one stays."""


class LockFolder(ABC):
    """The folder that lock files lie in, with its counter of tokens."""

    @abstractmethod
    def lock_file(self, name: str) -> LockFile:
        """The lock file of that name, below this folder."""

    @abstractmethod
    def is_there(self) -> bool:
        """Whether the folder itself is there."""

    @abstractmethod
    def make(self) -> None:
        """Make the folder, and those above it; quiet if it is there."""

    @abstractmethod
    def list_names(self, folder: str) -> list[str]:
        """The names in a folder below this one; none if it is not there."""

    @abstractmethod
    def next_token(self, floor: int) -> int:
        """A number greater than all that were returned before, by anybody.

        Args:
            floor: Where to go on if the counter was emptied by hand.
        """


class translate_errors:  # noqa: N801  # reads as the verb that it is
    """Turn failures of a file system into errors of a lock service, by whether another attempt may heal them."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if type(error) is RuntimeError:  # what hdfs-native raises behind fsspec
            error = read_native_error(str(error), self._path)
        if isinstance(error, OSError) and not isinstance(error, HudiLocksError):
            is_final = isinstance(error, PermissionError) or error.errno in _FINAL_ERRNOS
            raised = BackendRefused if is_final else BackendUnavailable
            reason = error.strerror or str(error)
            raise raised(f"{self._path}: {reason}", key=self._path, errno=error.errno) from error
