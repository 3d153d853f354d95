"""Early conflict detection as a writer's options ask for it. Made on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hudi_locks.config import Options, import_class, write_keys
from hudi_locks.early_conflict.blooms import BloomDirectMarkerBased
from hudi_locks.early_conflict.context import DetectionContext
from hudi_locks.early_conflict.guarded_markers import GuardedMarkers, Markers
from hudi_locks.early_conflict.server_based import AsyncTimelineServerBased, BloomAsyncTimelineServerBased
from hudi_locks.early_conflict.strategy import (
    EarlyConflictDetectionStrategy,
    SimpleDirectMarkerBased,
    SimpleTransactionDirectMarkerBased,
)
from hudi_locks.markers import DIRECT, TIMELINE_SERVER_BASED
from hudi_locks.redaction import open_log
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline

__all__ = ["EarlyDetection", "load_detection_strategy"]

_log = open_log(__name__)
_JAVA: Final = "org.apache.hudi.table.marker."
_JAVA_SERVER: Final = "org.apache.hudi.timeline.service.handlers.marker."
_STRATEGIES: Final[Mapping[str, type[EarlyConflictDetectionStrategy]]] = {
    "simple": SimpleDirectMarkerBased,
    f"{_JAVA}SimpleDirectMarkerBasedDetectionStrategy": SimpleDirectMarkerBased,
    "transaction": SimpleTransactionDirectMarkerBased,
    f"{_JAVA}SimpleTransactionDirectMarkerBasedDetectionStrategy": SimpleTransactionDirectMarkerBased,
    "bloom": BloomDirectMarkerBased,
    f"{_JAVA}BloomDirectMarkerBasedDetectionStrategy": BloomDirectMarkerBased,
    "async": AsyncTimelineServerBased,
    f"{_JAVA_SERVER}AsyncTimelineServerBasedDetectionStrategy": AsyncTimelineServerBased,
    "bloom_async": BloomAsyncTimelineServerBased,
    f"{_JAVA_SERVER}BloomAsyncTimelineServerBasedDetectionStrategy": BloomAsyncTimelineServerBased,
}
_BARE_NAMES: Final = {name.rpartition(".")[2]: kind for name, kind in _STRATEGIES.items()}
"""As RFC-56 writes them, without a package."""
_DEFAULTS: Final[Mapping[str, type[EarlyConflictDetectionStrategy]]] = {
    DIRECT: SimpleDirectMarkerBased,
    TIMELINE_SERVER_BASED: AsyncTimelineServerBased,
}
_SERVICES: Final = ("clustering", "compaction", "logcompaction", "replacecommit")


@dataclass(frozen=True)
class EarlyDetection:
    """Whether and how the tasks of a writer look for conflicts before they write.

    Attributes:
        strategy: How, with the kind of markers that the options ask for; None if they do not.
        checks_commits: Whether they look at completed commits too.
        heartbeat_limit_ms: How old the heartbeat of another writer may be, ms.
        is_bucketed: Whether buckets are compared in place of file groups.
        lock_options: For strategies that lock file groups.
    """

    strategy: type[EarlyConflictDetectionStrategy] | None = None
    checks_commits: bool = False
    heartbeat_limit_ms: int = 0
    is_bucketed: bool = False
    lock_options: Mapping[str, object] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, options: Mapping[str, object], *, heartbeat_limit_ms: int, is_bucketed: bool = False) -> EarlyDetection:
        """Read the options.

        Args:
            options: Hudi's keys.
            heartbeat_limit_ms: How old the heartbeat of another writer may be, ms.
            is_bucketed: Whether the table, or the writer, has a bucket index.

        Raises:
            ConfigError: The strategy cannot be loaded, or needs a lock provider that is not given.
        """
        given = Options(options)
        if not given.get_value(write_keys.EARLY_CONFLICT_DETECTION_ENABLE):
            return cls()
        strategy = load_detection_strategy(
            given.find(write_keys.EARLY_CONFLICT_DETECTION_STRATEGY),
            markers_type=given.get_value(write_keys.MARKERS_TYPE).upper(),
        )
        checks = given.get_value(write_keys.EARLY_CONFLICT_CHECK_COMMIT_CONFLICT)
        return cls(strategy, checks, heartbeat_limit_ms, is_bucketed, dict(options))

    def looks(self, action: str) -> bool:
        """Whether tasks of an instant of this action look.

        Table services, and writes that replace file groups, are exempt as in Hudi: they neither check nor are checked.
        """
        return self.strategy is not None and action not in _SERVICES

    def guard(self, markers: Markers, timeline: Timeline, *, action: str) -> GuardedMarkers | None:
        """What makes the markers of a write; None if it does so without a look at others, as `looks` says.

        Where they are of another kind than was asked for, that kind's default strategy is used, and a warning says so.

        Args:
            markers: Of the write.
            timeline: The snapshot that it builds on.
            action: Of its instant.
        """
        if self.strategy is None or not self.looks(action):
            return None
        context = self._make_context(markers.storage, timeline, markers.requested)
        return GuardedMarkers(markers, context, _fit(self.strategy, markers.markers_type))

    def _make_context(self, storage: Storage, timeline: Timeline, requested: str) -> DetectionContext:
        return DetectionContext(
            storage,
            timeline.layout,
            requested,
            known=frozenset(instant.requested for instant in timeline.completed()),
            exempt=frozenset(instant.requested for instant in timeline.pending(_SERVICES)),
            heartbeat_limit_ms=self.heartbeat_limit_ms,
            is_bucketed=self.is_bucketed,
            checks_commits=self.checks_commits,
            lock_options=self.lock_options,
        )


def load_detection_strategy(name: str | None, *, markers_type: str) -> type[EarlyConflictDetectionStrategy]:
    """The strategy of a name: short, Hudi's Java name with or without package, `package.module:Class`; None: default.

    One that serves the other kind of markers is not used, and a warning names what is used instead, as in Hudi.

    Raises:
        ConfigError: The name means no strategy.
    """
    if not name:
        return _DEFAULTS[markers_type]
    return _fit(_STRATEGIES.get(name) or _BARE_NAMES.get(name) or _import(name), markers_type)


def _fit(kind: type[EarlyConflictDetectionStrategy], markers_type: str) -> type[EarlyConflictDetectionStrategy]:
    if kind.markers_type == markers_type:
        return kind
    default = _DEFAULTS[markers_type]
    _log.warning(
        "%s %s serves %s markers, and these are %s: %s is used instead",
        write_keys.EARLY_CONFLICT_DETECTION_STRATEGY.name,
        kind.__name__,
        kind.markers_type,
        markers_type,
        default.__name__,
    )
    return default


def _import(name: str) -> type[EarlyConflictDetectionStrategy]:
    key = write_keys.EARLY_CONFLICT_DETECTION_STRATEGY.name
    # abstract: the caller makes its subclasses
    return import_class(name, EarlyConflictDetectionStrategy, key=key, known=_STRATEGIES)  # type: ignore[type-abstract]
