"""Who holds what, since when and until when: values without behaviour."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from hudi_locks.errors import LockLost
from hudi_locks.lock.scope import LockScope

__all__ = ["Holder", "Lease", "LossReason", "Owner"]


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
