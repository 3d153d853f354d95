"""Counters, timers and gauges in memory, under the names that Hudi gives them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.config import Options, metrics_keys, table_keys
from hudi_locks.errors import ConfigError
from hudi_locks.observe.tracing import NO_SPAN, Span, SpanName, SpanValue, Tracing

__all__ = [
    "COMPACTION_COMPLETED",
    "COMPACTION_REQUESTED",
    "CONFLICT_RESOLUTION_FAILURE",
    "CONFLICT_RESOLUTION_SUCCESS",
    "CONFLICT_RESOLUTION_TIMER",
    "EARLY_CONFLICT_CHECK",
    "EARLY_CONFLICT_COMMIT",
    "EARLY_CONFLICT_MARKER",
    "EARLY_CONFLICT_SAVED",
    "HEARTBEAT_AGE",
    "HEARTBEAT_MISS",
    "LOCK_ACQUIRE_ATTEMPTS",
    "LOCK_ACQUIRE_DURATION",
    "LOCK_ACQUIRE_FAILURE",
    "LOCK_ACQUIRE_SUCCESS",
    "LOCK_LOST",
    "LOCK_RELEASE_FAILURE",
    "LOCK_RELEASE_SUCCESS",
    "LOCK_REQUEST_LATENCY",
    "TIMELINE_SERVER_FALLBACK",
    "TIMELINE_SERVER_FLUSH",
    "TIMELINE_SERVER_MARKERS",
    "TIMELINE_SERVER_REFUSED",
    "TIMELINE_SERVER_REQUEST",
    "Gauge",
    "Metrics",
    "Timing",
]

LOCK_ACQUIRE_ATTEMPTS: Final = "lock.acquire.attempts"
"""Counter: attempts made, also those that failed (the JVM counts only those that succeeded)."""
LOCK_ACQUIRE_SUCCESS: Final = "lock.acquire.success"
"""Counter: locks acquired."""
LOCK_ACQUIRE_FAILURE: Final = "lock.acquire.failure"
"""Counter: attempts that did not get the lock."""
LOCK_REQUEST_LATENCY: Final = "lock.request.latency"
"""Timer: from asking for a lock to having it or giving up, pauses included."""
LOCK_ACQUIRE_DURATION: Final = "lock.acquire.duration"
"""Timer: how long locks were held."""
LOCK_RELEASE_SUCCESS: Final = "lock.release.success"
"""Counter: locks let go of."""
LOCK_RELEASE_FAILURE: Final = "lock.release.failure"
"""Counter: releases that the lock service did not confirm."""
LOCK_LOST: Final = "lock.lost"
"""Counter: holds that ended without their release."""

HEARTBEAT_AGE: Final = "heartbeat.age"
"""Timer: how old a writer's heartbeat was at each beat; the longest tells how near it came to its end."""
HEARTBEAT_MISS: Final = "heartbeat.miss"
"""Counter: beats of writers that failed, or got no answer in time."""
CONFLICT_RESOLUTION_TIMER: Final = "conflict_resolution.timer"
"""Timer: how long publishes looked for conflicts inside the table lock."""
CONFLICT_RESOLUTION_SUCCESS: Final = "conflict_resolution.success.counter"
"""Counter: looks that found the way free."""
CONFLICT_RESOLUTION_FAILURE: Final = "conflict_resolution.failure.counter"
"""Counter: looks that found a conflict."""
COMPACTION_REQUESTED: Final = "compaction.compaction.requested.counter"
"""Counter: plans of compaction that were put on the timeline."""
COMPACTION_COMPLETED: Final = "compaction.compaction.completed.counter"
"""Counter: compactions that were committed."""
EARLY_CONFLICT_CHECK: Final = "early_conflict.check"
"""Timer: how long each look for conflicts took: of a task before it wrote, or of a timeline server."""
EARLY_CONFLICT_MARKER: Final = "early_conflict.marker"
"""Counter: writes given up early, since an earlier write had announced one of their file groups."""
EARLY_CONFLICT_COMMIT: Final = "early_conflict.commit"
"""Counter: writes given up early, since one of their file groups was changed after they began."""
EARLY_CONFLICT_SAVED: Final = "early_conflict.saved"
"""Timer: of each attempt that was given up early, and was repeated until one was committed: what the committed one took
from begin to outcome, less what the one given up did. Nothing is reported of a write that was not repeated."""
TIMELINE_SERVER_REQUEST: Final = "timeline_server.request"
"""Timer: how long requests that make markers took, from their arrival to their answer."""
TIMELINE_SERVER_REFUSED: Final = "timeline_server.refused"
"""Counter: requests that were told to come later, since the store did not keep up."""
TIMELINE_SERVER_FLUSH: Final = "timeline_server.flush"
"""Timer: how long each batch of markers took to become durable."""
TIMELINE_SERVER_MARKERS: Final = "timeline_server.markers"
"""Counter: markers made; divided by the batches it gives their size."""
TIMELINE_SERVER_FALLBACK: Final = "timeline_server.fallback"
"""Counter: writes whose markers, all or some, were made without the timeline server that was asked for."""


@dataclass(frozen=True)
class Timing:
    """What a timer has seen: how many durations, their sum and the longest, in seconds."""

    count: int
    total_s: float
    longest_s: float


@dataclass(frozen=True)
class Gauge:
    """What something came to the last time, as the rows of the last commit."""

    value: int


class Metrics:
    """A registry of counters, timers and gauges. Thread-safe; costs well under a microsecond for each report.

    Where spans are made, what is reported here is seen in them too: each count is an event of the present span of the
    thread, and each gauge an attribute of it.

    Attributes:
        tracing: Makes spans; None where tracing is off.
    """

    def __init__(self) -> None:
        self.tracing: Tracing | None = None
        self._lock = threading.Lock()
        self._counters: dict[str, int] = {}
        self._timings: dict[str, list[float]] = {}
        self._gauges: dict[str, Gauge] = {}

    def trace_by(self, options: Options) -> None:
        """Make spans from now on, if `hudi_locks.tracing` asks for them.

        Raises:
            ConfigError: The package that they need is not installed.
        """
        if self.tracing is not None or not options.get_value(metrics_keys.TRACING):
            return
        try:
            from hudi_locks.observe.open_telemetry import OpenTelemetry
        except ImportError as error:
            message = "traces need the API of OpenTelemetry: pip install 'hudi-locks[tracing]'"
            raise ConfigError(message, key=metrics_keys.TRACING.name) from error
        named = {"table": options.find(table_keys.TABLE_NAME), "path": options.find(table_keys.BASE_PATH)}
        self.tracing = OpenTelemetry(named)

    def show(self, prefix: str, values: Mapping[str, int]) -> None:
        """Put these in place of what the gauges of these names, behind a prefix, showed."""
        with self._lock:
            for name, value in values.items():
                self._gauges[f"{prefix}.{name}"] = Gauge(value)
        if self.tracing is not None:
            self.tracing.note({f"{prefix}.{name}": value for name, value in values.items()})

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counters[name] = self._counters.get(name, 0) + by
        if self.tracing is not None:
            self.tracing.event(name, {"by": by})

    def report(self, name: str, duration_s: float, *, counts: Sequence[tuple[str, int]] = ()) -> None:
        """Report one duration to a timer, and what goes with it to counters."""
        with self._lock:
            seen = self._timings.get(name)
            if seen is None:
                seen = self._timings[name] = [0, 0.0, 0.0]
            seen[0] += 1
            seen[1] += duration_s
            if duration_s > seen[2]:
                seen[2] = duration_s
            for counter, by in counts:
                self._counters[counter] = self._counters.get(counter, 0) + by

    def span(self, name: SpanName, *, within: Span | None = None, **attributes: SpanValue) -> Span:
        """A span that begins now: a part of `within`, else of the present one of the thread."""
        return NO_SPAN if self.tracing is None else self.tracing.start(name, attributes, within)

    @contextmanager
    def measure(
        self, name: SpanName, action: str, clock: Clock, *, duration: str = "duration", **attributes: SpanValue
    ) -> Iterator[dict[str, int]]:
        """A span, a timer and gauges of what is done in the block; no timer and no gauges where it raises.

        Args:
            name: Of the span.
            action: Begins the names of the timer and of the gauges, as in JVM Hudi.
            clock: Measures.
            duration: Name of the gauge that has the milliseconds.
            attributes: Of the span.

        Yields:
            To be filled with further gauges.
        """
        values: dict[str, int] = {}
        with self.span(name, within=None, **attributes):
            began_s = clock.monotonic()
            yield values
            duration_s = clock.monotonic() - began_s
            self.report(f"{action}.timer", duration_s)
            self.show(action, {**values, duration: round(duration_s * 1000)})

    def add(self, others: Mapping[str, int | Timing | Gauge]) -> None:
        """Take up what another registry has seen; of gauges what it shows."""
        with self._lock:
            for name, value in others.items():
                if isinstance(value, Gauge):
                    self._gauges[name] = value
                elif isinstance(value, Timing):
                    seen = self._timings.setdefault(name, [0, 0.0, 0.0])
                    longest_s = max(seen[2], value.longest_s)
                    self._timings[name] = [seen[0] + value.count, seen[1] + value.total_s, longest_s]
                else:
                    self._counters[name] = self._counters.get(name, 0) + value

    def snapshot(self) -> Mapping[str, int | Timing | Gauge]:
        """All counters, timers and gauges that were ever reported to, as they stand now."""
        with self._lock:
            timings = {name: Timing(int(seen[0]), seen[1], seen[2]) for name, seen in self._timings.items()}
            return {**self._counters, **timings, **self._gauges}

    def counter(self, name: str) -> int:
        """The present value of one counter."""
        with self._lock:
            return self._counters.get(name, 0)
