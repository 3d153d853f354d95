"""The active timeline of a table of version 6 stays short: what leaves it goes to logs, as JVM Hudi leaves them."""

from __future__ import annotations

from typing import Any

import pytest
from mortal_storage import MortalStorage
from service_harness import ServiceHarness
from transaction_harness import Killed

from hudi_locks.format import FIRST_TIME, CommitMetadata, Instant, State, add_ms
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings
from hudi_locks.table import latest_base_files
from hudi_locks.timeline import LAYOUT_1, create_instant
from hudi_locks.timeline.archive import find_archived_content, is_archived, list_archived_since
from hudi_locks.transaction import StopPoint

HOUR_S = 3601
ARCHIVE = LAYOUT_1.archive


@pytest.fixture
def old(harness: ServiceHarness) -> ServiceHarness:
    harness.layout = LAYOUT_1
    return harness


@pytest.fixture
def times(old: ServiceHarness) -> list[str]:
    """Six commits of an hour ago."""
    found = [old.put("p/g-0") for _ in range(6)]
    old.clock.advance(HOUR_S)
    return found


def archiver(harness: ServiceHarness, *, storage: Any = None, trace: Any = None) -> Archiver:
    given = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 4, "hoodie.clean.commits.retained": 1}
    coordinator = harness.open(storage=storage, trace=trace).coordinator
    return Archiver(coordinator, ArchiveSettings.of(given), clean_settings=CleanSettings.of(given))


def archived(harness: ServiceHarness) -> list[str]:
    return sorted(one.requested for one in list_archived_since(harness.storage, LAYOUT_1, completed_after=FIRST_TIME))


def active(harness: ServiceHarness) -> list[str]:
    return [instant.requested for instant in harness.timeline().instants]


def test_the_surplus_leaves_the_timeline_and_is_in_a_log(old: ServiceHarness, times: list[str]) -> None:
    instants = {one.requested: one for one in old.timeline().instants}
    told = {time: old.storage.read(LAYOUT_1.path(one)) or b"" for time, one in instants.items()}
    before = latest_base_files(old.storage, old.timeline())
    result = archiver(old).run()
    assert (result.archived, result.first_active) == (4, times[4])
    assert (active(old), archived(old)) == (times[4:], times[:4])
    assert old.names(ARCHIVE) == [".commits_.archive.1_1-0-1"]
    for one in list_archived_since(old.storage, LAYOUT_1, completed_after=FIRST_TIME):
        as_it_was = CommitMetadata.decode(told[one.requested], "the commit")
        assert CommitMetadata.decode(one.metadata, "the archive") == as_it_was
        assert one.completion == instants[one.requested].completion
    assert latest_base_files(old.storage, old.timeline()) == before
    assert archiver(old).run().archived == 0


def test_each_archival_adds_a_file_behind_those_of_others(old: ServiceHarness, times: list[str]) -> None:
    old.storage.create_if_absent(f"{ARCHIVE}/.commits_.archive.11_1-0-1", b"")
    archiver(old).run()
    times += [old.put("p/g-0") for _ in range(3)]
    old.clock.advance(HOUR_S)
    archiver(old).run()
    numbers = sorted(int(name.split(".")[3].partition("_")[0]) for name in old.names(ARCHIVE))
    assert numbers == [11, 12, 13]
    assert archived(old) == times[:-2]


def test_replacing_writes_cleans_and_rollbacks_go_with_the_writes_around_them(old: ServiceHarness) -> None:
    old.put("p/g-0", "p/h-0")
    replacing = old.put("p/k-0", replaces=("p/h-0",))
    cleans = old.cleaner(commits__retained=1).run().instants
    old.clock.advance(1)
    old.open().begin("commit", "UPSERT").abort("enough")
    for _ in range(4):
        old.put("p/g-0")
    old.cleaner(commits__retained=1).run()
    old.clock.advance(HOUR_S)
    archiver(old).run()
    found = {
        one.requested: one.action for one in list_archived_since(old.storage, LAYOUT_1, completed_after=FIRST_TIME)
    }
    assert found[replacing] == "replacecommit"
    assert cleans
    assert all(found[clean] == "clean" for clean in cleans)
    assert "rollback" in found.values()
    done = Instant(replacing, "replacecommit", State.COMPLETED)
    data = find_archived_content(old.storage, LAYOUT_1, instant=done)
    assert CommitMetadata.decode(data or b"", "it").replaced_file_ids == {"p": ("h-0",)}


@pytest.mark.parametrize("action", ["restore", "indexing"])
def test_what_the_archive_has_no_place_for_stays_and_blocks_nothing(
    old: ServiceHarness, times: list[str], action: str
) -> None:
    done = Instant(add_ms(times[1], 2), action, State.REQUESTED)
    for state in (done, done.as_inflight(), done.as_completed(add_ms(times[1], 3))):
        create_instant(old.storage, LAYOUT_1, instant=state)
    old.clock.advance(HOUR_S)
    archiver(old).run()
    assert archived(old) == times[:4]
    assert active(old) == [done.requested, *times[4:]]


def test_nothing_goes_behind_a_pending_write_nor_behind_a_plan(old: ServiceHarness) -> None:
    first = [old.put("p/g-0") for _ in range(2)]
    slow = old.open().begin("commit", "UPSERT")
    later = [old.put("q/g-0") for _ in range(5)]
    plan = Instant(add_ms(later[1], 1), "compaction", State.REQUESTED)
    create_instant(old.storage, LAYOUT_1, instant=plan)
    old.clock.advance(HOUR_S)
    archiver(old).run()
    assert archived(old) == first[:1]
    slow.abort("enough")
    old.clock.advance(HOUR_S)
    archiver(old).run()
    assert archived(old)[-1] <= later[0]


def _kept(harness: ServiceHarness, times: list[str]) -> None:
    """No instant is lost, and readers take all of them for completed."""
    timeline = harness.timeline()
    for time in times:
        assert timeline.is_completed(time)
        assert timeline.get(time) is not None or is_archived(harness.storage, LAYOUT_1, requested=time)
    assert timeline.pending() == ()
    assert [file.instant for file in latest_base_files(harness.storage, timeline)] == [times[-1]]


@pytest.mark.parametrize("life", range(26))
def test_an_archiver_may_die_before_any_of_its_steps(old: ServiceHarness, times: list[str], life: int) -> None:
    try:
        archiver(old, storage=MortalStorage(old.storage, life)).run()
    except Killed:
        _kept(old, times)
    old.clock.advance(HOUR_S)
    times += [old.put("p/g-0") for _ in range(3)]
    old.clock.advance(HOUR_S)
    archiver(old).run()
    _kept(old, times)
    assert sorted(set(archived(old))) == times[:-2]
    assert active(old) == times[-2:]


def test_two_archivers_without_a_lock_lose_nothing(old: ServiceHarness, times: list[str]) -> None:
    left = [True]

    def archive_too(_: StopPoint) -> None:
        if left and left.pop():
            archiver(old).run()

    archiver(old, trace=archive_too).run()
    _kept(old, times)
    assert archived(old) == times[:4]
