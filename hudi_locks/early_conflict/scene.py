"""What a task must know to look for conflicts before it writes. Made on the driver, used on executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.format.claim import FileGroupId
from hudi_locks.storage import Storage
from hudi_locks.timeline import TimelineLayout

__all__ = ["Scene"]


@dataclass(frozen=True)
class Scene:
    """One write among others. Picklable if its storage is.

    Attributes:
        storage: Of the table.
        layout: Of its timeline.
        requested: Requested time of the write.
        known: Instants that were completed on the snapshot that the write builds on: it has seen what they did.
        exempt: Pending table services, which neither check nor are checked against.
        heartbeat_limit_ms: How old a heartbeat may be, ms.
        is_bucketed: Whether a bucket index says where rows lie. Then two writes that make the same new bucket make file
            groups of different ids, and what is compared are buckets.
        checks_commits: Whether completed commits are looked at too.
        lock_options: Hudi's keys of the lock provider, for strategies that lock file groups. Never shown.
        clock: Measures how long a check takes.
    """

    storage: Storage
    layout: TimelineLayout
    requested: str
    known: frozenset[str] = frozenset()
    exempt: frozenset[str] = frozenset()
    heartbeat_limit_ms: int = 120_000
    is_bucketed: bool = False
    checks_commits: bool = False
    lock_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    clock: Clock = field(default_factory=SystemClock, repr=False)

    def key_of(self, group: FileGroupId) -> FileGroupId:
        """What stands for a file group where writes are compared."""
        return group.bucket if self.is_bucketed else group
