from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_locks.clock import ManualClock
from hudi_locks.errors import DamagedTable
from hudi_locks.format import Instant, State, format_time
from hudi_locks.storage import LocalStorage, MemoryStorage
from hudi_locks.timeline import (
    LAYOUT_1,
    LAYOUT_2,
    Timeline,
    TimelineReader,
    create_instant,
    delete_instant,
    read_instant,
)

START_MS = 1_790_000_000_000


def time(n: int) -> str:
    return format_time(START_MS + n)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(ManualClock(START_MS + 500))


class ArchivedMeanwhile(MemoryStorage):
    """Loses the files of the first instant, the pending ones first, between a listing and a look at one of them."""

    going: tuple[str, ...] = ()

    def list_names(self, folder: str) -> list[str]:
        found = super().list_names(folder)
        going, self.going = self.going, ()
        for path in going:
            self.delete(path)
        return found


def put(storage: MemoryStorage, *instants: Instant) -> None:
    for instant in instants:
        assert create_instant(storage, LAYOUT_2, instant=instant)


def requested(n: int, action: str = "commit") -> Instant:
    return Instant(time(n), action, State.REQUESTED)


def done(n: int, completion: int, action: str = "commit") -> Instant:
    return Instant(time(n), action, State.COMPLETED, time(completion))


def test_empty_folder_is_an_empty_timeline(storage: MemoryStorage) -> None:
    timeline = Timeline.load(storage, LAYOUT_2)
    assert timeline.instants == ()
    assert timeline.newest_time() is None
    assert timeline.first_active is None
    assert not timeline.is_completed(time(1))


def test_latest_state_of_each_instant_counts(storage: MemoryStorage) -> None:
    put(
        storage,
        requested(1),
        requested(1).as_inflight(),
        done(1, 9),
        requested(2),
        requested(2).as_inflight(),
        requested(3),
    )
    timeline = Timeline.load(storage, LAYOUT_2)
    assert timeline.instants == (done(1, 9), requested(2).as_inflight(), requested(3))
    assert timeline.completed() == (done(1, 9),)
    assert timeline.pending() == (requested(2).as_inflight(), requested(3))
    assert timeline.get(time(3)) == requested(3)
    assert timeline.get(time(4)) is None


def test_a_completed_compaction_hides_its_pending_files(storage: MemoryStorage) -> None:
    compaction = requested(1, "compaction")
    put(storage, compaction, compaction.as_inflight())
    assert Timeline.load(storage, LAYOUT_2).pending(["compaction"]) == (compaction.as_inflight(),)
    put(storage, compaction.as_completed(time(2)))
    assert Timeline.load(storage, LAYOUT_2).instants == (done(1, 2),)


def test_newest_time_regards_requested_and_completion_times(storage: MemoryStorage) -> None:
    put(storage, done(1, 9), requested(3))
    assert Timeline.load(storage, LAYOUT_2).newest_time() == time(9)
    put(storage, requested(10, "rollback"))
    assert Timeline.load(storage, LAYOUT_2).newest_time() == time(10)


def test_older_than_the_first_write_is_archived(storage: MemoryStorage) -> None:
    put(storage, done(1, 2, "clean"), requested(5), done(6, 7))
    timeline = Timeline.load(storage, LAYOUT_2)
    assert timeline.first_active == time(5)
    assert timeline.is_completed(time(3))
    assert not timeline.is_completed(time(5))
    assert timeline.is_completed(time(6))
    assert not timeline.is_completed(time(8))


def test_completed_between_is_open_at_its_begin_and_closed_at_its_end(storage: MemoryStorage) -> None:
    put(storage, done(1, 20), done(2, 10), done(3, 30), done(4, 25, "clean"), requested(5))
    timeline = Timeline.load(storage, LAYOUT_2)
    assert timeline.completed_between(time(10), time(30)) == (done(1, 20), done(3, 30))
    assert timeline.completed_between(time(0)) == (done(2, 10), done(1, 20), done(3, 30))


def test_an_instant_is_created_once_and_deleted_once(storage: MemoryStorage) -> None:
    assert create_instant(storage, LAYOUT_2, instant=done(1, 2), data=b"x")
    assert not create_instant(storage, LAYOUT_2, instant=done(1, 2), data=b"y")
    timeline = Timeline.load(storage, LAYOUT_2)
    assert read_instant(storage, timeline, instant=done(1, 2)) == b"x"
    assert delete_instant(storage, LAYOUT_2, instant=done(1, 2))
    assert not delete_instant(storage, LAYOUT_2, instant=done(1, 2))
    with pytest.raises(DamagedTable, match="is gone"):
        read_instant(storage, timeline, instant=done(1, 2))


def test_two_completions_of_one_instant_are_named(storage: MemoryStorage) -> None:
    put(storage, done(1, 2), done(1, 3))
    with pytest.raises(DamagedTable, match="completed twice") as caught:
        Timeline.load(storage, LAYOUT_2)
    assert {caught.value.path, caught.value.other} == {LAYOUT_2.path(done(1, 2)), LAYOUT_2.path(done(1, 3))}


def test_a_name_like_an_instant_is_never_skipped(storage: MemoryStorage) -> None:
    storage.replace(f".hoodie/timeline/{time(1)}.comit", b"")
    with pytest.raises(DamagedTable, match=f"{time(1)}.comit"):
        Timeline.load(storage, LAYOUT_2)


def test_layout_1_and_old_names_complete_when_their_file_was_written(storage: MemoryStorage) -> None:
    storage.replace(f".hoodie/{time(1)}.commit", b"{}")
    storage.replace(".hoodie/hoodie.properties", b"")
    assert Timeline.load(storage, LAYOUT_1).instants == (done(1, 500),)
    storage.replace(f".hoodie/timeline/{time(1)}.commit", b"old")
    upgraded = Timeline.load(storage, LAYOUT_2)
    assert upgraded.instants == (done(1, 500),)
    assert read_instant(storage, upgraded, instant=done(1, 500)) == b"old"


@pytest.mark.parametrize(
    ("name", "writes"), [("v6_cow", 3), ("v8_cow", 3), ("v9_cow", 3), ("v8_cow_bucket", 3), ("v8_mor_compacted", 4)]
)
def test_timelines_of_the_jvm_are_read(golden: Callable[[str], LocalStorage], name: str, writes: int) -> None:
    timeline = Timeline.load(golden(name), LAYOUT_1 if name.startswith("v6") else LAYOUT_2)
    assert len(timeline.completed()) == writes
    assert timeline.pending() == ()
    assert timeline.newest_time() == max(i.completion or "" for i in timeline.instants)
    assert all(i.completion and i.completion > i.requested for i in timeline.instants)


@pytest.mark.parametrize("count", [1, 5])
def test_in_version_6_nothing_is_completed_before_it_was_begun(storage: MemoryStorage, count: int) -> None:
    """A store that keeps times of files in whole seconds would say so."""
    early = [Instant(format_time(storage.now_ms() + 900 + n), "commit", State.COMPLETED) for n in range(count)]
    for instant in early:
        storage.replace(LAYOUT_1.path(instant), b"")
    found = Timeline.load(storage, LAYOUT_1).completed()
    assert [instant.completion for instant in found] == [instant.requested for instant in early]


def test_a_savepoint_does_not_hide_the_commit_whose_time_it_has(storage: MemoryStorage) -> None:
    savepoint = Instant(time(1), "savepoint", State.INFLIGHT)
    put(storage, done(1, 2), savepoint, done(5, 6))
    assert Timeline.load(storage, LAYOUT_2).get(time(1)) == done(1, 2)
    assert Timeline.load(storage, LAYOUT_2).is_completed(time(1))
    put(storage, savepoint.as_completed(time(9)))
    assert Timeline.load(storage, LAYOUT_2).get(time(1)) == done(1, 2)


@pytest.mark.parametrize("action", ["clean", "rollback"])
def test_a_write_is_found_though_a_service_has_its_time(storage: MemoryStorage, action: str) -> None:
    """Writers whose clocks differ may give one time twice."""
    service = Instant(time(1), action, State.INFLIGHT)
    put(storage, done(1, 2), service.as_completed(time(3)))
    assert Timeline.load(storage, LAYOUT_2).get(time(1)) == done(1, 2)
    assert Timeline.load(storage, LAYOUT_2).completing([done(5, 6)]).get(time(1)) == done(1, 2)


def test_a_savepointed_commit_that_the_archive_left_behind_does_not_begin_the_timeline(storage: MemoryStorage) -> None:
    put(storage, done(1, 2), done(1, 3, "savepoint"), done(7, 8))
    timeline = Timeline.load(storage, LAYOUT_2)
    assert timeline.first_active == time(7)
    assert timeline.is_completed(time(4))
    assert timeline.is_completed(time(1))


def test_a_timeline_of_savepointed_commits_begins_with_the_last(storage: MemoryStorage) -> None:
    put(storage, done(1, 2), done(1, 3, "savepoint"), done(4, 5), done(4, 6, "savepoint"))
    assert Timeline.load(storage, LAYOUT_2).first_active == time(4)


@pytest.mark.parametrize("action", ["clean", "rollback"])
def test_work_that_two_cleaners_ended_counts_from_the_first(storage: MemoryStorage, action: str) -> None:
    put(storage, done(1, 5, action), done(1, 3, action))
    assert Timeline.load(storage, LAYOUT_2).instants == (done(1, 3, action),)


STEPS = st.tuples(st.integers(0, 9), st.sampled_from(["commit", "clean", "savepoint"]), st.sampled_from(list(State)))


@pytest.mark.parametrize("few", [0, 1, 100])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(STEPS, st.booleans()), max_size=40))
def test_a_reader_that_looks_again_and_again_sees_what_a_new_one_sees(
    few: int, steps: list[tuple[tuple[int, str, State], bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever comes, in whatever order, and is removed; whether it counts as much that is gone or as little."""
    monkeypatch.setattr("hudi_locks.timeline.timeline._FEW", few)
    storage = MemoryStorage(ManualClock(START_MS + 500))
    reader = TimelineReader(storage, LAYOUT_2)
    for (number, action, state), stays in steps:
        completion = time(number + 100) if state is State.COMPLETED else None
        instant = Instant(time(number), action, state, completion)
        create_instant(storage, LAYOUT_2, instant=instant)
        if not stays:
            delete_instant(storage, LAYOUT_2, instant=instant)
        seen, fresh = reader.load(), Timeline.load(storage, LAYOUT_2)
        assert (seen, dict(seen.paths)) == (fresh, dict(fresh.paths))
        assert list(seen.instants) == sorted(seen.instants, key=lambda i: (i.requested, i.action, i.state))


LOOKS: list[Callable[[Timeline], object]] = [
    Timeline.completed,
    Timeline.pending,
    Timeline.newest_time,
    lambda timeline: timeline.first_active,
    lambda timeline: timeline.savepoints,
    lambda timeline: timeline.completed_between(""),
    lambda timeline: timeline.completed_since(Timeline(LAYOUT_2, ())),
    lambda timeline: [timeline.get(time(number)) for number in range(25)],
    lambda timeline: dict(timeline.paths),
]


@given(
    st.lists(STEPS, max_size=20),
    st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=4, unique=True), max_size=4),
    st.lists(st.sampled_from(LOOKS)),
)
def test_a_timeline_that_is_carried_on_is_the_one_that_a_listing_shows(
    steps: list[tuple[int, str, State]], turns: list[list[int]], looks: list[Callable[[Timeline], object]]
) -> None:
    """Whatever was asked of the one before, and so is derived already."""
    storage = MemoryStorage(ManualClock(START_MS + 500))
    for number, action, state in steps:
        completion = time(number + 100) if state is State.COMPLETED else None
        create_instant(storage, LAYOUT_2, instant=Instant(time(number), action, state, completion))
    timeline = Timeline.load(storage, LAYOUT_2)
    for turn, numbers in enumerate(turns):
        for look in looks:
            look(timeline)
        free = [number for number in numbers if (i := timeline.get(time(number))) is None or _is_pending_write(i)]
        writes = [done(number, 200 + 10 * turn + place) for place, number in enumerate(free)]
        put(storage, *writes)
        timeline, fresh = timeline.completing(writes), Timeline.load(storage, LAYOUT_2)
        assert timeline == fresh
        assert [look(timeline) for look in LOOKS] == [look(fresh) for look in LOOKS]


def _is_pending_write(instant: Instant) -> bool:
    return instant.action == "commit" and not instant.is_completed


def test_a_reserved_time_is_the_newest_unless_a_later_one_is_shown(storage: MemoryStorage) -> None:
    put(storage, done(1, 5))
    timeline = Timeline.load(storage, LAYOUT_2)
    reserved = timeline.reserving(time(7))
    assert [t.newest_time() for t in (timeline, timeline.reserving(time(3)), reserved)] == [time(5), time(5), time(7)]
    assert reserved == timeline
    assert reserved.completing([done(8, 9)]).newest_time() == time(9)
    assert reserved.completed_since(timeline) == ()


def test_a_write_of_version_6_that_is_archived_while_it_is_looked_at_does_not_look_pending() -> None:
    storage = ArchivedMeanwhile(ManualClock(START_MS + 500))
    for number in (1, 2):
        for state in (State.REQUESTED, State.INFLIGHT, State.COMPLETED):
            storage.replace(LAYOUT_1.path(Instant(time(number), "deltacommit", state)), b"")
    reader = TimelineReader(storage, LAYOUT_1)
    storage.going = tuple(LAYOUT_1.path(Instant(time(1), "deltacommit", state)) for state in State)
    timeline = reader.load()
    assert [(instant.requested, instant.state) for instant in timeline.instants] == [(time(2), State.COMPLETED)]
    assert timeline.is_completed(time(1))
    assert reader.load().instants == timeline.instants
