"""A server that runs by itself, and finds out what a write knows of others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from early_conflict_marks import marker
from transaction_harness import Harness

from hudi_locks.format.claim import FileGroupId
from hudi_locks.observe import EARLY_CONFLICT_CHECK, Metrics, Timing
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline_server import Endpoint
from hudi_locks.timeline_server.client import BASE
from hudi_locks.timeline_server.server import TimelineServer
from hudi_locks.timeline_server.standalone import make_standalone

GROUP, OTHER = FileGroupId("p", "g-0"), FileGroupId("p", "h-0")
PREFIX = "hoodie.write.concurrency.early.conflict."
EARLY = {f"{PREFIX}detection.enable": "true", f"{PREFIX}check.commit.conflict": "true"}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def server(harness: Harness, metrics: Metrics) -> Iterator[TimelineServer]:
    with make_standalone(
        harness.storage, LAYOUT_2, EARLY, token="", place=("127.0.0.1", 0), metrics=metrics
    ) as running:
        yield running


@pytest.fixture
def ask(harness: Harness, server: TimelineServer) -> Any:
    endpoint = Endpoint(server.url, harness.storage.base)
    return lambda tx, group, detects=True: endpoint.create_all(
        tx.instant, [str(marker(tx.instant, group))], detects=detects
    )


def begin(harness: Harness, action: str = "commit") -> Any:
    return harness.open().begin(action, "UPSERT")


def test_the_later_write_hears_of_the_conflict(harness: Harness, ask: Any, caplog: pytest.LogCaptureFixture) -> None:
    earlier, later, disjoint = begin(harness), begin(harness), begin(harness)
    with caplog.at_level(logging.WARNING):
        assert ask(earlier, GROUP) is None
        assert ask(disjoint, OTHER) is None
        found = ask(later, GROUP)
    assert (found.group, found.other, found.kind) == (GROUP, earlier.instant, "marker")
    assert ask(later, OTHER) == found  # for good
    assert not caplog.text


def test_a_write_that_was_completed_meanwhile_counts_and_one_before_does_not(harness: Harness, ask: Any) -> None:
    before = begin(harness)
    assert before.publish(harness.write(before, "g-0")).is_committed
    during, later = begin(harness), begin(harness)
    assert during.publish(harness.write(during, "g-0")).is_committed
    found = ask(later, GROUP)
    assert (found.other, found.kind) == (during.instant, "commit")


def test_whoever_does_not_want_to_hear_is_not_told(harness: Harness, ask: Any, metrics: Metrics) -> None:
    earlier, later, service = begin(harness), begin(harness), begin(harness, "replacecommit")
    assert ask(earlier, GROUP, False) is None
    assert ask(later, GROUP, False) is None
    assert EARLY_CONFLICT_CHECK not in metrics.snapshot()
    assert ask(service, GROUP) is None  # exempt
    assert EARLY_CONFLICT_CHECK not in metrics.snapshot()


def test_it_forgets_writes_whose_folder_is_gone(
    harness: Harness, ask: Any, server: TimelineServer, metrics: Metrics
) -> None:
    ended = begin(harness)
    ask(ended, GROUP)
    harness.storage.delete_folder(f".hoodie/.temp/{ended.instant}")
    assert ask(begin(harness), OTHER) is None
    params = {"markerdirpath": f"{harness.storage.base}/.hoodie/.temp/{ended.instant}"}
    assert httpx.get(f"{server.url}{BASE}/all", params=params).json() == []
    timing = metrics.snapshot()[EARLY_CONFLICT_CHECK]
    assert isinstance(timing, Timing)
    assert timing.count == 2
