"""Conflict resolution: which concurrent instants may not both be published (Hudi's ConflictResolutionStrategy)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from hudi_locks.config import import_class, lock_keys
from hudi_locks.format.claim import FileGroupId

__all__ = [
    "AbsentKeys",
    "BucketIndexConcurrentFileWrites",
    "ConcurrentOperation",
    "ConflictResolutionStrategy",
    "NonBlocking",
    "PreferWriter",
    "ReadSet",
    "SimpleConcurrentFileWrites",
    "load_strategy",
]

_COMPACT: Final = "COMPACT"
_LOG_COMPACT: Final = "LOG_COMPACT"
_CLUSTER: Final = "CLUSTER"


@dataclass(frozen=True)
class ConcurrentOperation:
    """An instant as a strategy sees it: the one to publish, or one that the writer did not build on.

    Attributes:
        requested: Its requested time.
        action: Its action; a pending compaction is a `compaction`, a completed one a `commit`.
        operation: Hudi's name of the operation, such as UPSERT, COMPACT or CLUSTER; None if it is not known.
        is_completed: Whether it is published; else it is a plan.
        groups: File groups that it changes or replaces.
        based_groups: Of these those to which it brings a base file, and which it does not compact.
        paths: Base files that it wrote, relative to the base path; of a plan none.
        covers_table: Whether it concerns every file group, as a restore does.
        completion_time: When it was published, or None.
        writer: Who made it, for a person.
        overwrites: Partitions that it overwrites or deletes as a whole.
        overwrites_table: Whether it does so with every partition.
        reads: Partitions in which it looked record keys up.
        read_groups: File groups in which it found some, though it may leave them as they are.
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
    overwrites: frozenset[str] = frozenset()
    overwrites_table: bool = False
    reads: frozenset[str] = frozenset()
    read_groups: frozenset[FileGroupId] = frozenset()
    based_groups: frozenset[FileGroupId] = frozenset()

    def find_unseen(self, other: ConcurrentOperation) -> frozenset[FileGroupId]:
        """File groups that the completed `other` brought into partitions that this one overwrites without knowing them.

        In the order of completion their rows end too, and nobody hides them.
        """
        unseen = other.groups - self.groups if other.is_completed else frozenset()
        return frozenset(group for group in unseen if self.overwrites_table or group.partition in self.overwrites)

    def find_outdated(self, other: ConcurrentOperation) -> frozenset[str]:
        """Partitions in which this one looked for keys that the completed `other` took away as a whole."""
        if not other.is_completed:
            return frozenset()
        return self.reads if other.overwrites_table else self.reads & other.overwrites

    @property
    def is_compaction(self) -> bool:
        """Whether it merges logs into base files, or into other logs."""
        return self.operation == _COMPACT or self.action == "compaction" or self.is_log_compaction

    @property
    def is_log_compaction(self) -> bool:
        """Whether it merges logs into a log."""
        return self.operation == _LOG_COMPACT or self.action == "logcompaction"

    @property
    def is_service(self) -> bool:
        """Whether it only rearranges rows that others wrote."""
        return self.is_compaction or self.operation == _CLUSTER or self.action == "clustering"


class AbsentKeys(Protocol):
    """The record keys that a write looked for in vain: it inserts them, or has nothing to delete. Asked on the driver.

    JVM Hudi compares file groups alone, so that two upserts double a key that is new to both, and a delete leaves a row
    that was inserted beside it.
    """

    @property
    def partitions(self) -> frozenset[str] | None:
        """Partitions where they were looked for; None for all that there are and will be."""

    def find_among(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        """Some of the keys that the completed `instant` wrote to its base files `paths`; empty if there are none.

        Reads those files; the answer for an instant is remembered, since a completed instant does not change.
        """


@dataclass(frozen=True)
class ReadSet:
    """What a write looked at and what it found there.

    Attributes:
        partitions: Where it looked record keys up: none of them may have been overwritten as a whole.
        groups: File groups that held some of its keys, or, with a bucket index, would have to: none may have been
            changed or replaced. Those that it changes itself need not be among them.
        absent_keys: Keys that are nowhere: nobody may have brought one of them. None where doubled keys are nobody's
            concern, as in an insert.
    """

    partitions: frozenset[str] = frozenset()
    groups: frozenset[FileGroupId] = frozenset()
    absent_keys: AbsentKeys | None = None


class ConflictResolutionStrategy(ABC):
    """Judges pairs of instants. Runs on the driver, inside the table lock; does no I/O.

    Args:
        is_merge_on_read: Whether the table appends logs.
        is_bucketed: Whether a bucket index says where rows lie. Two writers that make the same new bucket make file
            groups of different ids, and readers would show both: so buckets are compared then.
    """

    always_bucketed: ClassVar[bool] = False
    """Whether buckets are compared whatever the index."""

    def __init__(self, *, is_merge_on_read: bool, is_bucketed: bool = False) -> None:
        self.is_merge_on_read = is_merge_on_read
        self.is_bucketed: bool = is_bucketed or self.always_bucketed

    @abstractmethod
    def is_candidate(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        """Whether `other` can get in the way of publishing `this` at all."""

    def heeds_living_writers(self, this: ConcurrentOperation) -> bool:  # noqa: ARG002  # for those who look at it
        """Whether `this` may have to give way to writes that are still under way, so that they must be looked at."""
        return False

    @property
    def reads_markers(self) -> bool:
        """Whether some write may have to give way to living ones: then all announce what they are at."""
        return type(self).heeds_living_writers is not ConflictResolutionStrategy.heeds_living_writers

    def conflicting_groups(self, this: ConcurrentOperation, other: ConcurrentOperation) -> frozenset[FileGroupId]:
        """File groups of `this` on which the two may not meet: those in common, or of a bucket in common."""
        return self._find_common(this.groups, other.groups)

    def outdated_groups(self, this: ConcurrentOperation, other: ConcurrentOperation) -> frozenset[FileGroupId]:
        """File groups in which `this` found keys before the completed `other` changed or replaced them."""
        return self._find_common(this.read_groups, other.groups) if other.is_completed else frozenset()

    def is_conflict(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        """Whether `this` must not be published because of `other`."""
        if other.covers_table or this.find_unseen(other) or this.find_outdated(other):
            return True
        if this.is_log_compaction:
            return self._is_order_broken(this, other)
        if this.action == "deltacommit" and other.is_log_compaction and other.is_completed:
            return self._is_order_broken(this, other)
        if this.is_compaction and other.action == "deltacommit":
            return False  # what is logged after the plan lies on top of the new base file
        return self.is_candidate(this, other) and bool(
            self.conflicting_groups(this, other) or self.outdated_groups(this, other)
        )

    def _is_order_broken(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        """Whether the log of a log compaction, one of the two, would not come right behind those that it merged.

        Logs are applied in the order of their requested times. A write that began later lies on top of it; one that
        began earlier and was not merged, whether it is completed or not, would lie below. And a compaction that was
        planned meanwhile takes the merged logs and not this one, which would bring their rows back above its base file.
        """
        merging, beside = (this, other) if this.is_log_compaction else (other, this)
        is_on_top = beside.action == "deltacommit" and beside.requested > merging.requested
        return not is_on_top and bool(self.conflicting_groups(this, other))

    def _find_common(self, ours: frozenset[FileGroupId], theirs: frozenset[FileGroupId]) -> frozenset[FileGroupId]:
        if not self.is_bucketed:
            return ours & theirs
        taken = frozenset(group.bucket for group in theirs)
        return frozenset(group for group in ours if group.bucket in taken)


class SimpleConcurrentFileWrites(ConflictResolutionStrategy):
    """Two writes of one file group conflict (SimpleConcurrentFileWritesConflictResolutionStrategy of 1.1 on version 8).

    Candidates are all completed writes, less finished compactions of a merge-on-read table, and pending plans that
    will replace file groups: clustering at any time, other replacing writes if they are newer. A pending compaction
    is none: what is logged after its plan is read on top of its result. A write into new file groups meets nobody.
    """

    def is_candidate(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        """See `ConflictResolutionStrategy.is_candidate`."""
        if other.is_completed:
            return not (self.is_merge_on_read and other.is_compaction)
        return other.action == "clustering" or (other.action == "replacecommit" and other.requested > this.requested)


class BucketIndexConcurrentFileWrites(SimpleConcurrentFileWrites):
    """Two writes of one bucket of a partition conflict (BucketIndexConcurrentFileWritesConflictResolutionStrategy)."""

    always_bucketed = True


class PreferWriter(ConflictResolutionStrategy):
    """Writers go before table services (PreferWriterConflictResolutionStrategy).

    A write meets what is completed, and no plan. A table service meets that too, and gives way to every living writer
    that has announced one of its file groups.
    """

    def heeds_living_writers(self, this: ConcurrentOperation) -> bool:
        """See `ConflictResolutionStrategy.heeds_living_writers`."""
        return this.is_service

    def is_candidate(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        """See `ConflictResolutionStrategy.is_candidate`."""
        if other.is_completed:
            return not (self.is_merge_on_read and other.is_compaction)
        return this.is_service and other.action in ("commit", "deltacommit")


class NonBlocking(ConflictResolutionStrategy):
    """Delta commits never meet each other (RFC-66; Hudi's client under NON_BLOCKING_CONCURRENCY_CONTROL).

    What both wrote is merged by readers and compactions. A write still meets what ends or rewrites its file groups:
    clustering that is planned, replacing writes, and base files that were made beside a compaction, such as by a bulk
    insert of the JVM. JVM Hudi looks at none of these here. And a bulk insert that brings a base file meets what was
    logged to its bucket since its snapshot: that would lie below the base file, or on top of it though it began before.
    """

    def is_candidate(self, this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
        """See `ConflictResolutionStrategy.is_candidate`."""
        if other.is_completed and other.action == "deltacommit":
            return bool(self._find_common(this.based_groups, other.groups))
        if other.is_completed:
            return not other.is_compaction
        return other.action == "clustering" or (other.action == "replacecommit" and other.requested > this.requested)


_JAVA: Final = "org.apache.hudi.client.transaction."
_STRATEGIES: Final[Mapping[str, Callable[..., ConflictResolutionStrategy]]] = {
    "simple": SimpleConcurrentFileWrites,
    f"{_JAVA}SimpleConcurrentFileWritesConflictResolutionStrategy": SimpleConcurrentFileWrites,
    "bucket": BucketIndexConcurrentFileWrites,
    f"{_JAVA}BucketIndexConcurrentFileWritesConflictResolutionStrategy": BucketIndexConcurrentFileWrites,
    "prefer_writer": PreferWriter,
    f"{_JAVA}PreferWriterConflictResolutionStrategy": PreferWriter,
}


def load_strategy(name: str, *, is_merge_on_read: bool, is_bucketed: bool) -> ConflictResolutionStrategy:
    """The strategy of a short name, Hudi's Java name, or `package.module:Class`.

    Args:
        name: As written, or the default.
        is_merge_on_read: Of the table.
        is_bucketed: Whether the writer has a bucket index.

    Raises:
        ConfigError: The name means no strategy.
    """
    kind = _STRATEGIES.get(name) or _import(name)
    return kind(is_merge_on_read=is_merge_on_read, is_bucketed=is_bucketed)


def _import(name: str) -> type[ConflictResolutionStrategy]:
    key = lock_keys.CONFLICT_RESOLUTION_STRATEGY.name
    # abstract: the caller makes its subclasses
    return import_class(name, ConflictResolutionStrategy, key=key, known=_STRATEGIES)  # type: ignore[type-abstract]
