"""A writer sleeps before it makes its completed file; others make it and archive the instant; it wakes up and dies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from service_desk import ServiceDesk
from transaction_desk import Killed, kill, move_elsewhere

from hudi_locks.format import Instant, State
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings, Janitor
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import StopPoint


def archive(desk: ServiceDesk) -> None:
    for _ in range(5):
        desk.put("p/g-0")
    desk.clock.advance(7200)
    Janitor(desk.open().coordination).sweep()
    given = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    cleaning = CleanSettings.of({"hoodie.clean.commits.retained": 1})
    assert Archiver(desk.open().coordination, ArchiveSettings.of(given), clean_settings=cleaning).run().archived


def sleep_at(point: StopPoint, wake: Callable[[], None]) -> Callable[[StopPoint], None]:
    slept: list[StopPoint] = []

    def trace(reached: StopPoint) -> None:
        if slept and reached is StopPoint.PUBLISH_COMPLETED:
            kill()
        if reached is point and not slept:
            slept.append(reached)
            wake()

    return trace


@pytest.mark.parametrize("point", [StopPoint.PUBLISH_CLAIMED, StopPoint.PUBLISH_STAGED, StopPoint.PUBLISH_LOOKED])
def test_what_was_archived_does_not_come_back(desk: ServiceDesk, point: StopPoint) -> None:
    def wake() -> None:
        tx._begun.heartbeat.pause()
        move_elsewhere(desk.storage)
        archive(desk)

    desk.put("p/g-0")
    tx = desk.open(trace=sleep_at(point, wake)).begin("commit", "UPSERT")
    metadata = desk.rewrite(tx, "p/h-0")
    with contextlib.suppress(Killed):
        assert tx.publish(metadata).is_committed
    names = desk.names(LAYOUT_2.folder)
    assert [name for name in names if name.startswith(tx.instant)] == []
    assert desk.open().resolve(tx.instant).value == "COMMITTED"


def test_a_sweep_takes_away_what_came_back(desk: ServiceDesk) -> None:
    """Older releases, and archivers of the JVM, can still leave it."""
    first = desk.put("p/g-0")
    completed = desk.timeline().get(first)
    assert completed is not None
    path = LAYOUT_2.path(completed)
    data = desk.storage.read(path) or b""
    archive(desk)
    assert not desk.storage.exists(path)
    begins = desk.timeline().first_active
    desk.storage.create_if_absent(path, data)
    assert desk.timeline().first_active == first
    Janitor(desk.open().coordination).sweep()
    assert not desk.storage.exists(path)
    assert desk.timeline().first_active == begins
    pending = LAYOUT_2.path(Instant(first, "commit", State.INFLIGHT))
    assert not desk.storage.exists(pending)
