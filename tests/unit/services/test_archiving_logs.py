"""The timeline of a merge-on-read table stays short, and no reader loses a log whose commit left it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from compaction_harness import NON_BLOCKING, SCHEMA, CompactionHarness
from service_harness import ServiceHarness

from hudi_locks.format import BaseFileName, CommitMetadata, LogFileName
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings, TableServices
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.archive import is_archived
from hudi_locks.transaction import StopPoint

HOUR_S = 3601
ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))
KEEP = {
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 4,
    "hoodie.clean.commits.retained": 1,
    "hoodie.compact.inline.max.delta.commits": 2,
}


@pytest.fixture
def service(harness: ServiceHarness) -> CompactionHarness:
    return CompactionHarness.at(harness)


def archiver(service: CompactionHarness, **options: Any) -> Archiver:
    given = {**KEEP, **{name.replace("__", "."): value for name, value in options.items()}}
    coordinator = service.harness.open(**NON_BLOCKING).coordinator
    return Archiver(coordinator, ArchiveSettings.of(given), clean_settings=CleanSettings.of(given))


def archive(service: CompactionHarness, **options: Any) -> int:
    service.harness.clock.advance(HOUR_S)
    return archiver(service, **options).run().archived


def append(service: CompactionHarness, *groups: str) -> str:
    service.harness.clock.advance(1)
    return service.append(*groups)


def compact(service: CompactionHarness) -> str:
    service.harness.clock.advance(1)
    done = service.run(service.compaction(), service.compaction().schedule())
    assert done is not None
    assert done.is_committed
    return str(service.harness.timeline().completed(("commit",))[-1].requested)


def active(service: CompactionHarness) -> list[str]:
    return [instant.requested for instant in service.harness.timeline().instants]


def test_commits_of_logs_and_compactions_go_and_every_snapshot_reads_the_same(service: CompactionHarness) -> None:
    for _ in range(3):
        append(service, ZERO, ONE)
    compact(service)
    for _ in range(4):
        append(service, ZERO)
    moments = [str(instant.completion) for instant in service.harness.timeline().completed()]
    before = [service.seen(as_of=moment) for moment in moments]
    assert archive(service) == 6
    assert len(active(service)) == 2
    assert [service.seen(as_of=moment) for moment in moments] == before


@pytest.fixture
def overlapping(service: CompactionHarness) -> str:
    """A commit that a compaction does not take, since it ends after that was planned, though it began before."""
    append(service, ZERO)
    tx = service.begin()
    draft = service.log(tx, ZERO)
    append(service, ZERO)
    service.compaction().schedule()
    assert tx.publish(draft).is_committed
    assert service.run(service.compaction()) is not None
    for _ in range(5):
        append(service, ONE)
    return str(tx.instant)


def test_a_log_that_was_completed_after_a_compaction_began_is_not_hidden_by_archival(
    service: CompactionHarness, overlapping: str
) -> None:
    """hudi-rs looks for its completion on the active timeline alone, and would take it for compacted."""
    first = active(service)
    before = service.seen()
    assert overlapping in before[ZERO]
    assert first[1] == overlapping
    assert archive(service) == 1
    assert active(service) == first[1:]
    assert service.seen() == before


def test_an_overlapping_log_is_archived_once_a_later_compaction_took_it(
    service: CompactionHarness, overlapping: str
) -> None:
    before = service.seen()
    compact(service)
    later = [append(service, ONE) for _ in range(2)]
    archive(service)
    assert active(service) == later
    assert service.seen() == {**before, ONE: before[ONE] + later}
    assert overlapping in before[ZERO]


def test_an_overlapping_log_in_a_file_group_that_no_compaction_took_holds_nothing(service: CompactionHarness) -> None:
    """The compaction that began meanwhile made base files of other file groups."""
    tx = service.begin()
    draft = service.log(tx, ONE)
    append(service, ZERO)
    service.compaction().schedule()
    assert tx.publish(draft).is_committed
    assert service.run(service.compaction()) is not None
    later = [append(service, ZERO) for _ in range(5)][-2:]
    archive(service)
    assert active(service) == later
    assert service.seen()[ONE] == [tx.instant]


def test_an_overlapping_log_whose_file_is_gone_holds_nothing(service: CompactionHarness, overlapping: str) -> None:
    service.harness.storage.delete(f"p/{LogFileName(ZERO, overlapping)}")
    later = active(service)[-2:]
    archive(service)
    assert active(service) == later


def test_one_listing_tells_of_all_overlapping_logs_and_none_is_made_without_them(
    service: CompactionHarness, overlapping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    monkeypatch.setattr(MemoryStorage, "list", note_listing(MemoryStorage.list, listed))
    archive(service)
    assert listed.count("p") == 1
    compact(service)
    for _ in range(2):
        archive(service)
        append(service, ONE)
        append(service, ONE)
        append(service, ONE)
    assert service.harness.timeline().get(overlapping) is None
    listed.clear()
    assert archive(service) > 0
    assert "p" not in listed


def note_listing(listing: Any, listed: list[str]) -> Any:
    def listing_too(storage: MemoryStorage, folder: str) -> Any:
        listed.append(folder)
        return listing(storage, folder)

    return listing_too


@pytest.mark.parametrize("is_compacted", [True, False])
def test_what_makes_the_next_compaction_due_stays(service: CompactionHarness, *, is_compacted: bool) -> None:
    for _ in range(4):
        append(service, ZERO)
    last = [compact(service)] if is_compacted else []
    last += [append(service, ZERO) for _ in range(4)]
    options = {"hoodie__compact__inline__max__delta__commits": 5 if is_compacted else 3}
    before = service.compaction().count_commits(service.harness.timeline())
    archive(service, **options)
    assert active(service) == (last if is_compacted else last[-3:])
    after = service.compaction().count_commits(service.harness.timeline())
    assert (before, after) == ((4, 4) if is_compacted else (8, 3))


def test_nothing_goes_that_is_later_than_a_clean_which_stays(service: CompactionHarness) -> None:
    """A JVM asks the history for nothing that is later than the first instant on the timeline."""
    append(service, ZERO)
    compact(service)
    append(service, ZERO)
    clean = service.harness.cleaner(commits__retained=1).run().instants[0]
    service.harness.storage.replace(f".hoodie/.heartbeat/{clean}", b"")
    later = [append(service, ZERO) for _ in range(6)]
    archive(service)
    assert active(service) == [clean, *later]
    service.harness.storage.delete(f".hoodie/.heartbeat/{clean}")
    archive(service)
    assert active(service) == later[-2:]


def test_nothing_goes_beside_a_plan_that_waits(service: CompactionHarness) -> None:
    first = [append(service, ZERO) for _ in range(2)]
    plan = service.compaction().schedule()
    later = [append(service, ZERO) for _ in range(6)]
    assert archive(service) == 1
    assert active(service) == [first[1], plan, *later]


def test_a_replacing_write_stays_until_the_logs_that_it_replaced_are_gone(service: CompactionHarness) -> None:
    append(service, ZERO, ONE)
    tx = service.harness.open().begin("replacecommit", "DELETE_PARTITION")
    ended = CommitMetadata.of([], "DELETE_PARTITION", schema=None, replaced_file_ids={"p": (ZERO,)})
    assert tx.publish(ended).is_committed
    for _ in range(6):
        append(service, ONE)
    archive(service)
    assert tx.instant in active(service)
    assert service.harness.cleaner(commits__retained=1).run().deleted == 1
    archive(service)
    assert tx.instant not in active(service)
    assert set(service.seen()) == {ONE}


def test_logs_of_a_write_that_was_rolled_back_go_before_they_look_completed(service: CompactionHarness) -> None:
    append(service, ZERO)
    tx = service.begin()
    tx.abort("enough")
    late = f"p/{LogFileName(ZERO, tx.instant)}"
    service.harness.storage.replace(late, b'["never"]')
    for _ in range(5):
        append(service, ZERO)
    archive(service)
    assert tx.instant < str(service.harness.timeline().first_active)
    assert service.harness.storage.read(late) is None


def test_what_the_oldest_snapshot_that_is_kept_does_not_show_stays(service: CompactionHarness) -> None:
    first = append(service, ZERO)
    slow = service.begin()
    draft = service.log(slow, ZERO)
    later = [append(service, ONE) for _ in range(5)]
    assert slow.publish(draft).is_committed
    assert archive(service) == 1
    assert active(service) == [slow.instant, *later]
    assert is_archived(service.harness.storage, LAYOUT_2, requested=first)


def test_streams_that_go_on_keep_their_table_small(service: CompactionHarness) -> None:
    """Twelve rounds of three writes and a compaction; all rows are there, few files and instants are."""
    services = TableServices(service.harness.open(**NON_BLOCKING), KEEP)
    services._archiver._settings = replace(services._archiver._settings, min_age_ms=0)
    written = []
    for _ in range(12):
        written += [append(service, ZERO) for _ in range(3)]
        compact(service)
        assert services.follow_write() == ()
    assert service.seen() == {ZERO: written}
    assert len(service.harness.timeline().instants) <= 10
    assert len(service.harness.names("p")) <= 10


def test_a_log_that_is_completed_and_archived_while_a_plan_is_made_is_never_hidden_by_it(
    service: CompactionHarness, at: Any
) -> None:
    """The plan knows it as pending, and no timeline shows it any more when the plan is decided."""
    append(service, ZERO)
    late = service.begin()
    draft = service.log(late, ZERO)

    def end_it() -> None:
        assert late.publish(draft).is_committed
        for _ in range(6):
            append(service, ONE)
        assert archive(service) > 1
        assert late.instant not in active(service)

    compaction = service.compaction(trace=at(StopPoint.SCHEDULE_PLANNED, end_it))
    before = service.run(compaction, compaction.schedule())
    assert before is None or before.is_committed
    assert late.instant in service.seen()[ZERO]
    compact(service)
    assert late.instant in service.seen()[ZERO]


def test_a_log_on_top_of_a_bulk_insert_that_began_after_it_stays_until_a_compaction_takes_it(
    service: CompactionHarness,
) -> None:
    append(service, ONE)
    early = service.begin()
    draft = service.log(early, ZERO)
    service.harness.clock.advance(1)
    loading = service.begin()
    base = service._make(loading, ZERO, str(BaseFileName(ZERO, loading.instant)), [loading.instant], None)
    assert loading.publish(CommitMetadata.of([base], "BULK_INSERT", schema=SCHEMA)).is_committed
    assert early.publish(draft).is_committed
    for _ in range(6):
        append(service, ONE)
    archive(service)
    assert early.instant in active(service)
    compact(service)
    for _ in range(6):
        append(service, ONE)
    archive(service)
    assert early.instant not in active(service)
    assert service.seen()[ZERO] == [loading.instant, early.instant]
