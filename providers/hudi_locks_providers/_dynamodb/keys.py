"""The items of one Hudi table: its lock, those of its file groups, and the counters of their fencing tokens."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import ConfigError
from hudi_locks.lock import LockScope

__all__ = ["LockKeys"]

_COUNTERS: Final = 32
"""How many counters the file groups of a table share: file groups come and go, and one for each would stay for ever."""
_MOST_BYTES: Final = 2048
"""Longest partition key that DynamoDB takes."""


@dataclass(frozen=True)
class LockKeys:
    """Keys below one partition key value.

    Attributes:
        base: The value that JVM writers use for the table's lock.
    """

    base: str

    def lock(self, scope: LockScope) -> str:
        """The key of the lock of `scope`.

        Raises:
            ConfigError: It is longer than DynamoDB takes.
        """
        if scope.is_table:
            return self.base
        key = f"{self.groups}{len(scope.partition or '')}:{scope.partition}/{scope.file_id}"
        size = len(key.encode())
        if size > _MOST_BYTES:
            raise ConfigError(
                f"the DynamoDB key of the lock on {str(scope)[:80]}… has {size} bytes, {_MOST_BYTES} are allowed",
                scope=scope,
                size=size,
            )
        return key

    @property
    def groups(self) -> str:
        """With which the keys of all file groups begin."""
        return f"{self.base}#hudi_locks/"

    def name_scope(self, key: str) -> str:
        """What the key of a lock locks, as text."""
        if key == self.base:
            return str(LockScope.table())
        letters, _, rest = key.removeprefix(self.groups).partition(":")
        size = int(letters)
        return str(LockScope.file_group(rest[:size], rest[size + 1 :]))

    def counter(self, scope: LockScope) -> str:
        """The key of the counter that gives `scope` its fencing tokens."""
        if scope.is_table:
            return f"{self.base}#hudi_locks_token"
        return f"{self.base}#hudi_locks_token/{zlib.crc32(self.lock(scope).encode()) % _COUNTERS}"
