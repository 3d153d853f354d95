"""Audit files of Hudi's storage lock: one for each hold of the table's lock, where somebody asked for them."""

from __future__ import annotations

import json
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.errors import LockError
from hudi_locks.redaction import open_log
from hudi_locks_providers._storage.objects import Objects, PreconditionFailed

__all__ = ["Audit", "Trail"]

_logger = open_log(__name__)
_ENABLED: Final = "STORAGE_LOCK_AUDIT_SERVICE_ENABLED"
_LOOK_AGAIN_S: Final = 300.0


class Trail:
    """The audit file of one hold. What fails is logged, and changes nothing for the lock."""

    def __init__(self, objects: Objects, key: str, hold: str, *, started_ms: int) -> None:
        self._objects = objects
        self._key = key
        self._hold = hold
        self._started_ms = started_ms
        self._lines: list[str] = []

    def add(self, state: str, at_ms: int, *, lease_ms: int) -> None:
        """Note START, RENEW or END; the whole file is written again each time, as the JVM does."""
        line = {
            "ownerId": self._hold,
            "transactionStartTime": self._started_ms,
            "timestamp": at_ms,
            "state": state,
            "lockExpiration": at_ms + lease_ms,
            "lockHeld": state != "END",
        }
        self._lines.append(json.dumps(line, separators=(",", ":")))
        try:
            self._objects.put(self._key, ("\n".join(self._lines) + "\n").encode(), "overwrite")
        except (LockError, PreconditionFailed) as error:
            _logger.warning("the audit file %s was not written: %s", self._key, error)


class Audit:
    """Whether holds are to be audited, asked at most every five minutes, and their files."""

    def __init__(self, objects: Objects, clock: Clock, folder: str) -> None:
        self._objects = objects
        self._clock = clock
        self._folder = folder
        self._enabled = False
        self._asked_s = float("-inf")

    def begin(self, hold: str, at_ms: int, *, lease_ms: int) -> Trail | None:
        """The trail of a hold that begins now; None if nobody asked for one."""
        if not self._is_enabled():
            return None
        key = f"{self._folder}/audit/{at_ms}_{hold}.jsonl"
        trail = Trail(self._objects, key, hold, started_ms=at_ms)
        trail.add("START", at_ms, lease_ms=lease_ms)
        return trail

    def _is_enabled(self) -> bool:
        now_s = self._clock.monotonic()
        if now_s - self._asked_s >= _LOOK_AGAIN_S:
            self._asked_s = now_s
            self._enabled = self._ask()
        return self._enabled

    def _ask(self) -> bool:
        try:
            found = self._objects.read(f"{self._folder}/audit_enabled.json")
            told = json.loads(found.data) if found else {}
        except (LockError, ValueError) as error:
            _logger.warning("whether locks are audited cannot be read, so they are not: %s", error)
            return False
        return isinstance(told, dict) and told.get(_ENABLED) is True
