"""What a lock covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hudi_locks.errors import ConfigError

__all__ = ["LockScope"]


@dataclass(frozen=True)
class LockScope:
    """The whole table, or one file group of it.

    Attributes:
        partition: Partition path as the table has it ("" for an unpartitioned table); None for the table's own lock.
        file_id: Id of the file group; None for the table's own lock.
    """

    partition: str | None = None
    file_id: str | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.partition is None) != (self.file_id is None) or self.file_id == "":
            raise ConfigError(
                f"a lock covers the table or one file group, not partition={self.partition!r} file_id={self.file_id!r};"
                " use LockScope.table() or LockScope.file_group(partition, file_id)",
                partition=self.partition,
                file_id=self.file_id,
            )
        # Kept, since every lock that is taken and released is looked up a dozen times.
        object.__setattr__(self, "_hash", hash((self.partition, self.file_id)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return LockScope, (self.partition, self.file_id)  # another process hashes texts in another way

    @classmethod
    def table(cls) -> LockScope:
        """The scope of the table's own lock."""
        return cls()

    @classmethod
    def file_group(cls, partition: str, file_id: str) -> LockScope:
        """The scope of one file group; `partition` is "" in an unpartitioned table."""
        return cls(partition, file_id)

    @property
    def is_table(self) -> bool:
        """Whether this is the table's own lock."""
        return self.file_id is None

    def __str__(self) -> str:
        return "table" if self.is_table else "/".join(part for part in (self.partition, self.file_id) if part)
