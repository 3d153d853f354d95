"""Strategies of early conflict detection (Hudi's EarlyConflictDetectionStrategy): those for direct markers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import lru_cache
from typing import ClassVar

from hudi_locks.deprecation import RenamedMember
from hudi_locks.early_conflict.context import DetectionContext, find_candidates, find_completed
from hudi_locks.early_conflict.early_conflict import EarlyConflict, report
from hudi_locks.early_conflict.marker_reader import MarkerReader
from hudi_locks.format.claim import FileGroupId
from hudi_locks.lock import LockManager, LockScope
from hudi_locks.lock.lease import generation
from hudi_locks.markers import DIRECT
from hudi_locks.timeline.heartbeat import name_writer

__all__ = [
    "EarlyConflictDetectionStrategy",
    "MarkerBased",
    "SimpleDirectMarkerBased",
    "SimpleTransactionDirectMarkerBased",
]


class EarlyConflictDetectionStrategy(ABC):
    """Looks for conflicts of one write. Not thread-safe.

    For direct markers each task makes one, on its executor, and asks before it announces its files. For those of a
    timeline server one is made beside the server, and asked again and again about all that the write has announced.

    Args:
        context: The write, and what it knows of others.
    """

    markers_type: ClassVar[str] = DIRECT
    """The value of `hoodie.write.markers.type` that it serves."""

    scene: ClassVar[RenamedMember] = RenamedMember("context", removed_in="0.3.0")

    def __init__(self, context: DetectionContext) -> None:
        self.context = context

    @contextmanager
    def guard(self, groups: Set[FileGroupId]) -> Iterator[None]:  # noqa: ARG002  # for those who lock them
        """Around the check of `groups` and the creation of their markers."""
        yield

    @abstractmethod
    def find_conflict(self, groups: Set[FileGroupId]) -> EarlyConflict | None:
        """The first conflict that a write of `groups` would meet; None if nothing is in the way, as far as it sees.

        Raises:
            StorageError: The store failed, so that nobody can tell.
        """

    def announce(self, groups: Iterable[FileGroupId]) -> None:  # noqa: B027  # most have nothing to note
        """Take note of what is about to be announced, before its markers are there."""


class MarkerBased(EarlyConflictDetectionStrategy):
    """Looks at the markers of earlier writers, of both kinds, and if asked at what was completed meanwhile."""

    def __init__(self, context: DetectionContext) -> None:
        super().__init__(context)
        self._reader = _open_reader(context)

    def find_conflict(self, groups: Set[FileGroupId]) -> EarlyConflict | None:
        """See `EarlyConflictDetectionStrategy.find_conflict`."""
        self._reader, named = _open_reader(self.context), self._name_keys(groups)
        keys = frozenset(named)
        for other in find_candidates(self.context):
            if found := self.look_at(other, keys):
                return self._describe(named[min(found)], other, "marker")
        return self._find_completed(named) if self.context.checks_commits else None

    def look_at(self, other: str, keys: Set[FileGroupId]) -> frozenset[FileGroupId]:
        """Those of `keys`, made by `DetectionContext.key_of`, that the write `other` has announced."""
        return self._reader.find(other, keys)

    def _name_keys(self, groups: Set[FileGroupId]) -> Mapping[FileGroupId, FileGroupId]:
        """The file group that each key stands for."""
        return {self.context.key_of(group): group for group in groups}

    def _find_completed(self, named: Mapping[FileGroupId, FileGroupId]) -> EarlyConflict | None:
        for other, changed in find_completed(self.context):
            if found := named.keys() & {self.context.key_of(group) for group in changed}:
                return self._describe(named[min(found)], other, "commit")
        return None

    def _describe(self, group: FileGroupId, other: str, kind: str) -> EarlyConflict:
        owner = name_writer(self.context.storage, other)
        return EarlyConflict(self.context.requested, group, other, kind, owner, is_pending=kind == "marker")


class SimpleDirectMarkerBased(MarkerBased):
    """Lists the markers of earlier writers in the partitions of the task (SimpleDirectMarkerBasedDetectionStrategy).

    What it cannot promise: two writers that check at the same moment both go on, and meet at the publish.
    """


class SimpleTransactionDirectMarkerBased(SimpleDirectMarkerBased):
    """Locks each file group over check and creation (SimpleTransactionDirectMarkerBasedDetectionStrategy).

    Of two writers that come at once, exactly the one that was begun first goes on: a later one that was here before is
    told to give up. The JVM's strategy lets go of its lock before it makes the marker, so that both may pass there; and
    a JVM writer cannot be told. Works with every provider whose locks other processes see; all file groups of a task
    are locked together.
    """

    def find_conflict(self, groups: Set[FileGroupId]) -> EarlyConflict | None:
        """See `EarlyConflictDetectionStrategy.find_conflict`."""
        conflict = super().find_conflict(groups)
        if conflict is None:
            self._tell_later_ones(groups)
        return conflict

    def _tell_later_ones(self, groups: Set[FileGroupId]) -> None:
        own, storage, named = self.context.requested, self.context.storage, self._name_keys(groups)
        keys = frozenset(named)
        for later in find_candidates(self.context, later=True):
            if found := self.look_at(later, keys):
                report(storage, EarlyConflict(later, named[min(found)], own, "marker", name_writer(storage, own)))

    @contextmanager
    def guard(self, groups: Set[FileGroupId]) -> Iterator[None]:
        """See `EarlyConflictDetectionStrategy.guard`.

        Raises:
            AcquireTimeout: Somebody held one of the locks for as long as we may wait.
        """
        scopes = [LockScope.file_group(*key) for key in sorted(self._name_keys(groups))]
        with manager_of(self.context.lock_options).lock_many(scopes):
            yield


def _open_reader(context: DetectionContext) -> MarkerReader:
    return MarkerReader(context.storage, is_bucketed=context.is_bucketed)


def manager_of(options: Mapping[str, object]) -> LockManager:
    """The manager of this process for these options; it lives as long as the process."""
    return _make(generation(), tuple(sorted((name, str(value)) for name, value in options.items())))


@lru_cache(maxsize=8)
def _make(_: int, options: tuple[tuple[str, str], ...]) -> LockManager:
    return LockManager.from_options(dict(options), application="early conflict detection")
