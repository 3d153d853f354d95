"""What one client remembers of the locks that it saw. Nothing of it is proof: every write is conditional."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from hudi_locks.clock import Clock
from hudi_locks_providers._wire.dynamodb_item import Item, LockItem, decode_token

__all__ = ["Memory"]


@dataclass(frozen=True)
class _Sight:
    version: str
    since_s: float


class Memory:
    """Counters, holders that are watched for signs of life, and requests of ours whose outcome nobody knows.

    Thread-safe: each step is one of a dict's own.

    Attributes:
        counters: The last value seen of each counter of fencing tokens.
        orphans: For each key the versions that a request of ours may have left, or may yet leave, there.
        met_jvm: Whether an item of the JVM's client was seen on the table's own lock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sights: dict[str, _Sight] = {}
        self.counters: dict[str, int] = {}
        self.orphans: defaultdict[str, set[str]] = defaultdict(set)
        self.met_jvm = False

    def note_counter(self, counter: str, item: Item | None) -> None:
        """Take note of a counter item as it was read.

        Raises:
            DamagedLockRecord: It holds no number.
        """
        token = decode_token(item, counter)
        if token is None:
            self.counters.pop(counter, None)
        else:
            self.counters[counter] = token

    def watches(self, key: str) -> bool:
        """Whether somebody held `key` when it was last looked at."""
        return key in self._sights

    def forget(self, key: str) -> None:
        """Watch `key` no more."""
        self._sights.pop(key, None)

    def watch(self, key: str, found: LockItem) -> float:
        """Since when the item has been seen under this version, on the monotonic clock."""
        sight = self._sights.get(key)
        if sight is None or sight.version != found.version:
            sight = self._sights[key] = _Sight(found.version, self._clock.monotonic())
        return sight.since_s

    def is_stale(self, key: str, found: LockItem, asked_s: float) -> bool:
        """Whether the holder gave no sign of life for longer than its own lease, on our monotonic clock alone.

        The watch begins after the answer that first showed this version, and counts to before the request for the one
        that shows it again: both to the holder's favour.
        """
        return asked_s - self.watch(key, found) > found.lease_ms / 1000

    def left_ms(self, key: str, found: LockItem) -> int:
        """Milliseconds until others may take the lock over, by this watch."""
        return found.lease_ms - round((self._clock.monotonic() - self.watch(key, found)) * 1000)
