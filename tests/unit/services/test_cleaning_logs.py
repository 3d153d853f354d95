"""Which logs and base files of a merge-on-read table a clean removes, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest
from compaction_desk import NON_BLOCKING, CompactionDesk
from service_desk import ServiceDesk

from hudi_locks.errors import TableError
from hudi_locks.format import BaseFileName, CleanPlan, CommitMetadata, Instant, IOType, LogFileName, State, WriteStat
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import Cleaner, TableServices
from hudi_locks.table import read_last_clean, refuse_cleaned, slices_changed
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import StopPoint

ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))


@pytest.fixture
def at_desk(desk: ServiceDesk) -> CompactionDesk:
    return CompactionDesk.at(desk)


def schedule(at_desk: CompactionDesk) -> str:
    instant = at_desk.compaction().schedule()
    assert instant is not None
    return instant


def run(at_desk: CompactionDesk) -> None:
    done = at_desk.run(at_desk.compaction())
    assert done is not None
    assert done.is_committed
    at_desk.desk.clock.advance(1)


def compact(at_desk: CompactionDesk) -> str:
    instant = schedule(at_desk)
    run(at_desk)
    return instant


def cleaner(at_desk: CompactionDesk, **options: Any) -> Cleaner:
    made: Cleaner = at_desk.desk.cleaner(**{"commits__retained": 1, **options})
    return made


def left(at_desk: CompactionDesk, group: str = ZERO) -> list[str]:
    """Requested times of the files of a group, those of base files marked."""
    found = []
    for name in at_desk.desk.names("p"):
        if (base := BaseFileName.parse(name)) and base.file_id == group:
            found.append(f"base {base.instant}")
        if (log := LogFileName.parse(name)) and log.file_id == group:
            found.append(log.instant)
    return sorted(found)


def test_logs_go_once_what_they_were_merged_into_is_all_that_is_promised(at_desk: CompactionDesk) -> None:
    written = [at_desk.append(ZERO, ONE) for _ in range(3)]
    base = compact(at_desk)
    assert cleaner(at_desk).run().deleted == 0  # the snapshot as of the moment when the compaction began
    last = at_desk.append(ZERO)
    result = cleaner(at_desk).run()
    assert (result.deleted, result.earliest_retained) == (6, last)
    assert (left(at_desk), left(at_desk, ONE)) == ([last, f"base {base}"], [f"base {base}"])
    assert at_desk.seen() == {ZERO: [*written, last], ONE: written}


def test_the_plan_and_what_was_done_name_logs_as_the_jvm_does(at_desk: CompactionDesk) -> None:
    written = at_desk.append(ZERO)
    compact(at_desk)
    at_desk.append(ZERO)
    instant = cleaner(at_desk).run().instants[0]
    name = str(LogFileName(ZERO, written))
    path = LAYOUT_2.path(Instant(instant, "clean", State.REQUESTED))
    plan = CleanPlan.decode(at_desk.desk.storage.read(path) or b"", path)
    assert plan.files == {"p": (at_desk.desk.storage.address(f"p/{name}"),)}
    done = read_last_clean(at_desk.desk.storage, at_desk.desk.timeline())
    assert done is not None
    assert done.partitions["p"].deleted == (name,)


def test_a_log_that_was_completed_after_the_plan_lies_on_top_and_stays(at_desk: CompactionDesk) -> None:
    tx = at_desk.begin()
    draft = at_desk.log(tx, ZERO)
    below = at_desk.append(ZERO)
    plan = schedule(at_desk)
    assert tx.publish(draft).is_committed
    run(at_desk)
    at_desk.append(ONE)
    assert tx.instant < below < plan
    cleaner(at_desk).run()
    assert left(at_desk) == [tx.instant, f"base {plan}"]
    assert at_desk.seen()[ZERO] == [below, tx.instant]


def test_nothing_is_removed_below_a_base_file_that_readers_do_not_see_yet(at_desk: CompactionDesk) -> None:
    written = [at_desk.append(ZERO) for _ in range(2)]
    schedule(at_desk)
    taken = at_desk.compaction().take()
    assert taken is not None
    tx, draft = taken[0], at_desk.merge(*taken)
    for options in ({}, {"policy": "KEEP_LATEST_FILE_VERSIONS", "fileversions__retained": 1}):
        at_desk.append(ONE)
        assert cleaner(at_desk, **options).run().deleted == 0
    assert tx.publish(draft).is_committed
    assert at_desk.seen()[ZERO] == written


def test_what_a_plan_that_waits_will_read_stays(at_desk: CompactionDesk) -> None:
    written = [at_desk.append(ZERO)]
    first = compact(at_desk)
    written.append(at_desk.append(ZERO))
    schedule(at_desk)
    for _ in range(3):
        at_desk.append(ONE)
    cleaner(at_desk).run()
    assert left(at_desk) == [written[1], f"base {first}"]
    run(at_desk)
    assert at_desk.seen()[ZERO] == written


def test_logs_of_writes_under_way_and_of_dead_ones_are_left_to_others(at_desk: CompactionDesk) -> None:
    at_desk.append(ZERO)
    running = at_desk.begin()
    at_desk.log(running, ZERO)
    stray = str(LogFileName(ZERO, "20231114221319000"))
    at_desk.desk.storage.replace(f"p/{stray}", b"[]")
    compact(at_desk)
    at_desk.append(ZERO)
    cleaner(at_desk).run()
    assert running.instant in left(at_desk)
    running.abort("enough")
    at_desk.append(ZERO)
    cleaner(at_desk).run()
    assert "20231114221319000" in left(at_desk)  # of no write that timeline or history tell of: the janitor's


def test_the_last_slices_stay_where_versions_are_counted_and_logs_alone_are_one(at_desk: CompactionDesk) -> None:
    first = at_desk.append(ZERO)
    one = compact(at_desk)
    second = at_desk.append(ZERO)
    counting = {"policy": "KEEP_LATEST_FILE_VERSIONS", "fileversions__retained": 2}
    assert cleaner(at_desk, **counting).run().deleted == 0
    two = compact(at_desk)
    assert cleaner(at_desk, **counting).run().deleted == 1
    assert left(at_desk) == [second, f"base {one}", f"base {two}"]
    assert first not in left(at_desk)


def test_what_the_last_hours_showed_stays(at_desk: CompactionDesk) -> None:
    first = at_desk.append(ZERO)
    at_desk.desk.clock.advance(3600)
    base = compact(at_desk)
    at_desk.append(ONE)
    assert cleaner(at_desk, policy="KEEP_LATEST_BY_HOURS", hours__retained=2).run().deleted == 0
    at_desk.desk.clock.advance(7300)
    last = at_desk.append(ZERO)
    assert cleaner(at_desk, policy="KEEP_LATEST_BY_HOURS", hours__retained=2).run().deleted == 1
    assert left(at_desk) == [last, f"base {base}"]
    assert at_desk.seen()[ZERO] == [first, last]


def test_an_archived_log_is_judged_by_its_completion_too(at_desk: CompactionDesk) -> None:
    tx = at_desk.begin()
    draft = at_desk.log(tx, ZERO)
    below = at_desk.append(ZERO)
    plan = schedule(at_desk)
    assert tx.publish(draft).is_committed
    run(at_desk)
    last = [at_desk.append(ONE) for _ in range(2)]
    for archived in (tx.instant, below, plan):
        at_desk.desk.archive(archived)
    assert cleaner(at_desk).run().deleted == 1
    assert left(at_desk) == [tx.instant, f"base {plan}"]
    assert at_desk.seen() == {ZERO: [below, tx.instant], ONE: last}


def test_a_log_of_which_neither_timeline_nor_history_tell_stays(at_desk: CompactionDesk) -> None:
    written = at_desk.append(ZERO)
    compact(at_desk)
    at_desk.append(ONE)
    at_desk.desk.archive(written)
    for name in at_desk.desk.names(LAYOUT_2.archive):
        at_desk.desk.storage.delete(f"{LAYOUT_2.archive}/{name}")
    assert at_desk.desk.timeline().is_completed(written)
    assert cleaner(at_desk).run().deleted == 0


def test_only_partitions_that_compaction_changed_are_looked_into(at_desk: CompactionDesk) -> None:
    at_desk.append(ZERO)
    compact(at_desk)
    at_desk.append(ZERO)
    assert cleaner(at_desk).run(everywhere=False).deleted == 1
    at_desk.append(ZERO)
    assert folders_of_a_clean(at_desk) & {"", "p"} == set()
    compact(at_desk)
    at_desk.append(ZERO)
    assert "p" in folders_of_a_clean(at_desk)


def folders_of_a_clean(at_desk: CompactionDesk) -> set[str]:
    """Which folders it lists."""
    storage, asked = at_desk.desk.storage, set[str]()
    listing = storage.list

    def listen(folder: str) -> Any:
        asked.add(folder)
        return listing(folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "list", listen)
        cleaner(at_desk).run(everywhere=False)
    return asked


def test_a_process_that_cleans_after_each_write_reads_each_commit_once(
    at_desk: CompactionDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while nothing is compacted, so that no clean is on the timeline."""
    patient = cleaner(at_desk)
    for _ in range(4):
        at_desk.append(ZERO)
        patient.run(everywhere=False)
    asked: list[str] = []
    read = at_desk.desk.storage.read

    def listen(path: str) -> bytes | None:
        asked.append(path)
        found: bytes | None = read(path)
        return found

    monkeypatch.setattr(at_desk.desk.storage, "read", listen)
    for _ in range(2):
        at_desk.append(ZERO)
        asked.clear()
        patient.run(everywhere=False)
        assert len([path for path in asked if path.endswith(".deltacommit")]) == 1


def test_logs_of_a_replaced_file_group_go_with_it(at_desk: CompactionDesk) -> None:
    for _ in range(2):
        at_desk.append(ZERO, ONE)
    tx = at_desk.desk.open().begin("replacecommit", "DELETE_PARTITION")
    ended = CommitMetadata.of([], "DELETE_PARTITION", schema=None, replaced_file_ids={"p": (ZERO,)})
    assert tx.publish(ended).is_committed
    at_desk.desk.clock.advance(1)
    at_desk.append(ONE)
    assert cleaner(at_desk).run().deleted == 2
    assert left(at_desk) == []
    assert len(left(at_desk, ONE)) == 3


def test_a_base_file_that_a_delta_commit_wrote_anew_is_an_old_version(at_desk: CompactionDesk) -> None:
    """JVM writers put new rows into small base files in a delta commit."""
    first = at_desk.append(ZERO)
    base = compact(at_desk)
    tx = at_desk.desk.open().begin("deltacommit", "UPSERT")
    name = str(BaseFileName(ZERO, tx.instant))
    staged = tx.files.start("p", name, io_type=IOType.MERGE)
    at_desk.desk.storage.replace(staged.path, f'["{first}", "{tx.instant}"]'.encode())
    assert tx.files.finish(staged)
    stats = [WriteStat("p", ZERO, f"p/{name}", prev_commit=base)]
    assert tx.publish(CommitMetadata.of(stats, "UPSERT", schema="{}")).is_committed
    at_desk.desk.clock.advance(1)
    at_desk.append(ONE)
    assert cleaner(at_desk).run(everywhere=False).deleted == 2
    assert left(at_desk) == [f"base {tx.instant}"]
    assert at_desk.seen()[ZERO] == [first, tx.instant]


def test_a_clean_beside_a_compaction_takes_nothing_that_came_meanwhile(at_desk: CompactionDesk) -> None:
    written = [at_desk.append(ZERO)]
    compact(at_desk)
    written.append(at_desk.append(ZERO))

    def compact_meanwhile(point: Any) -> None:
        if point is StopPoint.SERVICE_PLANNED:
            written.append(at_desk.append(ZERO))
            compact(at_desk)

    assert cleaner(at_desk, trace=compact_meanwhile).run().deleted == 1
    assert at_desk.seen()[ZERO] == written
    assert ClaimKind.VOID not in [claim.kind for claim in at_desk.desk.claims()]


def test_changes_up_to_a_time_whose_logs_are_gone_are_refused_and_later_ones_are_whole(at_desk: CompactionDesk) -> None:
    """Also where the last log of the span is there still, since it lies on top of the base file."""
    tx = at_desk.begin()
    draft = at_desk.log(tx, ZERO)
    first = at_desk.append(ZERO)
    plan = schedule(at_desk)
    over = tx.publish(draft).completion_time
    run(at_desk)
    last = at_desk.append(ZERO)
    storage, timeline = at_desk.desk.storage, at_desk.desk.timeline()
    assert slices_changed(storage, timeline, begin="0", end=over).instants == (first, tx.instant)
    assert cleaner(at_desk).run().deleted == 1
    assert left(at_desk) == [tx.instant, last, f"base {plan}"]
    with pytest.raises(TableError, match=f"{first}.* was cleaned"):
        slices_changed(storage, timeline, begin="0", end=over)
    changes = slices_changed(storage, timeline, begin="0", end=str(timeline.newest_time()))
    assert changes.instants == (first, tx.instant, plan, last)
    assert [[log.instant for log in piece.logs] for piece in changes.slices] == [[tx.instant, last]]


def test_a_time_of_which_a_clean_kept_no_whole_snapshot_is_refused(at_desk: CompactionDesk) -> None:
    first = at_desk.append(ZERO)
    base = compact(at_desk)
    last = at_desk.append(ZERO)
    storage = at_desk.desk.storage
    refuse_cleaned(storage, at_desk.desk.timeline(), completed=first)
    clean = cleaner(at_desk).run().instants[0]
    timeline = at_desk.desk.timeline()
    for time in ({"completed": base}, {"requested": first}, {"completed": "0"}):
        with pytest.raises(TableError, match=f"clean {clean} kept what is shown since {last}"):
            refuse_cleaned(storage, timeline, **time)
    refuse_cleaned(storage, timeline)
    refuse_cleaned(storage, timeline, completed=last)
    refuse_cleaned(storage, timeline, requested=last)


def test_a_savepoint_may_be_read_and_so_may_what_is_the_newest_after_a_restore(at_desk: CompactionDesk) -> None:
    kept = at_desk.append(ZERO)
    services = TableServices(at_desk.desk.open(**NON_BLOCKING), {"hoodie.clean.commits.retained": 1})
    savepoint = services.savepoints.create()
    at_desk.desk.clock.advance(1)
    over = at_desk.append(ZERO)
    compact(at_desk)
    at_desk.append(ZERO)
    assert services.clean().deleted == 1
    assert over not in left(at_desk)
    storage = at_desk.desk.storage
    refuse_cleaned(storage, at_desk.desk.timeline(), requested=kept)
    with pytest.raises(TableError):
        refuse_cleaned(storage, at_desk.desk.timeline(), completed=savepoint.completion_time)
    services.restore(kept)
    assert services.savepoints.delete(kept)
    refuse_cleaned(storage, at_desk.desk.timeline(), requested=kept)
    refuse_cleaned(storage, at_desk.desk.timeline(), completed=savepoint.completion_time)
