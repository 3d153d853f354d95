"""What all attempts of one client share, and the value of one hold."""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import dataclass, field

from hudi_locks.clock import Clock
from hudi_locks.lock import Lease, LockScope, Owner
from hudi_locks_providers._dynamodb.keys import LockKeys
from hudi_locks_providers._dynamodb.memory import Memory
from hudi_locks_providers._dynamodb.requests import DynamoRequests, Instead
from hudi_locks_providers._wire.dynamodb_item import RECORD_VERSION, Item, decode_item, encode_item

__all__ = ["Context", "DynamoHold", "version_of"]


@dataclass(eq=False)
class DynamoHold:
    """One hold of one item; the state of a lease.

    Attributes:
        key: Of the item.
        owner: Who holds it.
        owner_name: As in the item.
        versions: Record version numbers that the item may have now: the last one known, and those of renewals whose
            answers were lost.
        context: Of the client that acquired it.
        pid: Of the process that did.
        is_over: Whether it was released, or is known to be lost.
        lock: Held while a request changes it.
    """

    key: str
    owner: Owner
    owner_name: str
    versions: list[str]
    context: Context
    pid: int = field(default_factory=os.getpid)
    is_over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, eq=False)
class Context:
    """One client of one lock table.

    Attributes:
        requests: To the table.
        memory: Of what was seen there.
        keys: Of the Hudi table's locks.
        clock: The source of time.
        lease_ms: How long our holds may be silent.
        owner_name: Ours in items.
    """

    requests: DynamoRequests
    memory: Memory
    keys: LockKeys
    clock: Clock
    lease_ms: int
    owner_name: str

    def draft(self, scope: LockScope, owner: Owner, token: int | None) -> Item:
        """The item of a new hold, under a version of its own."""
        return encode_item(
            self.keys.lock(scope),
            owner,
            owner_name=self.owner_name,
            version=str(uuid.uuid4()),
            lease_ms=self.lease_ms,
            token=token,
            since_ms=self.clock.wall_ms(),
        )

    def grant(self, scope: LockScope, owner: Owner, item: Item, *, token: int, sent_s: float) -> Lease:
        """The lease of an item that was put by a request sent at `sent_s`."""
        key = self.keys.lock(scope)
        self.memory.forget(key)
        hold = DynamoHold(key, owner, self.owner_name, [version_of(item)], self)
        return Lease(scope, owner, token, sent_s + self.lease_ms / 1000, hold)

    def judge(self, scope: LockScope, item: Item | None, asked_s: float) -> Instead | None:
        """What a new item may take the place of, given what is there; None if somebody holds the lock.

        Raises:
            DamagedLockRecord: What is there cannot be judged.
        """
        key = self.keys.lock(scope)
        if item is None:
            self.memory.forget(key)
            return Instead()
        found = decode_item(item)
        if found.is_released:
            return Instead(released=True)
        self.memory.met_jvm |= scope.is_table and not found.is_ours
        if found.version in self.memory.orphans.get(key, ()) or self.memory.is_stale(key, found, asked_s):
            return Instead(found.version)
        return None

    def has_landed(self, key: str, version: str) -> bool:
        """Whether a put whose answer was lost took effect; if it did not, or nobody knows, it may still do so.

        Raises:
            BackendUnavailable: Nobody knows.
        """
        landed = False
        try:
            landed = version_of(self.requests.find(key)) == version
        finally:
            if not landed:
                self.memory.orphans[key].add(version)
        return landed


def version_of(item: Item | None) -> str:
    """The record version number of an item; empty if it has none."""
    return str((item or {}).get(RECORD_VERSION, {}).get("S") or "")
