"""What a lock of the Hive Metastore tells of its holder: user, host, and a text of 128 letters at most, the agent.

JVM Hudi leaves the agent at "Unknown". Ours holds who asks, and a word of the very request, by which the lock is found
again if the answer is lost.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from hudi_locks.lock import Owner

__all__ = ["MOST_LETTERS", "LockRow", "decode_owner", "encode_agent", "is_request"]

MOST_LETTERS: Final = 128
"""What the metastore's columns for user, host and agent take."""
_MARK: Final = "hudi-locks"
_WORDS: Final = 5


@dataclass(frozen=True)
class LockRow:
    """One lock as the metastore shows it.

    Attributes:
        lock_id: Its number; greater than that of every request before.
        database: As the metastore has it.
        table: Likewise; empty for a lock of the whole database.
        is_granted: Whether it holds; otherwise it waits.
        transaction: The Hive transaction that it belongs to; 0 for none.
        user: Who asked.
        host: From where.
        agent: With which program.
        since_ms: When it was granted, by the metastore's clock, ms since the epoch; 0 if it was not.
        heartbeat_ms: The last sign of life, likewise.
    """

    lock_id: int
    database: str
    table: str
    is_granted: bool
    transaction: int
    user: str
    host: str
    agent: str
    since_ms: int
    heartbeat_ms: int

    @classmethod
    def from_element(cls, element: Any, *, granted: int) -> LockRow:
        """The row for a `ShowLocksResponseElement`; `granted` is the number of the state ACQUIRED."""
        return cls(
            lock_id=element.lockid,
            database=element.dbname or "",
            table=element.tablename or "",
            is_granted=element.state == granted,
            transaction=element.txnid or 0,
            user=element.user or "",
            host=element.hostname or "",
            agent=element.agentInfo or "",
            since_ms=element.acquiredat or 0,
            heartbeat_ms=element.lastheartbeat or 0,
        )

    def show(self) -> str:
        """All of it as text for a person."""
        return json.dumps(asdict(self), sort_keys=True)


def encode_agent(owner: Owner, request: str) -> str:
    """The agent of one request; the application is cut where there is no room for all of it."""
    words = (_MARK, request, str(owner.pid), quote(owner.id, safe=""), quote(owner.application, safe=""))
    return " ".join(words)[:MOST_LETTERS]


def is_request(row: LockRow, request: str) -> bool:
    """Whether this lock was asked for by the request of that word."""
    words = row.agent.split(" ")
    return len(words) > 1 and words[0] == _MARK and words[1] == request


def decode_owner(row: LockRow) -> Owner:
    """The owner as far as the lock tells; of other programs the host, and the user in place of an id."""
    words = row.agent.split(" ")
    if len(words) != _WORDS or words[0] != _MARK or not words[2].isdecimal():
        return Owner(row.user, row.host, application="" if row.agent == "Unknown" else row.agent)
    return Owner(unquote(words[3]), row.host, int(words[2]), application=unquote(words[4]))
