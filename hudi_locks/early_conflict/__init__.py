"""Early conflict detection (RFC-56): before a task writes, it looks who else writes its file groups."""

from collections.abc import Callable
from typing import Any

from hudi_locks.deprecation import forward_renamed
from hudi_locks.early_conflict.blooms import BloomDirectMarkerBased
from hudi_locks.early_conflict.context import DetectionContext
from hudi_locks.early_conflict.detection import EarlyDetection, load_detection_strategy
from hudi_locks.early_conflict.early_conflict import EarlyConflict, find_reported, report
from hudi_locks.early_conflict.guarded_markers import GuardedMarkers, Markers
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
    "DetectionContext",
    "EarlyConflict",
    "EarlyConflictDetectionStrategy",
    "EarlyDetection",
    "GuardedMarkers",
    "MarkerBased",
    "Markers",
    "SimpleDirectMarkerBased",
    "SimpleTransactionDirectMarkerBased",
    "find_reported",
    "load_detection_strategy",
    "report",
]

__getattr__: Callable[[str], Any] = forward_renamed(__name__, {"Scene": "DetectionContext"}, removed_in="0.3.0")
