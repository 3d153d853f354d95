"""Sends a file in parts while it is written, with as little of it in memory as that needs."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from hudi_locks.errors import NoSuchFile

__all__ = ["PartsOutput"]

_AT_ONCE: Final = 2


class PartsOutput(io.RawIOBase):
    """Takes the bytes of one file, and sends a part whenever it has enough. One thread writes.

    Attributes:
        tags: What the service called each part that was sent, in order; all of them once `is_whole`.
        is_whole: Whether the file was written to its end.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._waiting = bytearray()
        self._sent: deque[Future[str]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._count = 0
        self.tags: list[str] = []
        self.is_whole = False

    @abstractmethod
    def find_size(self, count: int) -> int:
        """Bytes of the part that is sent after so many."""

    @abstractmethod
    def begin(self) -> None:
        """Called before each part, and before the file ends without one."""

    @abstractmethod
    def upload(self, number: int, part: bytes) -> str:
        """Send a part, of which the first has number 1; two are sent at the same time. How the service calls it."""

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Take all of the bytes; waits while two parts are on their way."""
        if self.closed:
            raise NoSuchFile(f"the upload of {self._path!r} was given up or closed", path=self._path)
        self._waiting += data
        while len(self._waiting) >= (size := self.find_size(self._count)):
            with memoryview(self._waiting) as view:
                part = bytes(view[:size])
            del self._waiting[:size]
            self._send(part)
        return len(data)

    def _send(self, part: bytes) -> None:
        self.begin()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="hudi-locks-upload")
        while len(self._sent) >= _AT_ONCE:
            self.tags.append(self._sent.popleft().result())
        self._count += 1
        self._sent.append(self._pool.submit(self.upload, self._count, part))

    def close(self) -> None:
        """Send what is left, and wait until all parts are there; the last one may be of any size."""
        if self.closed:
            return
        try:
            self._finish()
        finally:
            self._end()
            super().close()

    def _finish(self) -> None:
        self.begin()
        last = [self.upload(self._count + 1, bytes(self._waiting))] if self.is_last_needed else []
        self.tags += [*(sent.result() for sent in self._sent), *last]
        self.is_whole = True

    @property
    def is_last_needed(self) -> bool:
        """Whether a part is left to be sent when the file ends; a file without bytes has one here."""
        return bool(self._waiting) or not self._count

    def _end(self) -> None:
        self._sent.clear()
        self._waiting.clear()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def give_up(self) -> None:
        """Send no more; the file cannot be written any more."""
        self._end()
        super().close()
        self.is_whole = False
