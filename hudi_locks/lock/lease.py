"""What a lock covers, who holds it until when, and who this process and thread are."""

from __future__ import annotations

import enum
import os
import socket
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from hudi_locks.errors import ConfigError, LockLost

__all__ = ["Holder", "Identity", "Lease", "LockScope", "LossReason", "Owner", "generation"]


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


class LossReason(enum.Enum):
    """Why a hold ended without its release."""

    EXPIRED = "the lease ran out before a renewal succeeded"
    STOLEN = "the record names another owner"
    DELETED = "the record is gone"
    SESSION = "the session with the lock service ended"
    UNREACHABLE = "the lock service did not answer within the safety margin"
    FORKED = "the lock belongs to the parent process"


@dataclass(frozen=True)
class Owner:
    """Who asks for a lock. Two owners with the same fields are the same owner.

    Attributes:
        id: Unique for each acquiring party, for instance a UUID.
        host: Name of its host.
        pid: Its process id.
        thread: Name of the acquiring thread.
        application: What a person would call the job, such as Spark's application id.
    """

    id: str
    host: str = ""
    pid: int = 0
    thread: str = ""
    application: str = ""

    def __str__(self) -> str:
        where = f"pid {self.pid} on {self.host}" if self.host else self.id or "an unknown writer"
        return f"{self.application} ({where})" if self.application else where


@dataclass(frozen=True)
class Lease:
    """One successful acquire: the proof that its owner held `scope` at that moment.

    Attributes:
        scope: What is held.
        owner: By whom.
        token: Fencing token, greater than that of every earlier hold of this scope; None without FENCING.
        deadline_s: When the right ends unless renewed, on the provider's monotonic clock, counted from *before* the
            request was sent; None if it never expires.
        state: Whatever the provider needs to renew and release. Opaque to everybody else.
    """

    scope: LockScope
    owner: Owner
    token: int | None = None
    deadline_s: float | None = None
    state: Any = field(default=None, compare=False, repr=False)

    def lost(self, reason: LossReason, *, key: str) -> LockLost:
        """The error for a hold that ended; `key` is where its lock lives in the backend: a path, node or item."""
        return LockLost(
            f"{self.owner} does not hold {key}: {reason.value}",
            scope=self.scope,
            owner=self.owner,
            key=key,
            reason=reason,
        )


@dataclass(frozen=True)
class Holder:
    """The present holder as the backend tells it, also when that is a JVM writer.

    Attributes:
        key: Where the lock lives in the backend: a path, node or item.
        owner: Who holds it; fields that the record does not tell are empty.
        since_ms: Wall clock time of the acquire in ms since the epoch, or None.
        age_ms: Milliseconds since the record last changed, by the backend's clock where it has one, or None.
        token: What `break_if` compares: identifies this very hold.
        expires_in_ms: Milliseconds until others may take over; None if never or not known; negative if expired.
        raw: The record as text, for a person to read, without secrets.
    """

    key: str
    owner: Owner
    since_ms: int | None = None
    age_ms: int | None = None
    token: str = ""
    expires_in_ms: int | None = None
    raw: str = ""


class _Generation:
    number = 0

    def advance(self) -> None:
        self.number += 1


_GENERATION: Final = _Generation()
os.register_at_fork(after_in_child=_GENERATION.advance)


def generation() -> int:
    """A number that is another one in every forked child: what was made under a different one is not ours to use."""
    return _GENERATION.number


class Identity:
    """Makes the owners of one manager: one for each thread, the same one each time.

    Args:
        application: What a person would call the job.
    """

    def __init__(self, application: str = "") -> None:
        self._application = application
        self._host = socket.gethostname()
        self._local = threading.local()

    def owner(self) -> Owner:
        """The owner that the calling thread is."""
        cached: tuple[int, Owner] | None = getattr(self._local, "cached", None)
        if cached is None or cached[0] != generation():
            cached = self._local.cached = (generation(), self._new_owner())
        return cached[1]

    def _new_owner(self) -> Owner:
        thread = threading.current_thread().name
        return Owner(str(uuid.uuid4()), self._host, os.getpid(), thread, self._application)
