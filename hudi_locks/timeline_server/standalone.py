"""A timeline server that runs by itself, for writers that run none. Needs the extra `server`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_locks.config import Options, has_buckets, write_keys
from hudi_locks.early_conflict import EarlyDetection
from hudi_locks.markers import TIMELINE_SERVER_BASED, FallbackMarkers
from hudi_locks.observe import Metrics
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline, TimelineLayout
from hudi_locks.timeline_server.checker import Checker
from hudi_locks.timeline_server.embedding import make_server
from hudi_locks.timeline_server.server import TimelineServer
from hudi_locks.timeline_server.settings import ServerSettings

__all__ = ["make_standalone"]


def make_standalone(
    storage: Storage,
    layout: TimelineLayout,
    options: Mapping[str, object],
    *,
    token: str,
    place: tuple[str, int],
    metrics: Metrics | None = None,
) -> TimelineServer:
    """A server of the markers of a table, not started yet; it looks for conflicts if the options say so.

    Args:
        storage: Of the table.
        layout: Of its timeline.
        options: Hudi's keys, as the writers have them, with those that the table remembers.
        token: What callers must bring; "" for nothing, as JVM clients bring nothing.
        place: Host and port.
        metrics: Gets what the server does.

    Raises:
        ConfigError: It cannot listen there, or an option cannot be used.
    """
    counted, settings = metrics or Metrics(), ServerSettings.of(options)
    lookout = _Lookout(storage, layout, _read_detection(options), settings, counted)
    return make_server(storage, settings, make_checker=lookout.make_checker, metrics=counted, token=token, place=place)


def _read_detection(options: Mapping[str, object]) -> EarlyDetection:
    given = Options(options)
    interval_ms = given.get_value(write_keys.HEARTBEAT_INTERVAL_IN_MS)
    limit_ms = interval_ms * given.get_value(write_keys.HEARTBEAT_TOLERABLE_MISSES)
    kind = {write_keys.MARKERS_TYPE.name: TIMELINE_SERVER_BASED}
    return EarlyDetection.of({**options, **kind}, heartbeat_limit_ms=limit_ms, is_bucketed=has_buckets(given))


@dataclass(frozen=True)
class _Lookout:
    """Finds out from the timeline what a write that asks knows of others."""

    storage: Storage
    layout: TimelineLayout
    detection: EarlyDetection
    settings: ServerSettings
    metrics: Metrics

    def make_checker(self, requested: str) -> Checker | None:
        if self.detection.strategy is None:
            return None
        timeline = Timeline.load(self.storage, self.layout)
        instant = timeline.get(requested)
        markers, action = FallbackMarkers(self.storage, requested), instant.action if instant else ""
        guarded = self.detection.guard(markers, self._as_of(timeline, requested), action=action)
        return None if guarded is None else self.settings.make_checker(guarded, self.metrics)

    def _as_of(self, timeline: Timeline, requested: str) -> Timeline:
        """What was there when the write began: its writer knows nothing that was completed since."""
        known = [instant for instant in timeline.completed() if (instant.completion or instant.requested) <= requested]
        return Timeline(self.layout, (*known, *timeline.pending()))
