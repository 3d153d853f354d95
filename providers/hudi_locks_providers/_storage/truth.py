"""Whether an object store keeps the conditions that it accepts: tried on scratch keys, by several threads at once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendRefused
from hudi_locks.lock import Finding
from hudi_locks_providers._crowd import run_all
from hudi_locks_providers._storage.objects import Objects, PreconditionFailed

__all__ = ["StorageTruth"]

_CONTENDERS: Final = 8
_QUICK_KEYS: Final = 2
_KEYS: Final = 10
_CLOCK_SAMPLES: Final = 4
_SECOND_MS: Final = 1000
_MOST_OFFSET_MS: Final = 500
_OTHER: Final = "use a store that keeps conditional writes, or another lock provider such as dynamodb or zookeeper"
_PROVEN: Final[set[str]] = set()
"""Services that were proven within this process."""


class StorageTruth:
    """The truth probe of one bucket. One thread tries at a time: others would be taken for the service's own doing.

    Args:
        objects: Of the bucket.
        clock: To compare with the service's.
        folder: Where scratch keys may be made.
    """

    def __init__(self, objects: Objects, clock: Clock, folder: str) -> None:
        self._objects = objects
        self._clock = clock
        self._folder = f"{folder}/{uuid.uuid4().hex}"
        self._used: set[str] = set()
        self._trying = threading.Lock()

    def prove(self) -> None:
        """Return if the service is proven, now or, remembered on this machine, earlier.

        Raises:
            BackendRefused: It only pretends; names what failed.
        """
        marker = self._marker()
        if self._is_proven(marker):
            return
        with self._trying:
            if not self._is_proven(marker):
                self._prove(marker)

    def _is_proven(self, marker: Path) -> bool:
        return marker.name in _PROVEN or (marker.exists() and not self._is_local)

    @property
    def _is_local(self) -> bool:
        return self._objects.location.service == "memory"

    def _prove(self, marker: Path) -> None:
        for finding in self._try(self._conditions(_QUICK_KEYS)):
            if not finding.ok:
                raise BackendRefused(
                    f"{self._objects.location.url('')} {self._objects.endpoint}: {finding.name}: {finding.found};"
                    f" {finding.advice}",
                    finding=finding.name,
                    key=self._objects.location.bucket,
                )
        _PROVEN.add(marker.name)
        if not self._is_local:
            _write_marker(marker)

    def examine(self) -> tuple[Finding, ...]:
        """Everything, as findings for a person."""
        with self._trying:
            return tuple(self._try([*self._conditions(_KEYS), self._compare_clocks]))

    def _conditions(self, keys: int) -> list[Callable[[], Finding]]:
        return [
            self._create_once,
            self._refuse_stale,
            self._refuse_missing,
            partial(self._race_creates, keys),
            partial(self._race_updates, keys),
        ]

    def _try(self, trials: list[Callable[[], Finding]]) -> Iterator[Finding]:
        try:
            for trial in trials:
                yield trial()
        finally:
            failed = list(filter(None, run_all([partial(self._objects.remove, key) for key in self._used])))
        if failed:
            yield Finding("scratch-removed", True, str(failed[0]), f"delete what lies under {self._folder} by hand")

    def _key(self, name: str) -> str:
        key = f"{self._folder}/{name}"
        self._used.add(key)
        return key

    def _wins(self, key: str, data: bytes, version: Any) -> bool:
        try:
            self._objects.put(key, data, version)
        except PreconditionFailed:
            return False
        return True

    def _holds(self, key: str, data: bytes) -> bool:
        found = self._objects.read(key)
        return found is not None and found.data == data

    def _create_once(self) -> Finding:
        key = self._key("once")
        first, second = self._wins(key, b"first", "create"), self._wins(key, b"second", "create")
        kept = self._holds(key, b"first")
        found = f"a second create of one key was {_said(second)}, and the content is {_kept(kept)}"
        return _judge("create-once", found, ok=first and not second and kept)

    def _refuse_stale(self) -> Finding:
        key = self._key("stale")
        stale = self._objects.put(key, b"first", "create")
        second = self._wins(key, b"second", stale)
        third = self._wins(key, b"third", stale)
        kept = self._holds(key, b"second")
        found = (
            f"a write over the present version was {_said(second)}, one over a stale version {_said(third)}, and the"
            f" content is {_kept(kept)}"
        )
        return _judge("stale-version-refused", found, ok=second and not third and kept)

    def _refuse_missing(self) -> Finding:
        key = self._key("missing")
        wrote = self._wins(key, b"second", self._objects.put(self._key("there"), b"first", "create"))
        absent = self._objects.read(key) is None
        found = (
            f"a write over a key that is not there was {_said(wrote)}, and it is {'not ' if absent else ''}there now"
        )
        return _judge("missing-key-refused", found, ok=not wrote and absent)

    def _race_creates(self, keys: int) -> Finding:
        wins = [self._race(self._key(f"race-{number}"), "create") for number in range(keys)]
        return self._judge_race("create-race-has-one-winner", wins)

    def _race_updates(self, keys: int) -> Finding:
        wins = []
        for number in range(keys):
            key = self._key(f"update-{number}")
            wins.append(self._race(key, self._objects.put(key, b"first", "create")))
        return self._judge_race("update-race-has-one-winner", wins)

    def _race(self, key: str, version: Any) -> int:
        """How many of several contenders won; those who got no answer neither won nor lost."""
        tries = [partial(self._wins, key, b"contender %d" % number, version) for number in range(_CONTENDERS)]
        results = run_all(tries)
        failed = [result for result in results if isinstance(result, Exception)]
        if failed and True not in results:
            raise failed[0]
        return results.count(True)

    def _judge_race(self, name: str, wins: list[int]) -> Finding:
        found = f"{_CONTENDERS} contenders on {len(wins)} keys: {min(wins)} to {max(wins)} winners of each"
        return _judge(name, found, ok=all(won == 1 for won in wins))

    def _compare_clocks(self) -> Finding:
        """Services tell the time of a write in whole seconds: each write gives bounds, and all must hold at once."""
        least_ms, most_ms = float("-inf"), float("inf")
        key = self._key("clock")
        for number in range(_CLOCK_SAMPLES):
            sent_ms = self._clock.wall_ms()
            self._objects.put(key, b"%d" % number, "overwrite")
            answered_ms = self._clock.wall_ms()
            stored = self._objects.read(key)
            if stored is not None:
                least_ms = max(least_ms, stored.modified_ms - answered_ms)
                most_ms = min(most_ms, stored.modified_ms + _SECOND_MS - sent_ms)
        ok = least_ms <= _MOST_OFFSET_MS and most_ms >= -_MOST_OFFSET_MS
        found = f"the service's clock is between {least_ms:+.0f} and {most_ms:+.0f} ms from this machine's"
        return Finding("clock-offset", ok, found, "" if ok else "keep this machine's clock in step, as by NTP")

    def _marker(self) -> Path:
        location = self._objects.location
        named = f"{location.service} {self._objects.endpoint} {location.account} {location.bucket}"
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "hudi-locks" / "proven" / hashlib.sha256(named.encode()).hexdigest()[:32]


def _judge(name: str, found: str, *, ok: bool) -> Finding:
    return Finding(name, ok, found, "" if ok else f"two writers could hold one lock: {_OTHER}")


def _said(accepted: bool) -> str:  # noqa: FBT001  # its one argument is plain
    return "accepted" if accepted else "refused"


def _kept(kept: bool) -> str:  # noqa: FBT001  # see above
    return "as it should be" if kept else "another"


def _write_marker(marker: Path) -> None:
    with contextlib.suppress(OSError):  # a machine without a cache folder is probed each time
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
