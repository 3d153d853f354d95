"""Back doors to a lock file for the conformance kit: what others could do to it, done on purpose."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hudi_locks.lock import LockScope

__all__ = ["FileSystemHooks"]


class FileSystemHooks:
    """Reads and damages the lock file of one provider on a local file system, past the provider.

    Args:
        provider: The `FileSystemLockProvider` whose file is meant.
    """

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

    def remove(self, scope: LockScope) -> None:
        """Delete the record, as a JVM peer does."""
        self._path(scope).unlink(missing_ok=True)
