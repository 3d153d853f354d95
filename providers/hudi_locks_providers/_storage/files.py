"""The files of a table in a bucket, each an object: read, listed, made, renewed and removed by obstore."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.config import Options, security_keys
from hudi_locks.errors import BackendRefused, BackendUnavailable, NoSuchFile, StorageError
from hudi_locks.storage import Entry, Storage, StorageCapabilities, map_in_threads
from hudi_locks_providers._storage.location import find_elsewhere, parse_location
from hudi_locks_providers._storage.objects import Objects, PreconditionFailed, stamp_ms
from hudi_locks_providers._storage.ranges import FIRST_BYTES, Block, RangeReader
from hudi_locks_providers._storage.stores import MISTRUSTED, RequestPolicy, is_mistrusted
from hudi_locks_providers._tls import trust_authorities
from hudi_locks_providers._wire.service_time import ServiceTime

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["ObjectStorage"]

_THREADS: Final = 16
_POLICY: Final = RequestPolicy(timeout_s=30.0, retries=4)
_PAUSES_S: Final = (0.1, 0.4, 1.0, 2.0)
_ADDRESSES: Final[Mapping[str, Callable[[Objects], str]]] = {
    "gcs": lambda objects: objects.endpoint or "https://storage.googleapis.com",
    "azure": lambda objects: objects.endpoint or f"https://{objects.location.account}.blob.core.windows.net",
}
"""Who tells the time."""
_MARKER: Final = "_$folder$"
"""How a name ends by which older Hadoop says that there is a folder."""
_KEPT: Final = ".folder"
"""Name of an empty object by which a folder is there before a file is; obstore makes no names that end in a slash."""
_MAKER: Final = "hudilocksmaker"
"""What is kept beside an object that tells which request made it, so that a lost answer is found out."""
_SECOND_MS: Final = 1000

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ObjectStorage(Storage):
    """The objects under one base path. It names no data files: how that is done is each service's own.

    Nothing is ever moved, and there are no folders: a folder is there while something is in it. A file is made by one
    conditional request, which is sent again where no answer came: the object tells which request made it. Executors get
    the options, secrets among them, as they get those of Spark's own file systems; no text shows them.

    Attributes:
        base: See `Storage`.
        options: Of the table; see `open_object_storage`.
        clock: Waits between attempts.
    """

    base: str
    options: Options = field(repr=False)
    clock: Clock = field(default_factory=SystemClock, repr=False)

    capabilities: StorageCapabilities = field(
        default=StorageCapabilities(conditional_create=True, renewal_in_place=True),
        init=False,
        repr=False,
    )
    is_read_by_spark = False

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self.options, parse_location(self.base), policy=_POLICY)

    @cached_property
    def _time(self) -> ServiceTime:
        return ServiceTime(self.clock)

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
            if meta["path"] != self._key(folder) and not _is_marker(name):
                found.setdefault(name, _entry(meta))
        return [found[name] for name in sorted(found)]

    def walk(self, folder: str) -> Iterable[tuple[str, Entry]]:
        """See `Storage.walk`; one request for a thousand files, however deep."""
        below = len(self._key("")) + 1 if self._key("") else 0
        metas = self._send(folder, lambda: self._objects.walk(self._key(folder)))
        files = {meta["path"]: meta for meta in metas}
        parents = {path.rpartition("/")[0] for path in files}
        for path, meta in sorted(files.items()):
            is_marker = _is_marker(_last(path)) or (meta["size"] == 0 and path in parents)
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

    def exists(self, path: str) -> bool:
        """See `Storage.exists`; one request."""
        return self._send(path, lambda: self._objects.head(self._key(path))) is not None

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """See `Storage.create_if_absent`. What got no answer is sent again, and looked for by who made it.

        Raises:
            StorageError: No answer came at all: the object may be there, now or later.
        """
        maker = {_MAKER: uuid.uuid4().hex}
        try:
            self._repeat(path, lambda: self._objects.put(self._key(path), data, "create", notes=maker))
        except PreconditionFailed as unmet:
            return unmet.is_doubtful and self._find_maker(path) == maker[_MAKER]
        except NoAnswer:
            if (found := self._find_maker(path)) is None:
                raise
            return found == maker[_MAKER]
        return True

    def _find_maker(self, path: str) -> str | None:
        """Which request made the object; None if there is none, which may come late still."""
        found = self._send(path, lambda: self._objects.read(self._key(path)))
        return None if found is None else found.notes.get(_MAKER, "")

    def create_empty(self, paths: Sequence[str]) -> set[str]:
        """See `Storage.create_empty`."""
        made = map_in_threads(lambda path: self.create_if_absent(path, b""), paths)
        return {path for path, is_made in zip(paths, made, strict=True) if is_made}

    def replace(self, path: str, data: bytes) -> None:
        """See `Storage.replace`."""
        self._repeat(path, lambda: self._objects.put(self._key(path), data, "overwrite"))

    def touch(self, path: str) -> bool:
        """See `Storage.touch`: the same bytes are written over what was read, and over nothing else."""
        while (found := self._send(path, lambda: self._objects.read(self._key(path)))) is not None:
            try:
                self._repeat(path, partial(self._objects.put, self._key(path), found.data, found.version))
            except PreconditionFailed:
                continue
            return True
        return False

    def delete(self, path: str) -> bool:
        """See `Storage.delete`; whether it was there is asked before, since stores do not tell."""
        was_there = self.exists(path)
        if was_there:
            self._remove(self._key(path))
        return was_there

    def delete_all(self, paths: Iterable[str], *, threads: int = _THREADS) -> None:
        """See `Storage.delete_all`; one request for each."""
        map_in_threads(self._remove, [self._key(path) for path in paths], threads=threads)

    def delete_folder(self, folder: str) -> None:
        """Remove what is in a folder now. A request that is under way may still make something there."""
        metas = self._send(folder, lambda: self._objects.walk(self._key(folder)))
        map_in_threads(self._remove, [meta["path"] for meta in metas])

    def _remove(self, key: str) -> None:
        self._repeat(key, lambda: self._objects.remove(key))

    def make_folder(self, folder: str) -> None:
        """Mark it by an empty object in it, which listings leave out: some readers ask for folders before files."""
        self.replace(f"{folder}/{_KEPT}", b"")

    def open_input(self, path: str) -> pa.NativeFile:
        """See `Storage.open_input`."""
        import pyarrow as pa

        first, version = self._read_first(path)
        return pa.PythonFile(_Reader(self, path, first, version), mode="r")

    def _read_first(self, path: str) -> tuple[Block, Any]:
        try:
            found = self._send(path, lambda: self._objects.read_first(self._key(path), FIRST_BYTES))
        except StorageError:
            entry = self.stat(path)
            if entry is None or entry.size or entry.is_folder:
                raise
            return Block(b"", 0, 0), None  # no service has a range of an empty object
        if found is None:
            raise NoSuchFile(f"cannot open {path!r}: it is not there", path=path)
        return found

    def read_range(self, path: str, begin: int, end: int, *, version: Any) -> bytes:
        """The bytes of a file from `begin` to before `end`.

        Raises:
            StorageError: It is not the same file any more, or the service does not answer.
        """
        try:
            return self._send(path, lambda: self._objects.read_range(self._key(path), begin, end, version=version))
        except (PreconditionFailed, FileNotFoundError):
            message = f"cannot go on reading {path!r}: it was removed or replaced since it was opened"
            raise StorageError(message, path=path) from None

    def address(self, path: str) -> str:
        """See `Storage.address`: with the scheme that the user wrote."""
        return f"{self.base}/{path}" if path else self.base

    def open_elsewhere(self, folder: str) -> Storage | None:
        """See `Storage.open_elsewhere`: any bucket, by the same options; of Azure those of the same account."""
        found = find_elsewhere(self.base, folder)
        return None if found is None else type(self)(found, self.options)

    def now_ms(self) -> int:
        """The time of the service, by its last answer to a request for nothing: in whole seconds, and not signed."""
        if (now_ms := self._time.read_ms()) is not None:
            return now_ms
        self._time.note(self._ask_date())
        now_ms = self._time.read_ms()
        if now_ms is None:
            raise StorageError(f"{self.base}: the service does not tell the time", path=self.base)
        return now_ms

    def _ask_date(self) -> str:
        url = _ADDRESSES[self._objects.location.service](self._objects)
        try:
            asked = Request(url, method="HEAD")  # noqa: S310  # http(s) alone
            trusted = trust_authorities(self.options, security_keys.STORAGE_CA_FILE)
            with urlopen(asked, timeout=_POLICY.timeout_s, context=trusted) as answer:  # noqa: S310
                told = answer.headers["Date"]
        except HTTPError as error:
            told = error.headers["Date"]  # any answer tells the time
        except OSError as error:
            told = MISTRUSTED if is_mistrusted(str(error)) else f"{url} does not tell the time: {error}"
            raise StorageError(f"{self.base}: {told}", path=self.base) from error
        return str(told)

    def _key(self, path: str) -> str:
        return self._objects.location.key(path) if path else self._objects.location.prefix

    def _send(self, path: str, request: Callable[[], T]) -> T:
        try:
            return request()
        except BackendUnavailable as error:
            raise NoAnswer(str(error), path=path) from error
        except BackendRefused as error:
            raise StorageError(str(error), path=path) from error

    def _repeat(self, path: str, request: Callable[[], T]) -> T:
        """What a request gives, which may be sent again: it does the same once or several times.

        Raises:
            PreconditionFailed: The condition does not hold.
            NoAnswer: None came, however often it was sent: it may be done, now or later.
        """
        is_doubtful = False
        for pause_s in _PAUSES_S:
            try:
                return request()
            except PreconditionFailed as unmet:
                unmet.is_doubtful = is_doubtful
                raise
            except BackendUnavailable:
                is_doubtful = True
            except BackendRefused as error:
                raise StorageError(str(error), path=path) from error
            self.clock.sleep(pause_s)
        return self._send(path, request)

    def __reduce__(self) -> tuple[Any, ...]:
        """With the secrets, which `Options` alone leave out: executors need them."""
        return _rebuild, (type(self), self.base, dict(self.options))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r})"


class NoAnswer(StorageError):
    """What was asked may be done, now or later."""


def _rebuild(kind: type[ObjectStorage], base: str, options: Mapping[str, object]) -> ObjectStorage:
    return kind(base, Options(options))


class _Reader(RangeReader):
    """See `RangeReader`."""

    def __init__(self, storage: ObjectStorage, path: str, first: Block, version: Any) -> None:
        super().__init__(first)
        self._storage = storage
        self._path = path
        self._version = version

    def fetch(self, begin: int, end: int) -> bytes:
        """See `RangeReader.fetch`."""
        return self._storage.read_range(self._path, begin, end, version=self._version)


def _entry(meta: Mapping[str, Any]) -> Entry:
    version = str(meta["e_tag"] or meta["version"] or "").strip('"')
    modified_ms = stamp_ms(meta) // _SECOND_MS * _SECOND_MS  # listings may tell more than other answers do
    return Entry(_last(meta["path"]), int(meta["size"]), modified_ms, is_folder=False, version=version)


def _is_marker(name: str) -> bool:
    return name == _KEPT or name.endswith(_MARKER)


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
