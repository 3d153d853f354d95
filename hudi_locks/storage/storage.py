"""What a table needs of a file system."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol, TypeVar

from hudi_locks.deprecation import RenamedMember
from hudi_locks.errors import NoSuchFile, StorageError, UnsupportedTable
from hudi_locks.storage.staged import StagedFile

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = [
    "Entry",
    "Output",
    "Storage",
    "StorageCapabilities",
    "map_in_threads",
    "reading_ahead",
    "refuse_unwritable",
    "reporting",
]

_THREADS: Final = 16

T = TypeVar("T")
R = TypeVar("R")


class Entry(NamedTuple):
    """A child of a folder; a tuple, since a listing makes thousands.

    Attributes:
        name: Last component of its path.
        size: Bytes; 0 for a folder.
        modified_ms: When the store says it was last written, ms since the epoch.
        is_folder: Whether it can be listed itself.
        version: Another one whenever the file was changed, unless that was within the resolution of the store's times;
            "" if the store does not tell, and for folders.
    """

    name: str
    size: int
    modified_ms: int
    is_folder: bool
    version: str = ""


@dataclass(frozen=True)
class StorageCapabilities:
    """What a store promises of that on which writers rest. What it does not say it does not keep.

    Attributes:
        conditional_create: Of all that create one file, also at the same time, one is told that it did.
        tickets: A staged file gets its final name whole and once, or never once its ticket was cancelled.
        renewal_in_place: A file is renewed only while it is there, so that one that was removed never comes back.
        ended_folders: What was in a folder that was deleted can be moved nowhere any more, however late a task is.
            Writers do without where it is absent.
    """

    conditional_create: bool = False
    tickets: bool = False
    renewal_in_place: bool = False
    ended_folders: bool = False


_NEEDED: Final = {
    "conditional_create": "claims and instants are made once",
    "tickets": "the data files of a commit get their names, and those of no other write do",
    "renewal_in_place": "heartbeats tell who is alive",
}
"""Why a writer asks for each capability."""


class Output(Protocol):
    """A file that is to be written. Its writer opens it when it has bytes: many may wait without a handle each."""

    @property
    def target(self) -> str:
        """The name that it is to get, relative to the base path; errors name it."""

    def open(self) -> pa.NativeFile:
        """Where its bytes go; see `StagedFile.open`."""


class Storage(ABC):
    """The files under one base path. Paths are relative to it, with "/" and without a leading one. Thread-safe.

    Every byte of a table comes and goes by these methods. Each raises `StorageError` for a failure of the store, with
    the path as fact `path`. Picklable: executors get a copy that builds its own client.

    Attributes:
        base: The table's base path as the user wrote it, without a trailing slash.
        capabilities: What the store promises; without any a table can be read.
        is_read_by_spark: Whether Spark opens `address` by itself, wherever it runs; otherwise executors read the files
            by `open_input`.
        is_service: Whether a service keeps the files of which nobody knows kind and release: what it promises is tried
            once for each table before it is written; see `check_service`.
        is_remote: Whether every request goes through a network, so that what this process wrote is not read back.
    """

    base: str
    capabilities: StorageCapabilities = StorageCapabilities()
    is_read_by_spark: bool = True
    is_service: bool = False
    is_remote: bool = False

    @property
    def place(self) -> Hashable:
        """Equal for two storages of one process that have the same files."""
        return self

    def list_names(self, folder: str) -> list[str]:
        """Names of what is directly in a folder, in any order: cheaper than `list` where facts about each cost more."""
        return [entry.name for entry in self.list(folder)]

    @abstractmethod
    def list(self, folder: str) -> list[Entry]:
        """Direct children sorted by name; empty when the folder does not exist."""

    def list_each(self, folders: Iterable[str]) -> Sequence[Sequence[Entry]]:
        """The `list` of each folder, in order; many at once, since a store lets each wait."""
        return map_in_threads(self.list, folders)

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """All bytes of a file, or None when it does not exist."""

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """The entry at `path`, or None when nothing is there."""

    @abstractmethod
    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Make a file whole or not at all; False, and nothing changed, if the name is taken.

        When it returns, a power failure takes neither the file nor the folders above it.
        """

    def create_empty(self, paths: Sequence[str]) -> set[str]:
        """As `create_if_absent` for empty files, together; the paths that were made."""
        return {path for path in paths if self.create_if_absent(path, b"")}

    def create_transient(self, path: str, data: bytes) -> bool:
        """As `create_if_absent`, of a file that may be gone, or without its bytes, after a power failure."""
        return self.create_if_absent(path, data)

    @abstractmethod
    def replace(self, path: str, data: bytes) -> None:
        """Make or replace a file; readers see the old bytes or the new ones, never a part."""

    @abstractmethod
    def touch(self, path: str) -> bool:
        """Renew a file's time of modification, content unchanged; False, and nothing made, if it is not there."""

    def set_modified(self, path: str, modified_ms: int) -> bool:  # noqa: ARG002
        """Give a file another time of modification; False where the store gives files their own, or it is not there.

        Args:
            path: Of the file, relative to the base path.
            modified_ms: That time, in milliseconds since the epoch.

        Raises:
            StorageError: The store failed.
        """
        return False

    def move_if_absent(self, source: str, target: str) -> bool:
        """Give a file another name, whole or not at all; False, and `source` stays, if the name is taken.

        Only where the capability `ended_folders` is: it is worth nothing without.

        Raises:
            NoSuchFile: `source` is not there, and `target` is free.
            StorageError: The storage moves nothing.
        """
        raise StorageError(f"{source} cannot be moved to {target}: files of {self.base} keep their names", path=source)

    def stage(self, target: str, *, instant: str) -> StagedFile:  # noqa: ARG002
        """Where a task writes a data file that is to be named `target`; makes no request, and readers see nothing.

        Args:
            target: The name, relative to the base path. It is free, and carries the instant as data files do.
            instant: Requested time of the write.

        Raises:
            StorageError: The storage keeps no tickets; see `StorageCapabilities`.
        """
        raise self._refuse_tickets(target)

    def redeem(self, ticket: str, target: str) -> bool:  # noqa: ARG002
        """Give the file of a ticket its one name, whole, if the name is free. A ticket is used up by that.

        May be called by anybody, at the same time and again. Names are durable after `flush`.

        Returns:
            Whether this call did it, or repeats one that did. False: the ticket was used up, cancelled or lost before,
            or the name is taken by another file, which uses it up too. Only then a look at the name tells more.

        Raises:
            StorageError: No answer, or the text is no ticket. Ask again; a request that lands late does no harm.
        """
        raise self._refuse_tickets(target)

    def cancel(self, ticket: str, target: str) -> None:  # noqa: ARG002
        """Let a ticket never be redeemed any more once this returns; quiet if it is gone.

        For a ticket that was redeemed, or may be by others, only where the file under its name is to go too: some
        stores cancel by taking the name away.

        Raises:
            StorageError: No answer, or the text is no ticket; ask again.
        """
        raise self._refuse_tickets(target)

    def list_staged(self) -> set[str]:
        """Requested times of the instants of which something is staged."""
        return set()

    def cancel_staged(self, instants: Collection[str]) -> None:
        """Cancel all that these instants have staged, so that nothing of it that is there now is ever redeemed.

        For instants that nobody will publish, or whose files all have their names.
        """
        if instants:
            raise self._refuse_tickets(min(instants))

    def flush(self, paths: Iterable[str]) -> None:  # noqa: B027
        """Make the names of redeemed files durable. Nothing where they are durable when `redeem` returns."""

    @abstractmethod
    def delete(self, path: str) -> bool:
        """Remove a file; False if it was not there."""

    def delete_all(self, paths: Iterable[str], *, threads: int = _THREADS) -> None:
        """Remove files, in any order, and quiet about what is not there: cheaper than to be told of each.

        Args:
            paths: Of the files.
            threads: How many are removed at the same time, where each is a request.
        """
        map_in_threads(self.delete, paths, threads=threads)

    @abstractmethod
    def delete_folder(self, folder: str) -> None:
        """Remove a folder and all that is in it now; quiet if it is not there.

        Only where the capability `ended_folders` is, no file that was in it can be moved any more.
        """

    @abstractmethod
    def open_input(self, path: str) -> pa.NativeFile:
        """The bytes of a file for reads at any place, as Arrow's readers take them; the caller closes it.

        What fails at a later read is an OSError; see `reporting`.

        Raises:
            NoSuchFile: It is not there.
        """

    @abstractmethod
    def address(self, path: str) -> str:
        """The path as Spark takes it and plans for other writers name it. Nothing in Python opens it."""

    native: ClassVar[RenamedMember] = RenamedMember("address", removed_in="0.3.0")

    def open_elsewhere(self, folder: str) -> Storage | None:  # noqa: ARG002
        """The files of a folder outside of the base path, reached as those of the table are; makes no I/O.

        Args:
            folder: Its address as Hadoop writes it, which escapes nothing: `s3a://bucket/data/day=1`.

        Returns:
            None where it is no folder of this store, or nobody knows how to reach it.
        """
        return None

    @abstractmethod
    def now_ms(self) -> int:
        """The store's own clock, ms since the epoch, as it stamps new files."""

    @abstractmethod
    def make_folder(self, folder: str) -> None:
        """Make an empty folder, and those above it, where a store has folders; quiet if it is there."""

    def _refuse_tickets(self, path: str) -> StorageError:
        message = f"{path} cannot be staged: the storage of {self.base} keeps no tickets, so it is only read"
        return StorageError(message, path=path)

    def exists(self, path: str) -> bool:
        """Whether a file is at `path`; of a folder only `stat` tells on every store."""
        return self.stat(path) is not None

    def walk(self, folder: str) -> Iterable[tuple[str, Entry]]:
        """All files below `folder`, as (path relative to the base, entry)."""
        left = [(folder, Entry(folder, 0, 0, is_folder=True))]
        while left:
            path, entry = left.pop()
            if entry.is_folder:
                left += [(f"{path}/{child.name}" if path else child.name, child) for child in self.list(path)[::-1]]
            else:
                yield path, entry


def refuse_unwritable(storage: Storage) -> None:
    """Whether the store keeps what writers rest on; asked before anything is written.

    Raises:
        UnsupportedTable: It does not; the message names what it lacks.
    """
    lacking = tuple(name for name in _NEEDED if not getattr(storage.capabilities, name))
    if lacking:
        why = "; ".join(f"{name}, by which {_NEEDED[name]}" for name in lacking)
        message = (
            f"{storage.base} is read only here, since its store does not promise {why}. Write it where that is kept"
        )
        raise UnsupportedTable(message, path=storage.base, lacking=lacking)


class reporting:  # noqa: N801  # used as a function; a generator would cost a fifth of a bare create
    """Tells an error of the system as one of the store: `with reporting("read", path)`.

    Raises:
        NoSuchFile: The block met that something is not there.
        StorageError: It met another error of the system. What is a StorageError already stays as it is.
    """

    __slots__ = ("_path", "_verb")

    def __init__(self, verb: str, path: str) -> None:
        self._verb = verb
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            found = NoSuchFile if isinstance(error, FileNotFoundError) else StorageError
            message = f"cannot {self._verb} {self._path or 'the table folder'!r}: {_name_reason(error)}"
            raise found(message, path=self._path, errno=error.errno) from error


def _name_reason(error: OSError) -> str:
    """As the system names it; in the words of who raised it where that name tells nothing."""
    if error.errno and error.errno != errno.EIO:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def map_in_threads(call: Callable[[T], R], arguments: Iterable[T], *, threads: int = _THREADS) -> list[R]:
    """The results of `call` for each argument, in order.

    After an error no further call is begun, and it is raised once those that were begun have ended.
    """
    work = list(arguments)
    if len(work) < 2 or threads < 2:
        return [call(argument) for argument in work]
    with ThreadPoolExecutor(min(threads, len(work))) as pool:
        return list(pool.map(call, work))


@contextmanager
def reading_ahead(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """The same items, each made in a thread while the one before it is used; the first is begun at once."""
    with ThreadPoolExecutor(1) as pool:
        yield _take_ahead(pool, items)


def _take_ahead(pool: ThreadPoolExecutor, items: Iterator[T]) -> Iterator[T]:
    def take() -> list[T]:
        return list(islice(items, 1))

    return _drain(pool.submit(take), lambda: pool.submit(take))


def _drain(first: Future[list[T]], begin_next: Callable[[], Future[list[T]]]) -> Iterator[T]:
    coming = first
    while taken := coming.result():
        coming = begin_next()
        yield from taken
