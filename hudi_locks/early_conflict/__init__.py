"""Early conflict detection (RFC-56): before a task writes, it looks who else writes its file groups."""

from hudi_locks.early_conflict.blooms import BloomDirectMarkerBased
from hudi_locks.early_conflict.detection import EarlyDetection, load_detection_strategy
from hudi_locks.early_conflict.early_conflict import EarlyConflict, find_reported, report
from hudi_locks.early_conflict.guarded_markers import GuardedMarkers, Markers
from hudi_locks.early_conflict.scene import Scene
from hudi_locks.early_conflict.server_based import AsyncTimelineServerBased, BloomAsyncTimelineServerBased
from hudi_locks.early_conflict.strategy import (
    EarlyConflictDetectionStrategy,
    MarkerBased,
    SimpleDirectMarkerBased,
    SimpleTransactionDirectMarkerBased,
)
from hudi_locks.early_conflict.watch import ConflictWatch

__all__ = [
    "AsyncTimelineServerBased",
    "BloomAsyncTimelineServerBased",
    "BloomDirectMarkerBased",
    "ConflictWatch",
    "EarlyConflict",
    "EarlyConflictDetectionStrategy",
    "EarlyDetection",
    "GuardedMarkers",
    "MarkerBased",
    "Markers",
    "Scene",
    "SimpleDirectMarkerBased",
    "SimpleTransactionDirectMarkerBased",
    "find_reported",
    "load_detection_strategy",
    "report",
]
