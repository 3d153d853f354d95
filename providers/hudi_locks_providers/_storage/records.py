"""Lock records in an object store: what was last seen of each, and writes whose answers may be lost."""

from __future__ import annotations

import contextlib
import threading
import uuid
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendUnavailable, LockError
from hudi_locks.lock import LossReason
from hudi_locks_providers._storage.objects import Objects, PreconditionFailed, Stored
from hudi_locks_providers._wire.storage_lock import StorageRecord, decode_record, encode_record

__all__ = ["Gone", "Records", "Seen"]

_MOST_REMEMBERED: Final = 10_000
_TRIES: Final = 3


class Gone(Exception):  # an answer, not an error
    """The record under the key is no longer that of the hold."""

    def __init__(self, reason: LossReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Seen:
    """An object as it was last read or written.

    Attributes:
        record: What it says; None if it cannot be read, or is not there.
        data: Its bytes.
        version: The condition under which it may be written over: its version, or "create" if it is not there.
        modified_ms: By the service's clock; 0 if we wrote it ourselves.
    """

    record: StorageRecord | None
    data: bytes
    version: Any = field(repr=False)
    modified_ms: int = 0

    @property
    def is_absent(self) -> bool:
        """Whether nothing is there."""
        return bool(self.version == "create")


_ABSENT: Final = Seen(None, b"", "create")


class Records:
    """The records of one table. Thread-safe."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, Seen] = {}
        self._unsure: dict[str, set[str]] = {}

    def recall(self, key: str) -> Seen | None:
        """What was last seen under `key`; None if that is not known."""
        return self._known.get(key)

    def find(self, key: str) -> Seen:
        """What is under `key` now."""
        return self._remember(key, _see(self._objects.read(key)))

    def is_orphan(self, key: str, record: StorageRecord) -> bool:
        """Whether we wrote the record in an attempt that failed without an answer: nobody holds it."""
        return record.owner in self._unsure.get(key, ())

    def place(self, key: str, record: StorageRecord, over: Seen) -> Seen | None:
        """Write a new hold over what was seen; None if somebody else was faster.

        Raises:
            BackendUnavailable: The outcome is a failure, or not known; then the write is kept from taking effect later
                as far as that is possible, and what is left of it is known to be nobody's.
        """
        data = encode_record(record)
        try:
            version = self._objects.put(key, data, over.version)
        except PreconditionFailed:
            return self._find_own(key, data)
        except BackendUnavailable:
            seen = self._resolve(key, record, over)
            if seen is None:
                raise
            return seen
        return self._remember(key, Seen(record, data, version))

    def _find_own(self, key: str, data: bytes) -> Seen | None:
        """What is there if that is what was sent: a write that was repeated on its way conflicts with itself."""
        found = self.find(key)
        return found if found.data == data else None

    def _resolve(self, key: str, record: StorageRecord, over: Seen) -> Seen | None:
        """What became of a write without an answer: ours if it took effect, else it is kept from doing so late."""
        try:
            found = self.find(key)
            if found.record != record and found.version == over.version:
                self._bar(key, found)
                found = self.find(key)
        except LockError:
            self._unsure.setdefault(key, set()).add(record.owner)
            self.forget(key)
            return None
        return found if found.record == record else None

    def _bar(self, key: str, found: Seen) -> None:
        """Write another free record, so that the version which a late write waits for is gone."""
        free = StorageRecord(expired=True, valid_until_ms=self._clock.wall_ms(), owner=str(uuid.uuid4()))
        try:
            self._objects.put(key, encode_record(free), found.version)
        except PreconditionFailed:
            return

    def rewrite(self, key: str, record: StorageRecord, own: Seen) -> Seen:
        """Write over the record of a hold of ours; one whose version changed by our own lost answer is found again.

        Raises:
            Gone: It is another's by now, or was let go of, or deleted.
        """
        data = encode_record(record)
        for _ in range(_TRIES):
            try:
                version = self._objects.put(key, data, own.version)
            except PreconditionFailed:  # noqa: PERF203  # each turn is a request
                own = self._find_again(key, record.owner)
                if own.data == data:
                    return own  # it came twice
            else:
                return self._remember(key, Seen(record, data, version))
        raise BackendUnavailable(f"{self._objects.location.url(key)}: the record changes all the time", key=key)

    def _find_again(self, key: str, owner: str) -> Seen:
        found = self.find(key)
        if found.is_absent:
            raise Gone(LossReason.DELETED)
        if found.record is None or found.record.owner != owner or found.record.expired:
            raise Gone(LossReason.STOLEN)
        return found

    def expire(self, key: str, found: Seen) -> bool:
        """Mark what was found as let go of; False if it changed meanwhile."""
        record = found.record or StorageRecord(expired=True, valid_until_ms=0, owner=str(uuid.uuid4()))
        freed = replace(record, expired=True)
        data = encode_record(freed)
        try:
            version = self._objects.put(key, data, found.version)
        except PreconditionFailed:
            self.forget(key)
            return False
        self._remember(key, Seen(freed, data, version))
        return True

    def forget(self, key: str) -> None:
        """Read it anew before it is written next."""
        with self._lock:
            self._known.pop(key, None)

    def free_orphans(self) -> None:
        """Mark as let go of what failed attempts of ours may have left; what cannot be reached expires by itself."""
        for key in [key for key, owners in self._unsure.items() if owners]:
            with contextlib.suppress(LockError):
                found = self.find(key)
                if found.record is not None and self.is_orphan(key, found.record):
                    self.expire(key, found)

    def _remember(self, key: str, seen: Seen) -> Seen:
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = seen
            if len(self._known) > _MOST_REMEMBERED:
                self._known.pop(next(iter(self._known)))
        return seen


def _see(stored: Stored | None) -> Seen:
    if stored is None:
        return _ABSENT
    return Seen(decode_record(stored.data), stored.data, stored.version, stored.modified_ms)
