"""A moment that cleans have left in part is refused, whatever they counted by, and one that they left whole is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from compaction_desk import CompactionDesk
from hypothesis import given
from hypothesis import strategies as st
from log_history import Event, LogHistory, events
from service_desk import ServiceDesk
from transaction_desk import heartbeats_that_end

from hudi_locks.errors import TableError
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings
from hudi_locks.table import latest_file_slices, refuse_removed, slices_changed
from hudi_locks.transaction import StopPoint

VERSIONS = {"policy": "KEEP_LATEST_FILE_VERSIONS", "fileversions__retained": 1}
HOUR_S = 3601
ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))


def look(desk: ServiceDesk, **moment: str) -> None:
    timeline, names = desk.timeline(), {"completed": "as_of", "requested": "as_of_requested"}
    limits: dict[str, Any] = {names[name]: time for name, time in moment.items()}
    refuse_removed(desk.storage, timeline, latest_file_slices(desk.storage, timeline, **limits), **moment)


def completion(desk: ServiceDesk, requested: str) -> str:
    found = desk.timeline().get(requested)
    assert found is not None
    return str(found.completion)


def refused(desk: ServiceDesk, **moment: str) -> bool:
    try:
        look(desk, **moment)
    except TableError:
        return True
    return False


def test_a_moment_whose_base_file_a_clean_by_versions_removed_is_refused(desk: ServiceDesk) -> None:
    puts = [desk.put("p/g-0") for _ in range(4)]
    assert desk.cleaner(**{**VERSIONS, "fileversions__retained": 2}).run().deleted == 2
    with pytest.raises(
        TableError, match=rf"as of {puts[1]} is not whole any more: .*{puts[1]}.parquet was cleaned"
    ) as e:
        look(desk, requested=puts[1])
    assert (e.value.time, puts[1] in e.value.path) == (puts[1], True)
    assert [refused(desk, requested=put) for put in puts] == [True, True, False, False]
    assert [refused(desk, completed=completion(desk, put)) for put in puts] == [True, True, False, False]


def test_file_groups_that_came_later_and_others_of_which_nothing_went_do_not_matter(desk: ServiceDesk) -> None:
    first = desk.put("p/g-0")
    for _ in range(3):
        desk.put("p/h-0", "q/g-0")
    assert desk.cleaner(**VERSIONS).run().deleted == 4
    assert not refused(desk, requested=first)


def test_what_was_replaced_by_then_does_not_matter_also_once_that_is_archived(desk: ServiceDesk) -> None:
    before = desk.put("p/g-0")
    replacing = desk.put("p/h-0", replaces=("p/g-0",))
    for _ in range(3):
        desk.put("q/k-0")
    assert desk.cleaner(**VERSIONS).run().deleted == 3
    times = [completion(desk, time) for time in (before, replacing)]
    assert [refused(desk, completed=time) for time in times] == [True, False]
    archive(desk)
    assert desk.timeline().get(replacing) is None
    assert [refused(desk, completed=time) for time in times] == [True, False]


def test_a_clean_that_is_archived_counts_too(desk: ServiceDesk) -> None:
    puts = [desk.put("p/g-0") for _ in range(3)]
    times = [completion(desk, put) for put in puts]
    desk.cleaner(**VERSIONS).run()
    for _ in range(3):
        desk.put("q/k-0")
    archive(desk)
    assert desk.timeline().completed(("clean",)) == ()
    assert [refused(desk, completed=time) for time in times] == [True, True, False]


def archive(desk: ServiceDesk) -> None:
    desk.clock.advance(HOUR_S)
    keep = {"hoodie.keep.min.commits": 1, "hoodie.keep.max.commits": 2, "hoodie.clean.commits.retained": 1}
    coordinator = desk.open().coordinator
    done = Archiver(coordinator, ArchiveSettings.of(keep), clean_settings=CleanSettings.of(keep)).run()
    assert done.archived > 0


def test_a_clean_under_way_counts(desk: ServiceDesk, at: Any) -> None:
    puts = [desk.put("p/g-0") for _ in range(3)]
    found: list[bool] = []

    def try_all() -> None:
        found.extend(refused(desk, requested=put) for put in puts)

    desk.cleaner(trace=at(StopPoint.SERVICE_INFLIGHT, try_all), **VERSIONS).run()
    assert found == [True, True, False]


def test_a_span_that_ends_beside_a_compaction_shows_no_row_that_never_was(desk: ServiceDesk) -> None:
    """Its own log is there, on top of the compaction; what that log was merged with then is not."""
    at_desk = CompactionDesk.at(desk)
    at_desk.append(ZERO)
    desk.clock.advance(1)
    at_desk.compaction().schedule()
    desk.clock.advance(1)
    late, other = at_desk.append(ZERO), at_desk.append(ONE)
    end = completion(desk, late)
    begin = str(int(end) - 1)
    at_desk.run(at_desk.compaction())
    desk.clock.advance(1)
    at_desk.append(ZERO)
    assert len(slices_changed(desk.storage, desk.timeline(), begin=begin, end=end).slices[0].logs) == 2
    assert desk.cleaner(commits__retained=1).run().deleted == 1
    with pytest.raises(TableError, match="was cleaned"):
        slices_changed(desk.storage, desk.timeline(), begin=begin, end=end)
    assert slices_changed(desk.storage, desk.timeline(), begin=begin).instants[0] == late
    unharmed = slices_changed(desk.storage, desk.timeline(), begin=end, end=completion(desk, other))
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
    return refused(history.at.desk, completed=moment)


@given(events, BY_COMMITS | BY_VERSIONS)
def test_moments_are_refused_that_are_not_whole_and_no_others(played: list[Event], options: dict[str, Any]) -> None:
    assert misjudged(LogHistory(options).play(played)) == []


def test_histories_of_chance_have_moments_of_both_kinds() -> None:
    histories = [LogHistory(VERSIONS).play_at_random(seed, 40) for seed in range(8)]
    assert [misjudged(history) for history in histories] == [[]] * 8
    kinds = {is_refused(history, moment) for history in histories for moment in history.moments}
    assert kinds == {True, False}
