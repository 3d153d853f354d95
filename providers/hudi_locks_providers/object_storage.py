"""Tables in buckets: those on S3 are read and written, those on Google Cloud Storage and Azure only read."""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from hudi_locks.config import Options
from hudi_locks.errors import BackendRefused, BackendUnavailable, NoSuchFile, StorageError
from hudi_locks.storage import Entry, Storage, StorageCapabilities
from hudi_locks_providers._storage.location import parse_location
from hudi_locks_providers._storage.objects import Objects, PreconditionFailed, stamp_ms
from hudi_locks_providers._storage.stores import RequestPolicy, check_settings
from hudi_locks_providers.s3_storage import S3Storage

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["ObjectStorage", "open_object_storage"]

_POLICY: Final = RequestPolicy(timeout_s=30.0, retries=4)
_KEYS: Final = ("hudi_locks.storage.", "hoodie.aws.", "hoodie.write.lock.azure.")
"""How the keys begin that executors are given, secrets among them."""
_READ_AHEAD_BYTES: Final = 1 << 20
_ADDRESSES: Final[Mapping[str, Callable[[Objects], str]]] = {
    "gcs": lambda objects: objects.endpoint or "https://storage.googleapis.com",
    "azure": lambda objects: objects.endpoint or f"https://{objects.location.account}.blob.core.windows.net",
}
"""Who tells the time."""
_MARKER: Final = "_$folder$"
"""How a name ends by which older Hadoop says that there is a folder."""

T = TypeVar("T")


def open_object_storage(path: str, options: Mapping[str, object]) -> Storage:
    """The storage of a table in a bucket; sends nothing.

    Args:
        path: `s3://`, `s3a://`, `gs://`, `abfs(s)://container@account.…/` or `wasb(s)://`.
        options: Keys `hudi_locks.storage.*`, `hoodie.aws.*` and those of Azure; the cloud's default chain goes on where
            they say nothing.

    Raises:
        ConfigError: The path names no bucket, an endpoint is without TLS that nobody allowed, or credentials are not
            whole.
    """
    found = Options({name: options[name] for name in options if name.startswith(_KEYS)})
    location = parse_location(path)
    check_settings(found, location)
    return (S3Storage if location.service == "s3" else ObjectStorage)(path.rstrip("/"), found)


@dataclass(frozen=True, eq=False)
class ObjectStorage(Storage):
    """The objects under one base path. It reads, creates, replaces and removes; it names no data files.

    Requests that change something are sent once; only reads are repeated after a failure. Executors get the options,
    secrets among them, as they get those of Spark's own file systems; no text shows them.

    Attributes:
        base: See `Storage`.
        options: Of the table; see `open_object_storage`.
    """

    base: str
    options: Options = field(repr=False)

    capabilities = StorageCapabilities(conditional_create=True, renewal_in_place=True)
    is_read_by_spark = False

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self.options, parse_location(self.base), policy=_POLICY)

    @property
    def place(self) -> Hashable:
        """See `Storage.place`."""
        return (type(self).__name__, self._objects.location, self._objects.endpoint)

    def list(self, folder: str) -> list[Entry]:
        """See `Storage.list`; a folder is there while something is in it, or a marker of it."""
        objects, folders = self._send(folder, lambda: self._objects.list_children(self._key(folder)))
        found = {name: Entry(name, 0, 0, is_folder=True) for name in map(_last, folders)}
        for meta in objects:
            name = _last(meta["path"])
            if meta["path"] != self._key(folder) and not name.endswith(_MARKER):
                found.setdefault(name, _entry(meta))
        return [found[name] for name in sorted(found)]

    def walk(self, folder: str) -> Iterable[tuple[str, Entry]]:
        """See `Storage.walk`; one request for a thousand files, however deep."""
        below = len(self._key("")) + 1 if self._key("") else 0
        metas = self._send(folder, lambda: self._objects.walk(self._key(folder)))
        files = {meta["path"]: meta for meta in metas}
        parents = {path.rpartition("/")[0] for path in files}
        for path, meta in sorted(files.items()):
            is_marker = path.endswith(_MARKER) or (meta["size"] == 0 and path in parents)
            if path != self._key(folder) and not is_marker:
                yield path[below:], _entry(meta)

    def read(self, path: str) -> bytes | None:
        """See `Storage.read`."""
        found = self._send(path, lambda: self._objects.read(self._key(path)))
        return None if found is None else found.data

    def stat(self, path: str) -> Entry | None:
        """See `Storage.stat`; what is no object is looked for as a folder, which is a second request."""
        meta = self._send(path, lambda: self._objects.head(self._key(path)))
        if meta is not None:
            return _entry(meta)
        is_folder = self._send(path, lambda: self._objects.walk(self._key(path), most=1))
        return Entry(_last(path), 0, 0, is_folder=True) if is_folder else None

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """See `Storage.create_if_absent`.

        Raises:
            StorageError: No answer: the object may be there, now or later.
        """
        try:
            self._send(path, lambda: self._objects.put(self._key(path), data, "create"))
        except PreconditionFailed:
            return False
        return True

    def replace(self, path: str, data: bytes) -> None:
        """See `Storage.replace`."""
        self._send(path, lambda: self._objects.put(self._key(path), data, "overwrite"))

    def touch(self, path: str) -> bool:
        """See `Storage.touch`: the same bytes are written over what was read, and over nothing else."""
        while (found := self._send(path, lambda: self._objects.read(self._key(path)))) is not None:
            try:
                self._send(path, partial(self._objects.put, self._key(path), found.data, found.version))
            except PreconditionFailed:
                continue
            return True
        return False

    def delete(self, path: str) -> bool:
        """See `Storage.delete`; whether it was there is asked before, since stores do not tell."""
        was_there = self._send(path, lambda: self._objects.head(self._key(path))) is not None
        if was_there:
            self._send(path, lambda: self._objects.remove(self._key(path)))
        return was_there

    def delete_folder(self, folder: str) -> None:
        """Remove what is in a folder now. A request that is under way may still make something there."""
        for path, _ in self.walk(folder):
            self.delete(path)

    def make_folder(self, folder: str) -> None:
        """Nothing: an object needs no folder."""

    def open_input(self, path: str) -> pa.NativeFile:
        """See `Storage.open_input`."""
        import pyarrow as pa

        reader = self._send(path, lambda: self._objects.open(self._key(path), ahead_bytes=_READ_AHEAD_BYTES))
        if reader is None:
            raise NoSuchFile(f"cannot open {path!r}: it is not there", path=path)
        return pa.PythonFile(_Reader(reader), mode="r")

    def address(self, path: str) -> str:
        """See `Storage.address`: with the scheme that the user wrote."""
        return f"{self.base}/{path}" if path else self.base

    def now_ms(self) -> int:
        """The time of the service, by its answer to a request for nothing: in whole seconds, and not signed."""
        url = _ADDRESSES[self._objects.location.service](self._objects)
        try:
            with urlopen(Request(url, method="HEAD"), timeout=_POLICY.timeout_s) as answer:  # noqa: S310  # http(s) alone
                told = answer.headers["Date"]
        except HTTPError as error:
            told = error.headers["Date"]  # any answer tells the time
        except OSError as error:
            raise StorageError(f"{self.base}: {url} does not tell the time: {error}", path=self.base) from error
        return round(parsedate_to_datetime(told).timestamp() * 1000)

    def _key(self, path: str) -> str:
        return self._objects.location.key(path) if path else self._objects.location.prefix

    def _send(self, path: str, request: Callable[[], T]) -> T:
        try:
            return request()
        except (BackendRefused, BackendUnavailable) as error:
            raise StorageError(str(error), path=path) from error

    def __reduce__(self) -> tuple[Any, ...]:
        """With the secrets, which `Options` alone leave out: executors need them."""
        return open_object_storage, (self.base, dict(self.options))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r})"


class _Reader(io.RawIOBase):
    """What obstore reads, as Python's files are asked; one thread at a time."""

    def __init__(self, reader: Any) -> None:
        super().__init__()
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return bytes(self._reader.read(None if size is None or size < 0 else size))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())


def _entry(meta: Mapping[str, Any]) -> Entry:
    version = str(meta["e_tag"] or meta["version"] or "").strip('"')
    return Entry(_last(meta["path"]), int(meta["size"]), stamp_ms(meta), is_folder=False, version=version)


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
