"""Tables on S3, to be read and written."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hudi_locks.config import Options
from hudi_locks.errors import StorageError
from hudi_locks.format import BaseFileName, LogFileName
from hudi_locks.storage import Entry, StagedFile, Storage, StorageCapabilities, map_in_threads
from hudi_locks_providers._s3.bucket import Bucket, ConditionUnmet, NothingThere
from hudi_locks_providers._s3.reading import ObjectReader, fetch
from hudi_locks_providers._s3.uploads import StagedUpload, Ticket, cancel_upload, redeem_upload
from hudi_locks_providers._storage.location import find_elsewhere, parse_location

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["S3Storage"]

_MAKER: Final = "hudi-locks-maker"
"""Metadata of an object that tells which request made it, so that a lost answer is found out."""
_OLD_MARKER: Final = "_$folder$"
"""How a name ends by which older Hadoop says that there is a folder."""
_BATCH: Final = 1000
_GONE: Final = ("NoSuchKey", "NotFound")
_MOST_KNOWN: Final = 256


class _Known(NamedTuple):
    """A small object as it was written or read last."""

    version: str
    data: bytes
    metadata: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class S3Storage(Storage):
    """The objects under one base path in a bucket. Runs on the driver and on executors; picklable; thread-safe.

    Nothing is ever moved, and there are no folders: a folder is there while something is in it. A file is made by one
    conditional request, which is sent again where no answer came: the object tells which request made it. Executors get
    the options, secrets among them, as they get those of Spark's own file systems; no text shows them.

    Attributes:
        base: See `Storage`.
        options: Of the table; see `open_object_storage`.
    """

    base: str
    options: Options = field(repr=False)
    _known: dict[str, _Known] = field(default_factory=dict, init=False, repr=False)

    capabilities: StorageCapabilities = field(
        default=StorageCapabilities(conditional_create=True, tickets=True, renewal_in_place=True),
        init=False,
        repr=False,
    )
    is_read_by_spark = False
    is_service = True
    is_remote = True

    @cached_property
    def _bucket(self) -> Bucket:
        return Bucket(self.options, parse_location(self.base))

    @property
    def place(self) -> Hashable:
        """See `Storage.place`."""
        return (type(self).__name__, self._bucket.location, self._bucket.endpoint)

    def list(self, folder: str) -> list[Entry]:
        """See `Storage.list`; one request for a thousand children."""
        found: dict[str, Entry] = {}
        for page in self._list(folder, Delimiter="/"):
            for told in page.get("CommonPrefixes", ()):
                name = _last(told["Prefix"])
                found[name] = Entry(name, 0, 0, is_folder=True)
            for told in filter(_is_file, page.get("Contents", ())):
                found.setdefault(_last(told["Key"]), _entry(told["Key"], told))
        return [found[name] for name in sorted(found)]

    def walk(self, folder: str) -> Iterable[tuple[str, Entry]]:
        """See `Storage.walk`; one request for a thousand files, however deep."""
        return sorted(self._walk(folder))

    def _walk(self, folder: str) -> Iterator[tuple[str, Entry]]:
        below = len(self._bucket.prefix(""))
        for page in self._list(folder):
            for told in filter(_is_file, page.get("Contents", ())):
                yield told["Key"][below:], _entry(told["Key"], told)

    def _list(self, folder: str, **asked: Any) -> Iterator[Mapping[str, Any]]:
        prefix = self._bucket.prefix(folder)
        return self._bucket.pages("list_objects_v2", folder, "list", Prefix=prefix, **asked)

    def read(self, path: str) -> bytes | None:
        """See `Storage.read`."""
        try:
            return fetch(self._bucket, path)[0]
        except NothingThere:
            return None

    def stat(self, path: str) -> Entry | None:
        """See `Storage.stat`; what is no object is looked for as a folder, which is a second request."""
        told = self._head(path)
        if told is not None:
            return _entry(path, told)
        asked = {"Prefix": self._bucket.prefix(path), "MaxKeys": 1}
        page = next(self._bucket.pages("list_objects_v2", path, "list", **asked))
        return Entry(_last(path), 0, 0, is_folder=True) if page.get("Contents") else None

    def exists(self, path: str) -> bool:
        """See `Storage.exists`; one request."""
        return self._head(path) is not None

    def _head(self, path: str) -> Mapping[str, Any] | None:
        try:
            return self._bucket.ask("head_object", path, "read")
        except NothingThere:
            return None

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """See `Storage.create_if_absent`. What got no answer is sent again, and looked for by who made it.

        Raises:
            StorageError: No answer came at all: the object may be there, now or later.
        """
        maker = {_MAKER: uuid.uuid4().hex}
        try:
            told = self._bucket.ask("put_object", path, "write", Body=data, Metadata=maker, IfNoneMatch="*")
        except ConditionUnmet as unmet:
            return unmet.is_doubtful and self._is_made_by(path, maker)
        except StorageError as error:
            return self._look_who_made(path, maker, error)
        self._know(path, _Known(told["ETag"], data, maker))
        return True

    def _is_made_by(self, path: str, maker: Mapping[str, str]) -> bool:
        return bool((self._head(path) or {}).get("Metadata", {}).get(_MAKER) == maker[_MAKER])

    def _look_who_made(self, path: str, maker: Mapping[str, str], error: StorageError) -> bool:
        """After no answer: whether the object is ours; where there is none, it may come late still."""
        if _is_answer(error):
            raise error
        found = self._head(path)
        if found is None:
            raise error
        return bool(found.get("Metadata", {}).get(_MAKER) == maker[_MAKER])

    def create_empty(self, paths: Sequence[str]) -> set[str]:
        """See `Storage.create_empty`."""
        made = map_in_threads(lambda path: self.create_if_absent(path, b""), paths)
        return {path for path, is_made in zip(paths, made, strict=True) if is_made}

    def replace(self, path: str, data: bytes) -> None:
        """See `Storage.replace`."""
        self._known.pop(path, None)
        self._bucket.ask("put_object", path, "write", Body=data)

    def touch(self, path: str) -> bool:
        """See `Storage.touch`: the same bytes are written over those that were seen last, and over nothing else."""
        while (known := self._known.get(path) or self._look(path)) is not None:
            try:
                told = self._bucket.ask(
                    "put_object", path, "write", Body=known.data, Metadata=known.metadata, IfMatch=known.version
                )
            except ConditionUnmet:
                self._known.pop(path, None)
                continue
            except NothingThere:
                break
            self._know(path, known._replace(version=told["ETag"]))
            return True
        self._known.pop(path, None)
        return False

    def _look(self, path: str) -> _Known | None:
        try:
            data, told = fetch(self._bucket, path)
        except NothingThere:
            return None
        return _Known(told["ETag"], data, told.get("Metadata", {}))

    def _know(self, path: str, known: _Known) -> None:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[path] = known

    def stage(self, target: str, *, instant: str) -> StagedFile:
        """See `Storage.stage`: a multipart upload, which is begun when its first part is full, or the file closed."""
        del instant
        return StagedUpload(self._bucket, target)

    def redeem(self, ticket: str, target: str) -> bool:
        """See `Storage.redeem`: the upload is completed."""
        return redeem_upload(self._bucket, Ticket.decode(ticket, path=target), target)

    def cancel(self, ticket: str, target: str) -> None:
        """See `Storage.cancel`: the upload is aborted."""
        cancel_upload(self._bucket, Ticket.decode(ticket, path=target).upload, target)

    def list_staged(self) -> set[str]:
        """See `Storage.list_staged`; by the names of the files, which tell their instants."""
        return {instant for instant, _, _ in self._list_uploads()}

    def cancel_staged(self, instants: Collection[str]) -> None:
        """See `Storage.cancel_staged`."""
        wanted = frozenset(instants)
        found = [one for one in self._list_uploads() if one[0] in wanted] if wanted else []
        map_in_threads(lambda one: cancel_upload(self._bucket, one[1], one[2]), found)

    def _list_uploads(self) -> Iterator[tuple[str, str, str]]:
        """Instant, upload and path of each file that was begun and has no name yet."""
        prefix = self._bucket.prefix("")
        for page in self._bucket.pages("list_multipart_uploads", "", "list the uploads of", Prefix=prefix):
            for told in page.get("Uploads", ()):
                name = _last(told["Key"])
                found = BaseFileName.parse(name) or LogFileName.parse(name)
                if found is not None:
                    yield found.instant, told["UploadId"], told["Key"][len(prefix) :]

    def delete(self, path: str) -> bool:
        """See `Storage.delete`; whether it was there is asked before, since S3 does not tell."""
        self._known.pop(path, None)
        return self.exists(path) and self._delete_one(path)

    def delete_all(self, paths: Iterable[str], *, threads: int = 1) -> None:
        """See `Storage.delete_all`; one request for a thousand files."""
        del threads
        found = list(paths)
        for path in found:
            self._known.pop(path, None)
        if len(found) == 1:
            self._delete_one(found[0])
        else:
            self._delete_keys("", [self._bucket.key(path) for path in found])

    def _delete_one(self, path: str) -> bool:
        """Whether it was there: S3 does not tell, but a service over files does where another removes it meanwhile."""
        try:
            self._bucket.ask("delete_object", path, "remove")
        except NothingThere:
            return False
        return True

    def delete_folder(self, folder: str) -> None:
        """Remove what is in a folder now. A request that is under way may still make something there."""
        self._delete_keys(folder, [told["Key"] for page in self._list(folder) for told in page.get("Contents", ())])

    def _delete_keys(self, path: str, keys: Sequence[str]) -> None:
        for begin in range(0, len(keys), _BATCH):
            self._delete_batch(path, keys[begin : begin + _BATCH])

    def _delete_batch(self, path: str, keys: Sequence[str]) -> None:
        listed = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        api, bucket = self._bucket.client.api, self._bucket.location.bucket
        told = self._bucket.repeat(path, "remove", lambda: api.delete_objects(Bucket=bucket, Delete=listed))
        if failed := [one for one in told.get("Errors", ()) if one.get("Code") not in _GONE]:
            code, where = failed[0].get("Code", ""), self._bucket.location.url(failed[0].get("Key", ""))
            message = f"{where} and {len(failed) - 1} others were not removed ({code}); grant s3:DeleteObject"
            raise StorageError(message, path=path, code=code)

    def make_folder(self, folder: str) -> None:
        """Mark it by an empty object, as Hadoop does: some readers ask for folders before they ask for files."""
        key, bucket = self._bucket.prefix(folder), self._bucket.location.bucket
        api = self._bucket.client.api
        self._bucket.repeat(folder, "write", lambda: api.put_object(Bucket=bucket, Key=key, Body=b""))

    def open_input(self, path: str) -> pa.NativeFile:
        """See `Storage.open_input`."""
        import pyarrow as pa

        return pa.PythonFile(ObjectReader(self._bucket, path), mode="r")

    def address(self, path: str) -> str:
        """See `Storage.address`: with the scheme that the user wrote."""
        return f"{self.base}/{path}" if path else self.base

    def open_elsewhere(self, folder: str) -> Storage | None:
        """See `Storage.open_elsewhere`: any bucket, by the same options; of Azure those of the same account."""
        found = find_elsewhere(self.base, folder)
        return None if found is None else type(self)(found, self.options)

    def now_ms(self) -> int:
        """See `Storage.now_ms`: by the last answers of the service; it is asked only if it said nothing lately."""
        time = self._bucket.client.time
        if (now_ms := time.read_ms()) is not None:
            return now_ms
        self._head(".hoodie/hoodie.properties")
        now_ms = time.read_ms()
        if now_ms is None:
            raise StorageError(f"{self.base}: the service's answers do not tell the time", path="")
        return now_ms

    def __reduce__(self) -> tuple[Any, ...]:
        """With the secrets, which `Options` alone leave out: executors need them."""
        return _rebuild, (self.base, dict(self.options))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r})"


def _rebuild(base: str, options: Mapping[str, object]) -> S3Storage:
    return S3Storage(base, Options(options))


def _is_answer(error: StorageError) -> bool:
    """Whether the service said no, so that nothing was made."""
    status = error.facts.get("status")
    return status is not None and status < 500 and status != 409


def _is_file(told: Mapping[str, Any]) -> bool:
    return not told["Key"].endswith(("/", _OLD_MARKER))


def _entry(path: str, told: Mapping[str, Any]) -> Entry:
    size = told["Size"] if "Size" in told else told["ContentLength"]
    modified_ms = int(told["LastModified"].timestamp() * 1000)
    return Entry(_last(path), int(size), modified_ms, is_folder=False, version=told["ETag"].strip('"'))


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
