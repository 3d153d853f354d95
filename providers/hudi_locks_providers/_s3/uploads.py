"""Data files that are uploaded in parts, and named later by whoever has their ticket."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.storage import MOST_TICKET_BYTES, StagedFile
from hudi_locks_providers._s3.bucket import Bucket, ConditionUnmet, NothingThere
from hudi_locks_providers._storage.parts import PartsOutput

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["StagedUpload", "Ticket", "cancel_upload", "redeem_upload"]

_PART_BYTES: Final = 8 << 20
_LARGE_PART_BYTES: Final = 64 << 20
_SMALL_PARTS: Final = 1_000
"""So many are small; S3 takes 10,000 in all, of which these and the large ones make 570 GB."""
_COUNTED: Final = "#"


@dataclass(frozen=True)
class Ticket:
    """An upload, and the parts that the file is made of.

    Attributes:
        upload: Its id.
        parts: The tag of each part, in order; empty where they were too many, and are asked for.
        count: How many there are.
        digest: Of their tags.
    """

    upload: str
    parts: tuple[str, ...]
    count: int
    digest: str

    @classmethod
    def of(cls, upload: str, parts: Sequence[str]) -> Ticket:
        """The ticket of an upload with these parts."""
        return cls(upload, tuple(parts), len(parts), _digest(parts))

    def encode(self) -> str:
        """As text: the id and the tags, or their number and digest where that would be too long."""
        text = f"{self.upload} {' '.join(self.parts)}"
        short = f"{self.upload} {_COUNTED}{self.count} {self.digest}"
        return text if self.parts and len(text.encode()) <= MOST_TICKET_BYTES else short

    @classmethod
    def decode(cls, text: str, *, path: str) -> Ticket:
        """From text.

        Raises:
            StorageError: It is no ticket of an upload.
        """
        upload, *parts = text.split(" ")
        if not upload or not parts or not all(parts):
            raise StorageError(f"{text!r} is no ticket of an upload for {path!r}", path=path)
        if not parts[0].startswith(_COUNTED):
            return cls.of(upload, parts)
        if len(parts) != 2 or not parts[0][1:].isdigit():
            raise StorageError(f"{text!r} is no ticket of an upload for {path!r}", path=path)
        return cls(upload, (), int(parts[0][1:]), parts[1])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


class StagedUpload(StagedFile):
    """A file that is uploaded while it is written; nothing is sent before its first part is full, or it is closed.

    Attributes:
        target: See `StagedFile`.
    """

    def __init__(self, bucket: Bucket, target: str) -> None:
        self.target = target
        self._bucket = bucket
        self._parts: _Parts | None = None

    def open(self) -> pa.NativeFile:
        """See `StagedFile.open`; who opens it again begins it anew."""
        import pyarrow as pa

        self.discard()
        self._parts = _Parts(self._bucket, self.target)
        return pa.PythonFile(self._parts, mode="w")

    def seal(self) -> str:
        """See `StagedFile.seal`."""
        if self._parts is None or not self._parts.is_whole:
            raise NoSuchFile(f"{self.target!r} was not written to its end, and gets no ticket", path=self.target)
        return Ticket.of(self._parts.upload_id, self._parts.tags).encode()

    def discard(self) -> None:
        """See `StagedFile.discard`."""
        if self._parts is not None:
            self._parts.give_up()
            self._parts = None

    def __reduce__(self) -> tuple[Any, ...]:
        return StagedUpload, (self._bucket, self.target)


class _Parts(PartsOutput):
    """An upload under way; it is begun with its first part."""

    def __init__(self, bucket: Bucket, path: str) -> None:
        super().__init__(path)
        self._bucket = bucket
        self.upload_id = ""

    def find_size(self, count: int) -> int:
        return _PART_BYTES if count < _SMALL_PARTS else _LARGE_PART_BYTES

    def begin(self) -> None:
        if not self.upload_id:
            told = self._bucket.ask("create_multipart_upload", self._path, "write")
            self.upload_id = told["UploadId"]

    def upload(self, number: int, part: bytes) -> str:
        try:
            told = self._bucket.ask(
                "upload_part", self._path, "write", UploadId=self.upload_id, PartNumber=number, Body=part
            )
        except NothingThere:
            message = f"the upload of {self._path!r} is gone: it was cancelled, or a life cycle rule ended it"
            raise NoSuchFile(message, path=self._path) from None
        return str(told["ETag"]).strip('"')

    def give_up(self) -> None:
        super().give_up()
        if self.upload_id:
            cancel_upload(self._bucket, self.upload_id, self._path)


def redeem_upload(bucket: Bucket, ticket: Ticket, path: str) -> bool:
    """Make the object of the parts, if there is none; see `Storage.redeem`. It may be sent again, and come late."""
    try:
        parts = ticket.parts or _list_parts(bucket, ticket, path)
        if parts:
            _complete(bucket, ticket.upload, path, parts)
            return True
    except NothingThere:
        return False
    except ConditionUnmet:
        cancel_upload(bucket, ticket.upload, path)  # else it could be completed once the name is free again
        return False
    except StorageError as error:
        if error.facts.get("code") not in _LOST_PARTS:
            raise
    return False


def _complete(bucket: Bucket, upload: str, path: str, parts: Sequence[str]) -> None:
    name, key, completions = bucket.location.bucket, bucket.key(path), bucket.client.completions
    bucket.repeat(path, "write", lambda: completions.complete(name, key, upload=upload, parts=parts))


_LOST_PARTS: Final = frozenset({"InvalidPart", "InvalidPartOrder", "EntityTooSmall"})
"""The service has other parts than the ticket tells of, and will not have those again."""


def _list_parts(bucket: Bucket, ticket: Ticket, path: str) -> Sequence[str]:
    asked = {"UploadId": ticket.upload, "Key": bucket.key(path)}
    pages = bucket.pages("list_parts", path, "list the parts of", **asked)
    parts = [str(part["ETag"]).strip('"') for page in pages for part in page.get("Parts", ())]
    return parts if len(parts) == ticket.count and _digest(parts) == ticket.digest else ()


def cancel_upload(bucket: Bucket, upload: str, path: str) -> None:
    """End an upload, so that it is completed never more; quiet if there is none."""
    try:
        bucket.ask("abort_multipart_upload", path, "cancel", UploadId=upload)
    except NothingThere:
        return
