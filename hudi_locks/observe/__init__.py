"""What every room reports to: counters and timers, readable as a snapshot."""

from hudi_locks.observe.metrics import (
    LOCK_ACQUIRE_ATTEMPTS,
    LOCK_ACQUIRE_DURATION,
    LOCK_ACQUIRE_FAILURE,
    LOCK_ACQUIRE_SUCCESS,
    LOCK_LOST,
    LOCK_RELEASE_FAILURE,
    LOCK_RELEASE_SUCCESS,
    LOCK_REQUEST_LATENCY,
    Metrics,
    Timing,
)

__all__ = [
    "LOCK_ACQUIRE_ATTEMPTS",
    "LOCK_ACQUIRE_DURATION",
    "LOCK_ACQUIRE_FAILURE",
    "LOCK_ACQUIRE_SUCCESS",
    "LOCK_LOST",
    "LOCK_RELEASE_FAILURE",
    "LOCK_RELEASE_SUCCESS",
    "LOCK_REQUEST_LATENCY",
    "Metrics",
    "Timing",
]
