"""Reads parts of an object: its end at once, since Parquet files are read from there and small ones lie in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks_providers._s3.bucket import Bucket, ConditionUnmet, NothingThere
from hudi_locks_providers._storage.ranges import FIRST_BYTES, Block, RangeReader

__all__ = ["ObjectReader", "fetch"]

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


class ObjectReader(RangeReader):
    """See `RangeReader`.

    Raises:
        NoSuchFile: It is not there.
        StorageError: At a read: the service does not answer, or the object was replaced meanwhile.
    """

    def __init__(self, bucket: Bucket, path: str) -> None:
        self._bucket = bucket
        self._path = path
        data, told = self._open()
        self._version = told.get("ETag")
        size = _read_size(told, data)
        super().__init__(Block(data, size - len(data), size))

    def _open(self) -> tuple[bytes, Mapping[str, Any]]:
        try:
            return fetch(self._bucket, self._path, Range=f"bytes=-{FIRST_BYTES}")
        except NothingThere:
            raise NoSuchFile(f"cannot open {self._path!r}: it is not there", path=self._path) from None
        except StorageError as error:
            if error.facts.get("code") != _EMPTY_RANGE:
                raise
            return b"", {}

    def fetch(self, begin: int, end: int) -> bytes:
        """See `RangeReader.fetch`."""
        asked = {"Range": f"bytes={begin}-{end - 1}"}
        try:
            return fetch(self._bucket, self._path, **asked, **({"IfMatch": self._version} if self._version else {}))[0]
        except (ConditionUnmet, NothingThere):
            message = f"cannot go on reading {self._path!r}: it was removed or replaced since it was opened"
            raise StorageError(message, path=self._path) from None


def _read_size(told: Mapping[str, Any], block: bytes) -> int:
    """Of the whole object, as the answer to a request for its end tells it."""
    total = str(told.get("ContentRange") or "").rpartition("/")[2]
    return int(total) if total.isdigit() else len(block)
