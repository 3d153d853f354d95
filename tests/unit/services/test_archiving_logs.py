"""The timeline of a merge-on-read table stays short, and no reader loses a log whose commit left it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from compaction_desk import NON_BLOCKING, CompactionDesk
from service_desk import ServiceDesk

from hudi_locks.format import CommitMetadata, LogFileName
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
def at_desk(desk: ServiceDesk) -> CompactionDesk:
    return CompactionDesk.at(desk)


def archiver(at_desk: CompactionDesk, **options: Any) -> Archiver:
    given = {**KEEP, **{name.replace("__", "."): value for name, value in options.items()}}
    coordinator = at_desk.desk.open(**NON_BLOCKING).coordinator
    return Archiver(coordinator, ArchiveSettings.of(given), clean_settings=CleanSettings.of(given))


def archive(at_desk: CompactionDesk, **options: Any) -> int:
    at_desk.desk.clock.advance(HOUR_S)
    return archiver(at_desk, **options).run().archived


def append(at_desk: CompactionDesk, *groups: str) -> str:
    at_desk.desk.clock.advance(1)
    return at_desk.append(*groups)


def compact(at_desk: CompactionDesk) -> str:
    at_desk.desk.clock.advance(1)
    done = at_desk.run(at_desk.compaction(), at_desk.compaction().schedule())
    assert done is not None
    assert done.is_committed
    return str(at_desk.desk.timeline().completed(("commit",))[-1].requested)


def active(at_desk: CompactionDesk) -> list[str]:
    return [instant.requested for instant in at_desk.desk.timeline().instants]


def test_commits_of_logs_and_compactions_go_and_every_snapshot_reads_the_same(at_desk: CompactionDesk) -> None:
    for _ in range(3):
        append(at_desk, ZERO, ONE)
    compact(at_desk)
    for _ in range(4):
        append(at_desk, ZERO)
    moments = [str(instant.completion) for instant in at_desk.desk.timeline().completed()]
    before = [at_desk.seen(as_of=moment) for moment in moments]
    assert archive(at_desk) == 6
    assert len(active(at_desk)) == 2
    assert [at_desk.seen(as_of=moment) for moment in moments] == before


@pytest.fixture
def overlapping(at_desk: CompactionDesk) -> str:
    """A commit that a compaction does not take, since it ends after that was planned, though it began before."""
    append(at_desk, ZERO)
    tx = at_desk.begin()
    draft = at_desk.log(tx, ZERO)
    append(at_desk, ZERO)
    at_desk.compaction().schedule()
    assert tx.publish(draft).is_committed
    assert at_desk.run(at_desk.compaction()) is not None
    for _ in range(5):
        append(at_desk, ONE)
    return str(tx.instant)


def test_a_log_that_was_completed_after_a_compaction_began_is_not_hidden_by_archival(
    at_desk: CompactionDesk, overlapping: str
) -> None:
    """hudi-rs looks for its completion on the active timeline alone, and would take it for compacted."""
    first = active(at_desk)
    before = at_desk.seen()
    assert overlapping in before[ZERO]
    assert first[1] == overlapping
    assert archive(at_desk) == 1
    assert active(at_desk) == first[1:]
    assert at_desk.seen() == before


def test_an_overlapping_log_is_archived_once_a_later_compaction_took_it(
    at_desk: CompactionDesk, overlapping: str
) -> None:
    before = at_desk.seen()
    compact(at_desk)
    later = [append(at_desk, ONE) for _ in range(2)]
    archive(at_desk)
    assert active(at_desk) == later
    assert at_desk.seen() == {**before, ONE: before[ONE] + later}
    assert overlapping in before[ZERO]


def test_an_overlapping_log_in_a_file_group_that_no_compaction_took_holds_nothing(at_desk: CompactionDesk) -> None:
    """The compaction that began meanwhile made base files of other file groups."""
    tx = at_desk.begin()
    draft = at_desk.log(tx, ONE)
    append(at_desk, ZERO)
    at_desk.compaction().schedule()
    assert tx.publish(draft).is_committed
    assert at_desk.run(at_desk.compaction()) is not None
    later = [append(at_desk, ZERO) for _ in range(5)][-2:]
    archive(at_desk)
    assert active(at_desk) == later
    assert at_desk.seen()[ONE] == [tx.instant]


def test_an_overlapping_log_whose_file_is_gone_holds_nothing(at_desk: CompactionDesk, overlapping: str) -> None:
    at_desk.desk.storage.delete(f"p/{LogFileName(ZERO, overlapping)}")
    later = active(at_desk)[-2:]
    archive(at_desk)
    assert active(at_desk) == later


def test_one_listing_tells_of_all_overlapping_logs_and_none_is_made_without_them(
    at_desk: CompactionDesk, overlapping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    monkeypatch.setattr(MemoryStorage, "list", note_listing(MemoryStorage.list, listed))
    archive(at_desk)
    assert listed.count("p") == 1
    compact(at_desk)
    for _ in range(2):
        archive(at_desk)
        append(at_desk, ONE)
        append(at_desk, ONE)
        append(at_desk, ONE)
    assert at_desk.desk.timeline().get(overlapping) is None
    listed.clear()
    assert archive(at_desk) > 0
    assert "p" not in listed


def note_listing(listing: Any, listed: list[str]) -> Any:
    def listing_too(storage: MemoryStorage, folder: str) -> Any:
        listed.append(folder)
        return listing(storage, folder)

    return listing_too


@pytest.mark.parametrize("is_compacted", [True, False])
def test_what_makes_the_next_compaction_due_stays(at_desk: CompactionDesk, *, is_compacted: bool) -> None:
    for _ in range(4):
        append(at_desk, ZERO)
    last = [compact(at_desk)] if is_compacted else []
    last += [append(at_desk, ZERO) for _ in range(4)]
    options = {"hoodie__compact__inline__max__delta__commits": 5 if is_compacted else 3}
    before = at_desk.compaction().count_commits(at_desk.desk.timeline())
    archive(at_desk, **options)
    assert active(at_desk) == (last if is_compacted else last[-3:])
    after = at_desk.compaction().count_commits(at_desk.desk.timeline())
    assert (before, after) == ((4, 4) if is_compacted else (8, 3))


def test_nothing_goes_that_is_later_than_a_clean_which_stays(at_desk: CompactionDesk) -> None:
    """A JVM asks the history for nothing that is later than the first instant on the timeline."""
    append(at_desk, ZERO)
    compact(at_desk)
    append(at_desk, ZERO)
    clean = at_desk.desk.cleaner(commits__retained=1).run().instants[0]
    at_desk.desk.storage.replace(f".hoodie/.heartbeat/{clean}", b"")
    later = [append(at_desk, ZERO) for _ in range(6)]
    archive(at_desk)
    assert active(at_desk) == [clean, *later]
    at_desk.desk.storage.delete(f".hoodie/.heartbeat/{clean}")
    archive(at_desk)
    assert active(at_desk) == later[-2:]


def test_nothing_goes_beside_a_plan_that_waits(at_desk: CompactionDesk) -> None:
    first = [append(at_desk, ZERO) for _ in range(2)]
    plan = at_desk.compaction().schedule()
    later = [append(at_desk, ZERO) for _ in range(6)]
    assert archive(at_desk) == 1
    assert active(at_desk) == [first[1], plan, *later]


def test_a_replacing_write_stays_until_the_logs_that_it_replaced_are_gone(at_desk: CompactionDesk) -> None:
    append(at_desk, ZERO, ONE)
    tx = at_desk.desk.open().begin("replacecommit", "DELETE_PARTITION")
    ended = CommitMetadata.of([], "DELETE_PARTITION", schema=None, replaced_file_ids={"p": (ZERO,)})
    assert tx.publish(ended).is_committed
    for _ in range(6):
        append(at_desk, ONE)
    archive(at_desk)
    assert tx.instant in active(at_desk)
    assert at_desk.desk.cleaner(commits__retained=1).run().deleted == 1
    archive(at_desk)
    assert tx.instant not in active(at_desk)
    assert set(at_desk.seen()) == {ONE}


def test_logs_of_a_write_that_was_rolled_back_go_before_they_look_completed(at_desk: CompactionDesk) -> None:
    append(at_desk, ZERO)
    tx = at_desk.begin()
    tx.abort("enough")
    late = f"p/{LogFileName(ZERO, tx.instant)}"
    at_desk.desk.storage.replace(late, b'["never"]')
    for _ in range(5):
        append(at_desk, ZERO)
    archive(at_desk)
    assert tx.instant < str(at_desk.desk.timeline().first_active)
    assert at_desk.desk.storage.read(late) is None


def test_what_the_oldest_snapshot_that_is_kept_does_not_show_stays(at_desk: CompactionDesk) -> None:
    first = append(at_desk, ZERO)
    slow = at_desk.begin()
    draft = at_desk.log(slow, ZERO)
    later = [append(at_desk, ONE) for _ in range(5)]
    assert slow.publish(draft).is_committed
    assert archive(at_desk) == 1
    assert active(at_desk) == [slow.instant, *later]
    assert is_archived(at_desk.desk.storage, LAYOUT_2, requested=first)


def test_streams_that_go_on_keep_their_table_small(at_desk: CompactionDesk) -> None:
    """Twelve rounds of three writes and a compaction; all rows are there, few files and instants are."""
    services = TableServices(at_desk.desk.open(**NON_BLOCKING), KEEP)
    services._archiver._settings = replace(services._archiver._settings, min_age_ms=0)
    written = []
    for _ in range(12):
        written += [append(at_desk, ZERO) for _ in range(3)]
        compact(at_desk)
        assert services.follow_write() == ()
    assert at_desk.seen() == {ZERO: written}
    assert len(at_desk.desk.timeline().instants) <= 10
    assert len(at_desk.desk.names("p")) <= 10


def test_a_log_that_is_completed_and_archived_while_a_plan_is_made_is_never_hidden_by_it(
    at_desk: CompactionDesk, at: Any
) -> None:
    """The plan knows it as pending, and no timeline shows it any more when the plan is decided."""
    append(at_desk, ZERO)
    late = at_desk.begin()
    draft = at_desk.log(late, ZERO)

    def end_it() -> None:
        assert late.publish(draft).is_committed
        for _ in range(6):
            append(at_desk, ONE)
        assert archive(at_desk) > 1
        assert late.instant not in active(at_desk)

    compaction = at_desk.compaction(trace=at(StopPoint.SCHEDULE_PLANNED, end_it))
    before = at_desk.run(compaction, compaction.schedule())
    assert before is None or before.is_committed
    assert late.instant in at_desk.seen()[ZERO]
    compact(at_desk)
    assert late.instant in at_desk.seen()[ZERO]
