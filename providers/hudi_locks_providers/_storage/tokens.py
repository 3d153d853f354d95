"""Counters of fencing tokens: one small object each, advanced by conditional writes.

An object of its own, since a JVM peer writes the lock's object whole and would wipe a number in it. It is advanced
after the lock was seen to be free, and before it is taken under the condition that it did not change since: so tokens
have the order of the holds, whoever pauses in between.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any, Final

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendUnavailable
from hudi_locks_providers._storage.objects import Objects, PreconditionFailed

__all__ = ["StorageTokens"]

_TRIES: Final = 50


@dataclass(frozen=True)
class _Count:
    number: int
    version: Any


class StorageTokens:
    """The counters of one table. Thread-safe."""

    def __init__(self, objects: Objects, clock: Clock, folder: str) -> None:
        self._objects = objects
        self._clock = clock
        self._folder = folder
        self._known: dict[str, _Count] = {}

    def advance(self, name: str, by: int = 1) -> int:
        """The last of `by` new numbers of the counter `name`, all greater than every number that it gave before.

        Raises:
            BackendUnavailable: No answer; some numbers may be left out.
        """
        key = f"{self._folder}/{name}"
        for _ in range(_TRIES):
            count = self._known.pop(name, None) or self._read(key)
            number = count.number + by
            data = json.dumps({"token": number, "nonce": uuid.uuid4().hex}).encode()
            try:
                version = self._objects.put(key, data, count.version)
            except PreconditionFailed:
                version = self._find_own(key, data)
                if version is None:
                    continue
            self._known[name] = _Count(number, version)
            return number
        raise BackendUnavailable(
            f"{self._objects.location.url(key)}: {_TRIES} times in a row another writer advanced it first", key=key
        )

    def _find_own(self, key: str, data: bytes) -> Any:
        """The version of what was written, if it is there: a write that came twice conflicts with itself."""
        found = self._objects.read(key)
        return found.version if found is not None and found.data == data else None

    def _read(self, key: str) -> _Count:
        """The counter as it is; one that was deleted or damaged goes on at the wall clock, which no counter outruns."""
        found = self._objects.read(key)
        if found is None:
            return _Count(self._clock.wall_ms(), "create")
        try:
            number = json.loads(found.data)["token"]
        except (ValueError, KeyError, TypeError):
            number = None
        return _Count(number if isinstance(number, int) else self._clock.wall_ms(), found.version)
