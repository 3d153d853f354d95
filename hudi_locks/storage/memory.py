"""A table's files in memory, for tests of protocols."""

from __future__ import annotations

import io
import threading
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, NoReturn

from hudi_locks.clock import Clock
from hudi_locks.errors import NoSuchFile, refuse_pickling
from hudi_locks.storage.staged import TICKETS_FOLDER, StagedFile
from hudi_locks.storage.storage import Entry, Storage, StorageCapabilities

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["MemoryStorage"]


class MemoryStorage(Storage):
    """Files of one process. Thread-safe; each call is one atomic step.

    A folder is there while it holds a file, or since it was made; files can be made where none is.

    Args:
        clock: Stamps the files.
        base: What the table's base path is called.
    """

    capabilities: StorageCapabilities = StorageCapabilities(
        conditional_create=True, tickets=True, renewal_in_place=True, ended_folders=True
    )

    def __init__(self, clock: Clock, *, base: str = "memory:/table") -> None:
        self.base = base
        self._clock = clock
        self._lock = threading.RLock()
        self._files: dict[str, tuple[bytes, int, int]] = {}
        self._folders: set[str] = set()
        self._versions = count(1)

    def list(self, folder: str) -> list[Entry]:
        """See `Storage.list`."""
        prefix = f"{folder}/" if folder else ""
        with self._lock:
            inside = [path[len(prefix) :] for path in (*self._files, *self._folders) if path.startswith(prefix)]
            names = sorted({rest.split("/", 1)[0] for rest in inside})
            return [entry for name in names if (entry := self.stat(prefix + name))]

    def read(self, path: str) -> bytes | None:
        """See `Storage.read`."""
        with self._lock:
            return self._files[path][0] if path in self._files else None

    def stat(self, path: str) -> Entry | None:
        """See `Storage.stat`."""
        name = path.rsplit("/", 1)[-1]
        with self._lock:
            if path in self._files:
                data, modified_ms, version = self._files[path]
                return Entry(name, len(data), modified_ms, is_folder=False, version=str(version))
            stamps = [stamp for other, (_, stamp, _) in self._files.items() if other.startswith(f"{path}/")]
            is_made = any(folder == path or folder.startswith(f"{path}/") for folder in self._folders)
        return Entry(name, 0, max(stamps, default=0), is_folder=True) if stamps or is_made else None

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """See `Storage.create_if_absent`."""
        with self._lock:
            if path in self._files:
                return False
            self.replace(path, data)
            return True

    def replace(self, path: str, data: bytes) -> None:
        """See `Storage.replace`."""
        with self._lock:
            self._put(path, data)

    def _put(self, path: str, data: bytes) -> None:
        self._files[path] = (bytes(data), self._clock.wall_ms(), next(self._versions))

    def touch(self, path: str) -> bool:
        """See `Storage.touch`."""
        with self._lock:
            if path in self._files:
                self.replace(path, self._files[path][0])
            return path in self._files

    def set_modified(self, path: str, modified_ms: int) -> bool:
        """See `Storage.set_modified`."""
        with self._lock:
            if path in self._files:
                data, _, version = self._files[path]
                self._files[path] = (data, modified_ms, version)
            return path in self._files

    def move_if_absent(self, source: str, target: str) -> bool:
        """See `Storage.move_if_absent`."""
        with self._lock:
            if target in self._files:
                return False
            if source not in self._files:
                raise NoSuchFile(f"cannot move {source!r}: it is not there", path=source)
            self._files[target] = self._files.pop(source)
            return True

    def stage(self, target: str, *, instant: str) -> StagedFile:
        """See `Storage.stage`: a file aside, as on a disk."""
        return _MemoryFile(self, target, f"{instant}/{uuid.uuid4().hex}")

    def redeem(self, ticket: str, target: str) -> bool:
        """See `Storage.redeem`."""
        with self._lock:
            found = self._files.pop(_aside(ticket), None)
            if found is None or target in self._files:
                return False
            self._put(target, found[0])
            return True

    def cancel(self, ticket: str, target: str) -> None:  # noqa: ARG002  # by its own name
        """See `Storage.cancel`."""
        with self._lock:
            self._files.pop(_aside(ticket), None)

    def list_staged(self) -> set[str]:
        """See `Storage.list_staged`."""
        return set(self.list_names(TICKETS_FOLDER))

    def cancel_staged(self, instants: Collection[str]) -> None:
        """See `Storage.cancel_staged`."""
        for instant in instants:
            self.delete_folder(f"{TICKETS_FOLDER}/{instant}")

    def open_staged(self, ticket: str) -> pa.NativeFile:
        """Where the bytes of a staged file go."""
        return self._open_output(_aside(ticket))

    def has_staged(self, ticket: str) -> bool:
        """Whether a ticket can be redeemed, as far as the name is free."""
        return self.exists(_aside(ticket))

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        with self._lock:
            return self._files.pop(path, None) is not None

    def delete_folder(self, folder: str) -> None:
        """See `Storage.delete_folder`."""
        with self._lock:
            for path in [path for path in self._files if path.startswith(f"{folder}/")]:
                del self._files[path]
            self._folders = {made for made in self._folders if made != folder and not made.startswith(f"{folder}/")}

    def make_folder(self, folder: str) -> None:
        """See `Storage.make_folder`."""
        with self._lock:
            self._folders.add(folder)

    def open_input(self, path: str) -> pa.NativeFile:
        """See `Storage.open_input`."""
        import pyarrow as pa

        data = self.read(path)
        if data is None:
            raise NoSuchFile(f"cannot open {path!r}: it is not there", path=path)
        return pa.BufferReader(data)

    def _open_output(self, path: str) -> pa.NativeFile:
        import pyarrow as pa

        self._put(path, b"")
        return pa.PythonFile(_Written(lambda data: self._fill(path, data)), mode="w")

    def _fill(self, path: str, data: bytes) -> None:
        """As on a disk, the bytes of a file that was deleted while it was written are gone."""
        with self._lock:
            if path in self._files:
                self._put(path, data)

    def address(self, path: str) -> str:
        """See `Storage.address`; a name for messages, since Spark cannot open it."""
        return f"{self.base}/{path}"

    def now_ms(self) -> int:
        """See `Storage.now_ms`."""
        return self._clock.wall_ms()

    def __reduce__(self) -> NoReturn:
        refuse_pickling(self, "it lives in one process; use LocalStorage where executors take part")


@dataclass(frozen=True)
class _MemoryFile(StagedFile):
    """See `StagedFile`."""

    storage: MemoryStorage
    target: str
    ticket: str

    def open(self) -> pa.NativeFile:
        return self.storage.open_staged(self.ticket)

    def seal(self) -> str:
        if not self.storage.has_staged(self.ticket):
            raise NoSuchFile(f"cannot seal {self.target!r}: it is cancelled, or was never written", path=self.target)
        return self.ticket

    def discard(self) -> None:
        self.storage.cancel(self.ticket, self.target)


def _aside(ticket: str) -> str:
    return f"{TICKETS_FOLDER}/{ticket}"


class _Written(io.BytesIO):
    """A file while it is written."""

    def __init__(self, keep: Callable[[bytes], None]) -> None:
        super().__init__()
        self._keep = keep

    def close(self) -> None:
        if not self.closed:
            self._keep(self.getvalue())
        super().close()
