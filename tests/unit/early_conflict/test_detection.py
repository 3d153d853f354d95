"""Which strategy the options mean."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from hudi_locks.config import check_options
from hudi_locks.early_conflict import (
    AsyncTimelineServerBased,
    BloomAsyncTimelineServerBased,
    BloomDirectMarkerBased,
    EarlyConflictDetectionStrategy,
    EarlyDetection,
    MarkerBased,
    SimpleDirectMarkerBased,
    SimpleTransactionDirectMarkerBased,
    load_detection_strategy,
)
from hudi_locks.errors import ConfigError
from hudi_locks.markers import DirectMarkers, FallbackMarkers
from hudi_locks.timeline import Timeline

JAVA = "org.apache.hudi.table.marker."
JAVA_SERVER = "org.apache.hudi.timeline.service.handlers.marker."
ENABLE = "hoodie.write.concurrency.early.conflict.detection.enable"
STRATEGY = "hoodie.write.concurrency.early.conflict.detection.strategy"


MODE = {"hoodie.write.lock.provider": "filesystem"}


class Own(SimpleDirectMarkerBased):
    """A strategy of a user's own."""


class ForServers(MarkerBased):
    """One that needs a timeline server."""

    markers_type = "TIMELINE_SERVER_BASED"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (None, AsyncTimelineServerBased),
        ("async", AsyncTimelineServerBased),
        (f"{JAVA_SERVER}AsyncTimelineServerBasedDetectionStrategy", AsyncTimelineServerBased),
        ("AsyncTimelineServerBasedDetectionStrategy", AsyncTimelineServerBased),
        ("bloom_async", BloomAsyncTimelineServerBased),
        (f"{__name__}:ForServers", ForServers),
    ],
)
def test_names_for_markers_of_a_timeline_server(name: str | None, kind: type[EarlyConflictDetectionStrategy]) -> None:
    assert load_detection_strategy(name, markers_type="TIMELINE_SERVER_BASED") is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (None, SimpleDirectMarkerBased),
        ("simple", SimpleDirectMarkerBased),
        (f"{JAVA}SimpleDirectMarkerBasedDetectionStrategy", SimpleDirectMarkerBased),
        ("transaction", SimpleTransactionDirectMarkerBased),
        (f"{JAVA}SimpleTransactionDirectMarkerBasedDetectionStrategy", SimpleTransactionDirectMarkerBased),
        ("SimpleDirectMarkerBasedDetectionStrategy", SimpleDirectMarkerBased),
        ("SimpleTransactionDirectMarkerBasedDetectionStrategy", SimpleTransactionDirectMarkerBased),
        ("bloom", BloomDirectMarkerBased),
        (f"{__name__}:Own", Own),
    ],
)
def test_names(name: str | None, kind: type[EarlyConflictDetectionStrategy]) -> None:
    assert load_detection_strategy(name, markers_type="DIRECT") is kind


@pytest.mark.parametrize("name", ["fast", "nowhere:Thing", f"{__name__}:test_names"])
def test_a_name_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"detection\.strategy"):
        load_detection_strategy(name, markers_type="DIRECT")


def test_a_strategy_for_other_markers_gives_way_to_the_default_visibly(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert load_detection_strategy(f"{__name__}:ForServers", markers_type="DIRECT") is SimpleDirectMarkerBased
    assert "SimpleDirectMarkerBased is used instead" in caplog.text
    with caplog.at_level(logging.WARNING):
        assert load_detection_strategy("bloom", markers_type="TIMELINE_SERVER_BASED") is AsyncTimelineServerBased
    assert "AsyncTimelineServerBased is used instead" in caplog.text


def test_the_strategy_follows_the_markers_that_are_made_in_the_end(
    ground: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A write whose timeline server does not start makes direct ones."""
    options = {ENABLE: "true", "hoodie.write.markers.type": "timeline_server_based"}
    detection, context = EarlyDetection.of(options, heartbeat_limit_ms=1), ground.context()
    assert detection.strategy is AsyncTimelineServerBased
    timeline = Timeline(context.layout, ())
    spare = detection.guard(FallbackMarkers(ground.storage, context.requested), timeline, action="commit")
    assert spare is not None
    assert spare.strategy is AsyncTimelineServerBased
    assert not caplog.text
    direct = detection.guard(DirectMarkers(ground.storage, context.requested), timeline, action="commit")
    assert direct is not None
    assert direct.strategy is SimpleDirectMarkerBased
    assert "SimpleDirectMarkerBased is used instead" in caplog.text


@pytest.mark.parametrize("mode", ["SINGLE_WRITER", "NON_BLOCKING_CONCURRENCY_CONTROL"])
def test_other_modes_are_refused_at_the_start(mode: str) -> None:
    with pytest.raises(ConfigError, match=r"works with hoodie\.write\.concurrency\.mode=OPTIMISTIC"):
        check_options({ENABLE: "true", **MODE, "hoodie.write.concurrency.mode": mode})


@pytest.mark.parametrize(
    ("options", "action", "looks"),
    [
        ({}, "commit", False),
        ({ENABLE: "false", STRATEGY: "bloom"}, "commit", False),
        ({ENABLE: "true"}, "commit", True),
        ({ENABLE: "true"}, "deltacommit", True),
        ({ENABLE: "true"}, "replacecommit", False),
        ({ENABLE: "true"}, "clustering", False),
    ],
)
def test_table_services_and_writers_without_the_flag_do_not_look(
    ground: Any, options: dict[str, str], action: str, looks: bool
) -> None:
    detection = EarlyDetection.of(options, heartbeat_limit_ms=1)
    context = ground.context()
    guarded = detection.guard(
        DirectMarkers(ground.storage, context.requested), Timeline(context.layout, ()), action=action
    )
    assert (guarded is not None) is looks
