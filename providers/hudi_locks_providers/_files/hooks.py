"""Back doors to a lock file for the conformance kit: what others could do to it, done on purpose."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

from hudi_locks.config import lock_keys
from hudi_locks.lock import LockScope
from hudi_locks_providers._files import local, tokens
from hudi_locks_providers._files.hdfs import HdfsLockFolder
from hudi_locks_providers._files.meddling import Meddle, MeddledFolder, MeddledSystem
from hudi_locks_providers._files.webhdfs import WebHdfs

__all__ = ["FileSystemHooks"]


class FileSystemHooks:
    """Reads and damages the lock file of one provider, on a local file system or HDFS, past the provider.

    Attributes:
        virtual_time: Whether it keeps the time of its clock alone.
        delivers_once: Whether no request arrives twice: a kernel repeats none, nor does our WebHDFS client.
        faults: None, for a file system answers with errors of the operating system.
        restart: None, for there is no server.
        waiters: None, for nobody queues.
        lease_options: Options with which a lease ends by itself.
        short_lease_options: The same: a minute is the shortest.
        other_lease_options: Options with which it does so later.

    Args:
        provider: The `FileSystemLockProvider` whose file is meant.
    """

    virtual_time: ClassVar[bool] = True
    delivers_once: ClassVar[bool] = True
    faults: ClassVar[None] = None
    restart: ClassVar[None] = None
    waiters: ClassVar[None] = None
    lease_options: ClassVar[Mapping[str, str]] = {lock_keys.FILESYSTEM_EXPIRE.name: "1"}
    short_lease_options: ClassVar[Mapping[str, str]] = lease_options
    other_lease_options: ClassVar[Mapping[str, str]] = {lock_keys.FILESYSTEM_EXPIRE.name: "2"}

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        """Options for a place that nobody has used, nor made."""
        given = options.get(lock_keys.FILESYSTEM_PATH.name) or f"{options['hoodie.base.path']}/.hoodie"
        return {**options, lock_keys.FILESYSTEM_PATH.name: f"{given}/conformance/{name}"}

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        """Options for a place that cannot be reached."""
        return {**options, lock_keys.FILESYSTEM_PATH.name: "/dev/null/locks"}

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        folder = provider._folder  # noqa: SLF001  # a back door
        self._folder = folder.inner if isinstance(folder, MeddledFolder) else folder

    @property
    def delivers_in_order(self) -> bool:
        """Whether no request arrives after its client gave up: a kernel answers when a call is over."""
        return not isinstance(self._folder, HdfsLockFolder)

    def _door(self, scope: LockScope) -> _LocalDoor | _HdfsDoor:
        path = self._provider.holder_path(scope)
        if isinstance(self._folder, HdfsLockFolder):
            return _HdfsDoor(self._folder.hdfs, path)
        return _LocalDoor(Path(path))

    def peek(self, scope: LockScope) -> bytes | None:
        """The raw record, or None."""
        return self._door(scope).read()

    def record_form(self, scope: LockScope) -> dict[str, str]:
        """The file's name, and the fields in it, each with its type."""
        data = self.peek(scope)
        if data is None:
            return {}
        fields = json.loads(data) if data else {}
        types = {name: type(value).__name__ for name, value in fields.items()}
        return {**types, "(file)": self._provider.holder_path(scope)}

    def expire(self, scope: LockScope) -> None:
        """Make the record look as old as if its holder had died long ago."""
        self._door(scope).set_modified(0)

    def steal(self, scope: LockScope) -> None:
        """Replace the record by that of another writer."""
        door = self._door(scope)
        door.remove()
        door.write(b'{"lockThreadName":"somebody else"}')

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        """Put `data` in place of a record, as a foreign program would."""
        door = self._door(scope)
        door.write(data)
        door.set_modified(self._provider.clock.wall_ms())

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        """Let the call that makes the file fail as over a bad network: before its effect, or with its answer lost."""
        target, name = (self._folder.hdfs, "rename") if isinstance(self._folder, HdfsLockFolder) else (local, "link")
        call = getattr(target, name)

        def fail(*given: Any) -> None:
            if after_effect:
                call(*given)
            raise OSError(errno.EIO, "planted by the conformance kit")

        with mock.patch.object(target, name, fail):
            yield

    @contextmanager
    def tamper(self, meddle: Meddle) -> Iterator[None]:
        """Let each step on a lock file pass through `meddle(name, send)`; a `TimeoutError` of it is no answer.

        To be entered before the provider's first lock.
        """
        with mock.patch.object(self._provider, "_folder", MeddledFolder(self._folder, meddle)):
            self._provider.__dict__.pop("_table_file", None)
            yield

    @contextmanager
    def tamper_os(self, meddle: Meddle) -> Iterator[None]:
        """Let calls of the operating system pass through `meddle(name, send)`, for all providers of this process."""
        with ExitStack() as stack:
            for module in (local, tokens):
                stack.enter_context(mock.patch.object(module, "os", MeddledSystem(os, meddle)))
            yield

    def remove_parent(self, scope: LockScope) -> None:
        """Delete the folder of the record, with all that is in it."""
        path = self._provider.holder_path(scope)
        if isinstance(self._folder, HdfsLockFolder):
            self._folder.hdfs.delete(path.rpartition("/")[0])
        else:
            shutil.rmtree(Path(path).parent)

    def remove(self, scope: LockScope) -> None:
        """Delete the record, as a JVM peer does."""
        self._door(scope).remove()


class _LocalDoor:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> bytes | None:
        return self._path.read_bytes() if self._path.exists() else None

    def write(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(data)

    def set_modified(self, modified_ms: int) -> None:
        os.utime(self._path, ns=(modified_ms * 1_000_000,) * 2)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


class _HdfsDoor:
    def __init__(self, hdfs: WebHdfs, path: str) -> None:
        self._hdfs = hdfs
        self._path = path

    def read(self) -> bytes | None:
        return self._hdfs.read(self._path) if self._hdfs.find_status(self._path) else None

    def write(self, data: bytes) -> None:
        self._hdfs.delete(self._path)
        self._hdfs.create(self._path, data)

    def set_modified(self, modified_ms: int) -> None:
        self._hdfs.set_modified(self._path, modified_ms)

    def remove(self) -> None:
        self._hdfs.delete(self._path)
