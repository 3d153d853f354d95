"""Back doors to a lock file for the conformance kit: what others could do to it, done on purpose."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

from hudi_locks.config import lock_keys
from hudi_locks.lock import LockScope
from hudi_locks_providers._files import local

__all__ = ["FileSystemHooks"]


class FileSystemHooks:
    """Reads and damages the lock file of one provider on a local file system, past the provider.

    Attributes:
        virtual_time: Whether it keeps the time of its clock alone.
        lease_options: Options with which a lease ends by itself.

    Args:
        provider: The `FileSystemLockProvider` whose file is meant.
    """

    virtual_time: ClassVar[bool] = True
    lease_options: ClassVar[Mapping[str, str]] = {lock_keys.FILESYSTEM_EXPIRE.name: "1"}

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

    def _path(self, scope: LockScope) -> Path:
        return Path(self._provider.holder_path(scope))

    def peek(self, scope: LockScope) -> bytes | None:
        """The raw record, or None."""
        path = self._path(scope)
        return path.read_bytes() if path.exists() else None

    def expire(self, scope: LockScope) -> None:
        """Make the record look as old as if its holder had died long ago."""
        os.utime(self._path(scope), ns=(0, 0))

    def steal(self, scope: LockScope) -> None:
        """Replace the record by that of another writer."""
        path = self._path(scope)
        other = path.with_name(f"{path.name}.other")
        other.write_bytes(b'{"lockThreadName":"somebody else"}')
        other.replace(path)

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        """Put `data` in place of a record, as a foreign program would."""
        path = self._path(scope)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, ns=(self._provider.clock.wall_ms() * 1_000_000,) * 2)

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        """Let the call that makes the file fail as over a bad network: before its effect, or with its answer lost."""
        link = local.link

        def fail(fd: int, name: str, path: str) -> None:
            if after_effect:
                link(fd, name, path)
            raise OSError(errno.EIO, "planted by the conformance kit")

        with mock.patch.object(local, "link", fail):
            yield

    def remove(self, scope: LockScope) -> None:
        """Delete the record, as a JVM peer does."""
        self._path(scope).unlink(missing_ok=True)
