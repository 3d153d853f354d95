"""A moment that cleans have left in part is refused, whatever they counted by, and one that they left whole is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from compaction_harness import CompactionHarness
from hypothesis import given
from hypothesis import strategies as st
from log_history import Event, LogHistory, events
from service_harness import ServiceHarness
from transaction_harness import heartbeats_that_end

from hudi_locks.errors import TableError
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings
from hudi_locks.table import latest_file_slices, refuse_removed, slices_changed
from hudi_locks.transaction import StopPoint

VERSIONS = {"policy": "KEEP_LATEST_FILE_VERSIONS", "fileversions__retained": 1}
HOUR_S = 3601
ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))


def look(harness: ServiceHarness, **moment: str) -> None:
    timeline, names = harness.timeline(), {"completed": "as_of", "requested": "as_of_requested"}
    limits: dict[str, Any] = {names[name]: time for name, time in moment.items()}
    refuse_removed(harness.storage, timeline, latest_file_slices(harness.storage, timeline, **limits), **moment)


def completion(harness: ServiceHarness, requested: str) -> str:
    found = harness.timeline().get(requested)
    assert found is not None
    return str(found.completion)


def refused(harness: ServiceHarness, **moment: str) -> bool:
    try:
        look(harness, **moment)
    except TableError:
        return True
    return False


def test_a_moment_whose_base_file_a_clean_by_versions_removed_is_refused(harness: ServiceHarness) -> None:
    puts = [harness.put("p/g-0") for _ in range(4)]
    assert harness.cleaner(**{**VERSIONS, "fileversions__retained": 2}).run().deleted == 2
    with pytest.raises(
        TableError, match=rf"as of {puts[1]} is not whole any more: .*{puts[1]}.parquet was cleaned"
    ) as e:
        look(harness, requested=puts[1])
    assert (e.value.time, puts[1] in e.value.path) == (puts[1], True)
    assert [refused(harness, requested=put) for put in puts] == [True, True, False, False]
    assert [refused(harness, completed=completion(harness, put)) for put in puts] == [True, True, False, False]


def test_file_groups_that_came_later_and_others_of_which_nothing_went_do_not_matter(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    for _ in range(3):
        harness.put("p/h-0", "q/g-0")
    assert harness.cleaner(**VERSIONS).run().deleted == 4
    assert not refused(harness, requested=first)


def test_what_was_replaced_by_then_does_not_matter_also_once_that_is_archived(harness: ServiceHarness) -> None:
    before = harness.put("p/g-0")
    replacing = harness.put("p/h-0", replaces=("p/g-0",))
    for _ in range(3):
        harness.put("q/k-0")
    assert harness.cleaner(**VERSIONS).run().deleted == 3
    times = [completion(harness, time) for time in (before, replacing)]
    assert [refused(harness, completed=time) for time in times] == [True, False]
    archive(harness)
    assert harness.timeline().get(replacing) is None
    assert [refused(harness, completed=time) for time in times] == [True, False]


def test_a_clean_that_is_archived_counts_too(harness: ServiceHarness) -> None:
    puts = [harness.put("p/g-0") for _ in range(3)]
    times = [completion(harness, put) for put in puts]
    harness.cleaner(**VERSIONS).run()
    for _ in range(3):
        harness.put("q/k-0")
    archive(harness)
    assert harness.timeline().completed(("clean",)) == ()
    assert [refused(harness, completed=time) for time in times] == [True, True, False]


def archive(harness: ServiceHarness) -> None:
    harness.clock.advance(HOUR_S)
    keep = {"hoodie.keep.min.commits": 1, "hoodie.keep.max.commits": 2, "hoodie.clean.commits.retained": 1}
    coordinator = harness.open().coordinator
    done = Archiver(coordinator, ArchiveSettings.of(keep), clean_settings=CleanSettings.of(keep)).run()
    assert done.archived > 0


def test_a_clean_under_way_counts(harness: ServiceHarness, at: Any) -> None:
    puts = [harness.put("p/g-0") for _ in range(3)]
    found: list[bool] = []

    def try_all() -> None:
        found.extend(refused(harness, requested=put) for put in puts)

    harness.cleaner(trace=at(StopPoint.SERVICE_INFLIGHT, try_all), **VERSIONS).run()
    assert found == [True, True, False]


def test_a_span_that_ends_beside_a_compaction_shows_no_row_that_never_was(harness: ServiceHarness) -> None:
    """Its own log is there, on top of the compaction; what that log was merged with then is not."""
    service = CompactionHarness.at(harness)
    service.append(ZERO)
    harness.clock.advance(1)
    service.compaction().schedule()
    harness.clock.advance(1)
    late, other = service.append(ZERO), service.append(ONE)
    end = completion(harness, late)
    begin = str(int(end) - 1)
    service.run(service.compaction())
    harness.clock.advance(1)
    service.append(ZERO)
    assert len(slices_changed(harness.storage, harness.timeline(), begin=begin, end=end).slices[0].logs) == 2
    assert harness.cleaner(commits__retained=1).run().deleted == 1
    with pytest.raises(TableError, match="was cleaned"):
        slices_changed(harness.storage, harness.timeline(), begin=begin, end=end)
    assert slices_changed(harness.storage, harness.timeline(), begin=begin).instants[0] == late
    unharmed = slices_changed(harness.storage, harness.timeline(), begin=end, end=completion(harness, other))
    assert [(piece.file_id, len(piece.logs)) for piece in unharmed.slices] == [(ONE, 1)]


# ---- whatever the history: a moment is refused if and only if something that it showed is gone ----

BY_COMMITS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({"commits__retained": st.integers(1, 4)})
BY_VERSIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"policy": st.just("KEEP_LATEST_FILE_VERSIONS"), "fileversions__retained": st.integers(1, 2)}
)


@pytest.fixture(autouse=True)
def heartbeats_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of writes that a history leaves open."""
    with heartbeats_that_end(monkeypatch):
        yield


def misjudged(history: LogHistory) -> list[str]:
    """Moments of which the judgement is wrong."""
    return [
        moment for moment in sorted(set(history.moments)) if is_refused(history, moment) is history.is_whole(moment)
    ]


def is_refused(history: LogHistory, moment: str) -> bool:
    return refused(history.at.harness, completed=moment)


@pytest.mark.histories
@given(events, BY_COMMITS | BY_VERSIONS)
def test_moments_are_refused_that_are_not_whole_and_no_others(played: list[Event], options: dict[str, Any]) -> None:
    assert misjudged(LogHistory(options).play(played)) == []


@pytest.mark.histories
def test_histories_of_chance_have_moments_of_both_kinds() -> None:
    histories = [LogHistory(VERSIONS).play_at_random(seed, 40) for seed in range(8)]
    assert [misjudged(history) for history in histories] == [[]] * 8
    kinds = {is_refused(history, moment) for history in histories for moment in history.moments}
    assert kinds == {True, False}
