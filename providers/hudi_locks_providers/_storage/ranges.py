"""Reads ranges of one object of a store, for whoever asks as of a file."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from typing import Final, NamedTuple

__all__ = ["FIRST_BYTES", "Block", "RangeReader"]

FIRST_BYTES: Final = 1 << 19
"""How much the first request asks for: all of a small file, and at the end the footer of most Parquet files."""
_LEAST_BYTES: Final = 1 << 20


class Block(NamedTuple):
    """Bytes of an object, and where in it they lie.

    Attributes:
        data: The bytes.
        begin: Offset of the first one.
        size: Of the whole object, bytes.
    """

    data: bytes
    begin: int
    size: int


class RangeReader(io.RawIOBase, ABC):
    """One object as Python's files are asked; one thread at a time. It is the same object from the first read on.

    Args:
        first: What the first request brought.
    """

    def __init__(self, first: Block) -> None:
        super().__init__()
        self._data, self._begin, self._size = first
        self._at = 0

    @abstractmethod
    def fetch(self, begin: int, end: int) -> bytes:
        """The bytes from `begin` to before `end`, of the same object."""

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move there, and return where that is."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = origin + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """As many bytes as there are, up to `size`."""
        left = max(0, self._size - self._at)
        count = left if size is None or size < 0 else min(size, left)
        if count and not self._begin <= self._at <= self._at + count <= self._begin + len(self._data):
            self._load(count)
        found = self._data[self._at - self._begin : self._at - self._begin + count]
        self._at += len(found)
        return found

    def _load(self, count: int) -> None:
        """Whoever begins near the end reads backwards from there, as from a Parquet footer."""
        begin = min(self._at, max(0, self._size - FIRST_BYTES))
        end = min(self._at + max(count, _LEAST_BYTES), self._size)
        self._data, self._begin = self.fetch(begin, end), begin
