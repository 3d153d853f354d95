"""Reads parts of an object: its end at once, since Parquet files are read from there and small ones lie in it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final

from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks_providers._s3.bucket import Bucket, ConditionUnmet, NothingThere

__all__ = ["ObjectReader", "fetch"]

_TAIL_BYTES: Final = 1 << 19
_LEAST_BYTES: Final = 1 << 20
_EMPTY_RANGE: Final = "InvalidRange"


def fetch(bucket: Bucket, path: str, **arguments: Any) -> tuple[bytes, Mapping[str, Any]]:
    """The bytes of an object, or of a range of it, and what the service tells of it.

    Raises:
        NothingThere: There is none.
        ConditionUnmet: It is not the object that was asked for.
    """

    def send() -> tuple[bytes, Mapping[str, Any]]:
        told = bucket.client.api.get_object(Bucket=bucket.location.bucket, Key=bucket.key(path), **arguments)
        with told["Body"] as body:
            return body.read(), told

    return bucket.repeat(path, "read", send)


class ObjectReader(io.RawIOBase):
    """One object as Python's files are asked; one thread at a time. It is the same object from the first read on.

    Raises:
        NoSuchFile: It is not there.
        StorageError: At a read: the service does not answer, or the object was replaced meanwhile.
    """

    def __init__(self, bucket: Bucket, path: str) -> None:
        super().__init__()
        self._bucket = bucket
        self._path = path
        self._at = 0
        self._block, told = self._open()
        self._version = told.get("ETag")
        self._size = _read_size(told, self._block)
        self._begin = self._size - len(self._block)

    def _open(self) -> tuple[bytes, Mapping[str, Any]]:
        try:
            return fetch(self._bucket, self._path, Range=f"bytes=-{_TAIL_BYTES}")
        except NothingThere:
            raise NoSuchFile(f"cannot open {self._path!r}: it is not there", path=self._path) from None
        except StorageError as error:
            if error.facts.get("code") != _EMPTY_RANGE:
                raise
            return b"", {}

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
        if count and not self._begin <= self._at <= self._at + count <= self._begin + len(self._block):
            self._block, self._begin = self._fetch(self._at, max(count, _LEAST_BYTES)), self._at
        found = self._block[self._at - self._begin : self._at - self._begin + count]
        self._at += len(found)
        return found

    def _fetch(self, begin: int, count: int) -> bytes:
        asked = {"Range": f"bytes={begin}-{min(begin + count, self._size) - 1}"}
        try:
            return fetch(self._bucket, self._path, **asked, **({"IfMatch": self._version} if self._version else {}))[0]
        except (ConditionUnmet, NothingThere):
            message = f"cannot go on reading {self._path!r}: it was removed or replaced since it was opened"
            raise StorageError(message, path=self._path) from None


def _read_size(told: Mapping[str, Any], block: bytes) -> int:
    """Of the whole object, as the answer to a request for its end tells it."""
    total = str(told.get("ContentRange") or "").rpartition("/")[2]
    return int(total) if total.isdigit() else len(block)
