"""Conflict resolution: which concurrent instants may not both be published (Hudi's ConflictResolutionStrategy)."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import ConfigError
from hudi_locks.format.claim import FileGroupId

__all__ = [
    "BucketIndexConcurrentFileWrites",
    "ConcurrentOperation",
    "ConflictResolutionStrategy",
    "SimpleConcurrentFileWrites",
    "load_strategy",
]

COMPACT: Final = "COMPACT"


@dataclass(frozen=True)
class ConcurrentOperation:
    """An instant as a strategy sees it: the one to publish, or one that the writer did not build on.

    Attributes:
        requested: Its requested time.
        action: Its action; a pending compaction is a `compaction`, a completed one a `commit`.
        operation: Hudi's name of the operation, such as UPSERT, COMPACT or CLUSTER; None if it is not known.
        is_completed: Whether it is published; else it is a plan.
        groups: File groups that it changes or replaces.
        paths: Base files that it wrote, relative to the base path; of a plan none.
        covers_table: Whether it concerns every file group, as a restore does.
        completion_time: When it was published, or None.
        writer: Who made it, for a person.
    """

    requested: str
    action: str
    operation: str | None
    is_completed: bool
    groups: frozenset[FileGroupId]
    paths: frozenset[str] = frozenset()
    covers_table: bool = False
    completion_time: str | None = None
    writer: str = "a JVM writer"


class ConflictResolutionStrategy(ABC):
    """Judges pairs of instants. Runs on the driver, inside the table lock; does no I/O.

    Args:
        is_merge_on_read: Whether the table appends logs.
    """

    def __init__(self, *, is_merge_on_read: bool) -> None:
        self.is_merge_on_read = is_merge_on_read

    @abstractmethod
    def is_candidate(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        """Whether `other` can get in the way of publishing `this` at all."""

    @abstractmethod
    def conflicting_groups(self, this: ConcurrentOperation, other: ConcurrentOperation) -> frozenset[FileGroupId]:
        """File groups on which the two may not meet."""

    def is_conflict(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        """Whether `this` must not be published because of `other`."""
        if other.covers_table:
            return True
        return self.is_candidate(this, other) and bool(self.conflicting_groups(this, other))


class SimpleConcurrentFileWrites(ConflictResolutionStrategy):
    """Two writes of one file group conflict (SimpleConcurrentFileWritesConflictResolutionStrategy of 1.1 on version 8).

    Candidates are all completed writes, less finished compactions of a merge-on-read table, and pending plans that
    will replace file groups: clustering at any time, other replacing writes if they are newer. A pending compaction
    is none: what is logged after its plan is read on top of its result. A write into new file groups meets nobody.
    """

    def is_candidate(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        """See `ConflictResolutionStrategy.is_candidate`."""
        if other.is_completed:
            is_compaction = other.operation == COMPACT or other.action in ("compaction", "logcompaction")
            return not (self.is_merge_on_read and is_compaction)
        return other.action == "clustering" or (other.action == "replacecommit" and other.requested > this.requested)

    def conflicting_groups(self, this: ConcurrentOperation, other: ConcurrentOperation) -> frozenset[FileGroupId]:
        """See `ConflictResolutionStrategy.conflicting_groups`."""
        return this.groups & other.groups


class BucketIndexConcurrentFileWrites(SimpleConcurrentFileWrites):
    """Two writes of one bucket of a partition conflict (BucketIndexConcurrentFileWritesConflictResolutionStrategy).

    The file groups that two writers make for one new bucket have different ids, and readers would show both.
    """

    def conflicting_groups(self, this: ConcurrentOperation, other: ConcurrentOperation) -> frozenset[FileGroupId]:
        """See `ConflictResolutionStrategy.conflicting_groups`."""
        taken = frozenset(map(_bucket, other.groups))
        return frozenset(group for group in this.groups if _bucket(group) in taken)


def _bucket(group: FileGroupId) -> FileGroupId:
    """The bucket as a JVM names it, without a look at whether the id is that of a bucket."""
    return FileGroupId(group.partition, group.file_id[:_BUCKET_LENGTH])


_BUCKET_LENGTH: Final = 8
_JAVA: Final = "org.apache.hudi.client.transaction."
_STRATEGIES: Final = {
    "simple": SimpleConcurrentFileWrites,
    f"{_JAVA}SimpleConcurrentFileWritesConflictResolutionStrategy": SimpleConcurrentFileWrites,
    "bucket": BucketIndexConcurrentFileWrites,
    f"{_JAVA}BucketIndexConcurrentFileWritesConflictResolutionStrategy": BucketIndexConcurrentFileWrites,
}


def load_strategy(name: str, *, is_merge_on_read: bool, is_bucketed: bool) -> ConflictResolutionStrategy:
    """The strategy of a short name, Hudi's Java name, or `package.module:Class`.

    Args:
        name: As written, or the default.
        is_merge_on_read: Of the table.
        is_bucketed: Whether the writer has a bucket index. Then buckets are compared even where the simple strategy
            is asked for, which would let two writers make one bucket twice.

    Raises:
        ConfigError: The name means no strategy.
    """
    kind = _STRATEGIES.get(name) or _import(name)
    if is_bucketed and kind is SimpleConcurrentFileWrites:
        kind = BucketIndexConcurrentFileWrites
    return kind(is_merge_on_read=is_merge_on_read)


def _import(name: str) -> type[ConflictResolutionStrategy]:
    module, found, attribute = name.partition(":")
    key = "hoodie.write.lock.conflict.resolution.strategy"
    if not found:
        known = ", ".join(sorted(_STRATEGIES))
        raise ConfigError(f"{key}={name} is no strategy; known are {known}, and package.module:Class", key=key)
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{key}={name} cannot be loaded: {error}", key=key) from error
    if not (isinstance(kind, type) and issubclass(kind, ConflictResolutionStrategy)):
        raise ConfigError(f"{key}={name} is no ConflictResolutionStrategy", key=key)
    return kind
