"""Looks in the background, for as long as a write goes on, as a timeline server makes them (RFC-56)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from early_conflict_marks import EARLIER, LATER, NOW, marker

from hudi_locks.early_conflict import AsyncTimelineServerBased, BloomAsyncTimelineServerBased, find_reported
from hudi_locks.early_conflict.blooms import write_bloom
from hudi_locks.errors import StorageError
from hudi_locks.format import BaseFileName, CommitMetadata, Instant, State, WriteStat
from hudi_locks.format.claim import FileGroupId
from hudi_locks.observe import EARLY_CONFLICT_CHECK, Metrics, Timing
from hudi_locks.timeline import LAYOUT_2, create_instant
from hudi_locks.timeline_server import ServerSettings
from hudi_locks.timeline_server.checker import Checker

GROUP, OTHER = FileGroupId("event_date=2026_01_01", "f-0"), FileGroupId("event_date=2026_01_02", "f-0")
PERIOD_S = 30.0
EARLIEST = "20260101000000000"
MakeChecker = Callable[..., Checker]


@pytest.fixture(params=[AsyncTimelineServerBased, BloomAsyncTimelineServerBased])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def make(ground: Any, kind: Any, metrics: Metrics) -> Iterator[MakeChecker]:
    """A checker of NOW, and what it does at first."""
    made: list[Checker] = []

    def run(*groups: FileGroupId, delay_s: float = 0.0, of: Any = kind, **given: Any) -> Checker:
        ground.begin(NOW)
        context = ground.context(heartbeat_limit_ms=10**9, **given)
        checker = Checker(of, context, initial_delay_s=delay_s, period_s=PERIOD_S, metrics=metrics)
        made.append(checker)
        checker.begin(lambda: frozenset(groups))
        return checker

    yield run
    for checker in made:
        checker.stop()


def test_a_new_bucket_that_an_earlier_write_makes_too_is_found(ground: Any, make: MakeChecker) -> None:
    ours, theirs = (FileGroupId("p", f"00000003-{name}-0") for name in ("ours", "theirs"))
    ground.announce(EARLIER, theirs)
    assert make(ours).conflict is None
    found = make(ours, is_bucketed=True).conflict
    assert found is not None
    assert (found.group, found.other) == (ours, EARLIER)


def pass_time(ground: Any, checker: Checker, duration_s: float) -> None:
    """Until the checker has looked as often as it would."""
    while checker._thread.is_alive() and not ground.clock.waits(checker._thread):
        checker._thread.join(0.001)
    ground.clock.advance(duration_s)


def test_the_first_look_comes_before_the_first_answer(ground: Any, make: MakeChecker, metrics: Metrics) -> None:
    ground.announce_by_server(EARLIER, f"{marker(EARLIER, GROUP)}\n")
    checker = make(GROUP)
    assert checker.conflict is not None
    assert (checker.conflict.group, checker.conflict.other, checker.conflict.kind) == (GROUP, EARLIER, "marker")
    assert find_reported(ground.storage, NOW) == checker.conflict
    timing = metrics.snapshot()[EARLY_CONFLICT_CHECK]
    assert isinstance(timing, Timing)
    assert timing.count == 1


def test_the_looks_are_spaced_out_as_the_options_ask(ground: Any, kind: Any, metrics: Metrics) -> None:
    options = {
        "hoodie.write.concurrency.async.conflict.detector.initial_delay_ms": "5000",
        "hoodie.write.concurrency.async.conflict.detector.period_ms": "40000",
    }
    ground.begin(NOW)
    checker = ServerSettings.of(options).make_checker(ground.guarded(kind, heartbeat_limit_ms=10**9), metrics)
    checker.begin(lambda: frozenset([GROUP]))
    try:
        pass_time(ground, checker, 4)
        assert EARLY_CONFLICT_CHECK not in metrics.snapshot()
        for duration_s, looks in ((1, 1), (39, 1), (1, 2)):
            pass_time(ground, checker, duration_s)
            pass_time(ground, checker, 0)
            assert metrics.snapshot()[EARLY_CONFLICT_CHECK].count == looks  # type: ignore[union-attr]
    finally:
        checker.stop()


def test_the_next_ones_come_after_each_period(ground: Any, make: MakeChecker) -> None:
    checker = make(GROUP)
    ground.announce(EARLIER, OTHER)
    pass_time(ground, checker, PERIOD_S)
    assert checker.conflict is None
    ground.announce(EARLIER, GROUP)
    pass_time(ground, checker, PERIOD_S - 1)
    assert checker.conflict is None
    pass_time(ground, checker, 1)
    assert checker.conflict is not None


def test_an_initial_delay_is_kept(ground: Any, make: MakeChecker) -> None:
    ground.announce(EARLIER, GROUP)
    checker = make(GROUP, delay_s=5)
    pass_time(ground, checker, 4)
    assert checker.conflict is None
    pass_time(ground, checker, 1)
    assert checker.conflict is not None


def test_only_smaller_instants_count(ground: Any, make: MakeChecker) -> None:
    ground.announce(LATER, GROUP)
    ground.announce_by_server(NOW, f"{marker(NOW, GROUP)}\n")
    assert make(GROUP).conflict is None


def test_writer_2_of_figure_4(ground: Any, make: MakeChecker) -> None:
    """Writer 1 commits at t3; writer 2, begun at t2, announces the same file at t4, when the markers are gone."""
    ground.announce(EARLIER, GROUP)
    metadata = CommitMetadata.of(
        [WriteStat(GROUP.partition, GROUP.file_id, f"{GROUP.partition}/{BaseFileName(GROUP.file_id, EARLIER)}")],
        "UPSERT",
        schema="{}",
    )
    done = Instant(EARLIER, "commit", State.COMPLETED, f"{int(EARLIER) + 50}")
    create_instant(ground.storage, LAYOUT_2, instant=done, data=metadata.encode("commit", layout_version=2))
    ground.storage.delete_folder(f".hoodie/.temp/{EARLIER}")
    ground.end(EARLIER)
    assert make(GROUP).conflict is None  # left to the publish, unless asked for
    found = make(GROUP, checks_commits=True).conflict
    assert found is not None
    assert (found.other, found.kind) == (EARLIER, "commit")


def test_a_half_written_file_is_empty_until_the_next_look(ground: Any, make: MakeChecker) -> None:
    line = f"{marker(EARLIER, GROUP)}\n"
    ground.announce_by_server(EARLIER, line[: len(line) // 2])
    checker = make(GROUP)
    assert checker.conflict is None
    ground.announce_by_server(EARLIER, line)
    pass_time(ground, checker, PERIOD_S)
    assert checker.conflict is not None


def test_a_writer_that_cannot_be_read_hides_no_other(
    ground: Any, make: MakeChecker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ground.announce_by_server(EARLIEST, f"{marker(EARLIEST, GROUP)}\n")
    ground.announce_by_server(EARLIER, f"{marker(EARLIER, GROUP)}\n")
    read = ground.storage.read

    def fail(path: str) -> Any:
        if f".temp/{EARLIEST}/" in path:
            raise StorageError("the disk has a bad block", path=path)
        return read(path)

    monkeypatch.setattr(ground.storage, "read", fail)
    found = make(GROUP).conflict
    assert found is not None
    assert found.other == EARLIER
    assert f"markers of {EARLIEST} could not be read" in caplog.text


class Faulty(AsyncTimelineServerBased):
    """A strategy of a user's own with a bug."""

    looks = 0

    def find_conflict(self, groups: Any) -> Any:
        Faulty.looks += 1
        if Faulty.looks < 3:
            raise ZeroDivisionError
        return super().find_conflict(groups)


def test_no_failure_ends_the_looks(ground: Any, make: MakeChecker, caplog: pytest.LogCaptureFixture) -> None:
    """JVM Hudi's scheduler cancels all further rounds in silence."""
    Faulty.looks = 0
    ground.announce(EARLIER, GROUP)
    with caplog.at_level(logging.WARNING):
        checker = make(GROUP, of=Faulty)
        pass_time(ground, checker, PERIOD_S)
    assert (Faulty.looks, checker.conflict) == (2, None)
    assert caplog.text.count("the next one comes") == 2
    pass_time(ground, checker, PERIOD_S)
    assert checker.conflict is not None


def test_looks_end_with_the_write(ground: Any, make: MakeChecker) -> None:
    checker = make(GROUP)
    ground.announce(EARLIER, GROUP)
    ground.end(NOW)
    pass_time(ground, checker, PERIOD_S)
    assert checker.conflict is None
    assert not checker._thread.is_alive()


def test_a_filter_saves_the_reading_of_markers(ground: Any, make: MakeChecker) -> None:
    ground.announce_by_server(EARLIER, f"{marker(EARLIER, OTHER)}\n")
    write_bloom(ground.context(EARLIER), [OTHER])
    ground.storage.calls.clear()
    assert make(GROUP, of=BloomAsyncTimelineServerBased).conflict is None
    assert not [path for path in ground.lists() if path.startswith(f".hoodie/.temp/{EARLIER}")]
    assert make(OTHER, of=BloomAsyncTimelineServerBased).conflict is not None
