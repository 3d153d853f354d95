"""One hold of ours, and the names that follow from a scope."""

from __future__ import annotations

import hashlib
import threading

from hudi_locks.lock import LockScope
from hudi_locks.lock.lease import generation
from hudi_locks_providers._storage.audit import Trail
from hudi_locks_providers._storage.records import Seen
from hudi_locks_providers._wire.storage_lock import StorageRecord, decode_named

__all__ = ["Hold", "name_counter", "name_file_group", "name_hold"]


class Hold:
    """One hold of ours.

    Attributes:
        key: Where its record lies.
        record: As we last wrote it.
        seen: The object that holds it.
        trail: Its audit file, if somebody asked for one.
        generation: Of the process that made it; see `hudi_locks.lock.lease`.
        turn: Taken by whoever writes it: a release waits for a renewal that is under way.
        ended: Whether it was released.
    """

    def __init__(self, key: str, record: StorageRecord, seen: Seen, *, trail: Trail | None) -> None:
        self.key = key
        self.record = record
        self.seen = seen
        self.trail = trail
        self.generation = generation()
        self.turn = threading.Lock()
        self.ended = False


def name_file_group(scope: LockScope) -> str:
    """What a file group's lock is called: the same on every host, and never the same for two."""
    named = f"{len(scope.partition or '')}:{scope.partition}/{scope.file_id}"
    return hashlib.sha256(named.encode()).hexdigest()


def name_counter(scope: LockScope) -> str:
    """The counter of a scope: sixteen for all file groups, so that many of them need few requests, and few collide."""
    return "table" if scope.is_table else name_file_group(scope)[0]


def name_hold(found: Seen) -> str:
    """Identifies the hold that an object tells of; of a damaged record, its content."""
    if found.record is None:
        return f"content-{hashlib.sha256(found.data).hexdigest()[:32]}"
    return decode_named(found.record.owner).hold
