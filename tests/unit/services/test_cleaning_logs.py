"""Which logs and base files of a merge-on-read table a clean removes, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest
from compaction_harness import NON_BLOCKING, CompactionHarness
from service_harness import ServiceHarness
from transaction_harness import write_file

from hudi_locks.errors import TableError
from hudi_locks.format import BaseFileName, CleanPlan, CommitMetadata, Instant, IOType, LogFileName, State, WriteStat
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import Cleaner, TableServices
from hudi_locks.table import read_last_clean, refuse_cleaned, slices_changed
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import StopPoint

ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))


@pytest.fixture
def service(harness: ServiceHarness) -> CompactionHarness:
    return CompactionHarness.at(harness)


def schedule(service: CompactionHarness) -> str:
    instant = service.compaction().schedule()
    assert instant is not None
    return instant


def run(service: CompactionHarness) -> None:
    done = service.run(service.compaction())
    assert done is not None
    assert done.is_committed
    service.harness.clock.advance(1)


def compact(service: CompactionHarness) -> str:
    instant = schedule(service)
    run(service)
    return instant


def cleaner(service: CompactionHarness, **options: Any) -> Cleaner:
    made: Cleaner = service.harness.cleaner(**{"commits__retained": 1, **options})
    return made


def left(service: CompactionHarness, group: str = ZERO) -> list[str]:
    """Requested times of the files of a group, those of base files marked."""
    found = []
    for name in service.harness.names("p"):
        if (base := BaseFileName.parse(name)) and base.file_id == group:
            found.append(f"base {base.instant}")
        if (log := LogFileName.parse(name)) and log.file_id == group:
            found.append(log.instant)
    return sorted(found)


def test_logs_go_once_what_they_were_merged_into_is_all_that_is_promised(service: CompactionHarness) -> None:
    written = [service.append(ZERO, ONE) for _ in range(3)]
    base = compact(service)
    assert cleaner(service).run().deleted == 0  # the snapshot as of the moment when the compaction began
    last = service.append(ZERO)
    result = cleaner(service).run()
    assert (result.deleted, result.earliest_retained) == (6, last)
    assert (left(service), left(service, ONE)) == ([last, f"base {base}"], [f"base {base}"])
    assert service.seen() == {ZERO: [*written, last], ONE: written}


def test_the_plan_and_what_was_done_name_logs_as_the_jvm_does(service: CompactionHarness) -> None:
    written = service.append(ZERO)
    compact(service)
    service.append(ZERO)
    instant = cleaner(service).run().instants[0]
    name = str(LogFileName(ZERO, written))
    path = LAYOUT_2.path(Instant(instant, "clean", State.REQUESTED))
    plan = CleanPlan.decode(service.harness.storage.read(path) or b"", path)
    assert plan.files == {"p": (service.harness.storage.address(f"p/{name}"),)}
    done = read_last_clean(service.harness.storage, service.harness.timeline())
    assert done is not None
    assert done.partitions["p"].deleted == (name,)


def test_a_log_that_was_completed_after_the_plan_lies_on_top_and_stays(service: CompactionHarness) -> None:
    tx = service.begin()
    draft = service.log(tx, ZERO)
    below = service.append(ZERO)
    plan = schedule(service)
    assert tx.publish(draft).is_committed
    run(service)
    service.append(ONE)
    assert tx.instant < below < plan
    cleaner(service).run()
    assert left(service) == [tx.instant, f"base {plan}"]
    assert service.seen()[ZERO] == [below, tx.instant]


def test_nothing_is_removed_below_a_base_file_that_readers_do_not_see_yet(service: CompactionHarness) -> None:
    written = [service.append(ZERO) for _ in range(2)]
    schedule(service)
    taken = service.compaction().take()
    assert taken is not None
    tx, draft = taken[0], service.merge(*taken)
    for options in ({}, {"policy": "KEEP_LATEST_FILE_VERSIONS", "fileversions__retained": 1}):
        service.append(ONE)
        assert cleaner(service, **options).run().deleted == 0
    assert tx.publish(draft).is_committed
    assert service.seen()[ZERO] == written


def test_what_a_plan_that_waits_will_read_stays(service: CompactionHarness) -> None:
    written = [service.append(ZERO)]
    first = compact(service)
    written.append(service.append(ZERO))
    schedule(service)
    for _ in range(3):
        service.append(ONE)
    cleaner(service).run()
    assert left(service) == [written[1], f"base {first}"]
    run(service)
    assert service.seen()[ZERO] == written


def test_logs_of_writes_under_way_and_of_dead_ones_are_left_to_others(service: CompactionHarness) -> None:
    service.append(ZERO)
    running = service.begin()
    named = str(LogFileName(ZERO, running.instant))
    service.harness.storage.replace(f"p/{named}", b"[]")
    running.markers.create("p", named, io_type=IOType.CREATE)
    stray = str(LogFileName(ZERO, "20231114221319000"))
    service.harness.storage.replace(f"p/{stray}", b"[]")
    compact(service)
    service.append(ZERO)
    cleaner(service).run()
    assert running.instant in left(service)
    running.abort("enough")
    service.append(ZERO)
    cleaner(service).run()
    assert "20231114221319000" in left(service)  # of no write that timeline or history tell of: the janitor's


def test_the_last_slices_stay_where_versions_are_counted_and_logs_alone_are_one(service: CompactionHarness) -> None:
    first = service.append(ZERO)
    one = compact(service)
    second = service.append(ZERO)
    counting = {"policy": "KEEP_LATEST_FILE_VERSIONS", "fileversions__retained": 2}
    assert cleaner(service, **counting).run().deleted == 0
    two = compact(service)
    assert cleaner(service, **counting).run().deleted == 1
    assert left(service) == [second, f"base {one}", f"base {two}"]
    assert first not in left(service)


def test_what_the_last_hours_showed_stays(service: CompactionHarness) -> None:
    first = service.append(ZERO)
    service.harness.clock.advance(3600)
    base = compact(service)
    service.append(ONE)
    assert cleaner(service, policy="KEEP_LATEST_BY_HOURS", hours__retained=2).run().deleted == 0
    service.harness.clock.advance(7300)
    last = service.append(ZERO)
    assert cleaner(service, policy="KEEP_LATEST_BY_HOURS", hours__retained=2).run().deleted == 1
    assert left(service) == [last, f"base {base}"]
    assert service.seen()[ZERO] == [first, last]


def test_an_archived_log_is_judged_by_its_completion_too(service: CompactionHarness) -> None:
    tx = service.begin()
    draft = service.log(tx, ZERO)
    below = service.append(ZERO)
    plan = schedule(service)
    assert tx.publish(draft).is_committed
    run(service)
    last = [service.append(ONE) for _ in range(2)]
    for archived in (tx.instant, below, plan):
        service.harness.archive(archived)
    assert cleaner(service).run().deleted == 1
    assert left(service) == [tx.instant, f"base {plan}"]
    assert service.seen() == {ZERO: [below, tx.instant], ONE: last}


def test_a_log_of_which_neither_timeline_nor_history_tell_stays(service: CompactionHarness) -> None:
    written = service.append(ZERO)
    compact(service)
    service.append(ONE)
    service.harness.archive(written)
    for name in service.harness.names(LAYOUT_2.archive):
        service.harness.storage.delete(f"{LAYOUT_2.archive}/{name}")
    assert service.harness.timeline().is_completed(written)
    assert cleaner(service).run().deleted == 0


def test_only_partitions_that_compaction_changed_are_looked_into(service: CompactionHarness) -> None:
    service.append(ZERO)
    compact(service)
    service.append(ZERO)
    assert cleaner(service).run(everywhere=False).deleted == 1
    service.append(ZERO)
    assert folders_of_a_clean(service) & {"", "p"} == set()
    compact(service)
    service.append(ZERO)
    assert "p" in folders_of_a_clean(service)


def folders_of_a_clean(service: CompactionHarness) -> set[str]:
    """Which folders it lists."""
    storage, asked = service.harness.storage, set[str]()
    listing = storage.list

    def listen(folder: str) -> Any:
        asked.add(folder)
        return listing(folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "list", listen)
        cleaner(service).run(everywhere=False)
    return asked


def test_a_process_that_cleans_after_each_write_reads_each_commit_once(
    service: CompactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while nothing is compacted, so that no clean is on the timeline."""
    patient = cleaner(service)
    for _ in range(4):
        service.append(ZERO)
        patient.run(everywhere=False)
    asked: list[str] = []
    read = service.harness.storage.read

    def listen(path: str) -> bytes | None:
        asked.append(path)
        found: bytes | None = read(path)
        return found

    monkeypatch.setattr(service.harness.storage, "read", listen)
    for _ in range(2):
        service.append(ZERO)
        asked.clear()
        patient.run(everywhere=False)
        assert len([path for path in asked if path.endswith(".deltacommit")]) == 1


def test_logs_of_a_replaced_file_group_go_with_it(service: CompactionHarness) -> None:
    for _ in range(2):
        service.append(ZERO, ONE)
    tx = service.harness.open().begin("replacecommit", "DELETE_PARTITION")
    ended = CommitMetadata.of([], "DELETE_PARTITION", schema=None, replaced_file_ids={"p": (ZERO,)})
    assert tx.publish(ended).is_committed
    service.harness.clock.advance(1)
    service.append(ONE)
    assert cleaner(service).run().deleted == 2
    assert left(service) == []
    assert len(left(service, ONE)) == 3


def test_a_base_file_that_a_delta_commit_wrote_anew_is_an_old_version(service: CompactionHarness) -> None:
    """JVM writers put new rows into small base files in a delta commit."""
    first = service.append(ZERO)
    base = compact(service)
    tx = service.harness.open().begin("deltacommit", "UPSERT")
    name = str(BaseFileName(ZERO, tx.instant))
    ticket = write_file(tx.files, "p", name, f'["{first}", "{tx.instant}"]'.encode(), io_type=IOType.MERGE)
    stats = [WriteStat("p", ZERO, f"p/{name}", prev_commit=base, ticket=ticket)]
    assert tx.publish(CommitMetadata.of(stats, "UPSERT", schema="{}")).is_committed
    service.harness.clock.advance(1)
    service.append(ONE)
    assert cleaner(service).run(everywhere=False).deleted == 2
    assert left(service) == [f"base {tx.instant}"]
    assert service.seen()[ZERO] == [first, tx.instant]


def test_a_clean_beside_a_compaction_takes_nothing_that_came_meanwhile(service: CompactionHarness) -> None:
    written = [service.append(ZERO)]
    compact(service)
    written.append(service.append(ZERO))

    def compact_meanwhile(point: Any) -> None:
        if point is StopPoint.SERVICE_PLANNED:
            written.append(service.append(ZERO))
            compact(service)

    assert cleaner(service, trace=compact_meanwhile).run().deleted == 1
    assert service.seen()[ZERO] == written
    assert ClaimKind.VOID not in [claim.kind for claim in service.harness.claims()]


def test_changes_up_to_a_time_whose_logs_are_gone_are_refused_and_later_ones_are_whole(
    service: CompactionHarness,
) -> None:
    """Also where the last log of the span is there still, since it lies on top of the base file."""
    tx = service.begin()
    draft = service.log(tx, ZERO)
    first = service.append(ZERO)
    plan = schedule(service)
    over = tx.publish(draft).completion_time
    run(service)
    last = service.append(ZERO)
    storage, timeline = service.harness.storage, service.harness.timeline()
    assert slices_changed(storage, timeline, begin="0", end=over).instants == (first, tx.instant)
    assert cleaner(service).run().deleted == 1
    assert left(service) == [tx.instant, last, f"base {plan}"]
    with pytest.raises(TableError, match=f"{first}.* was cleaned"):
        slices_changed(storage, timeline, begin="0", end=over)
    changes = slices_changed(storage, timeline, begin="0", end=str(timeline.newest_time()))
    assert changes.instants == (first, tx.instant, plan, last)
    assert [[log.instant for log in piece.logs] for piece in changes.slices] == [[tx.instant, last]]


def test_a_time_of_which_a_clean_kept_no_whole_snapshot_is_refused(service: CompactionHarness) -> None:
    first = service.append(ZERO)
    base = compact(service)
    last = service.append(ZERO)
    storage = service.harness.storage
    refuse_cleaned(storage, service.harness.timeline(), completed=first)
    clean = cleaner(service).run().instants[0]
    timeline = service.harness.timeline()
    for time in ({"completed": base}, {"requested": first}, {"completed": "0"}):
        with pytest.raises(TableError, match=f"clean {clean} kept what is shown since {last}"):
            refuse_cleaned(storage, timeline, **time)
    refuse_cleaned(storage, timeline)
    refuse_cleaned(storage, timeline, completed=last)
    refuse_cleaned(storage, timeline, requested=last)


def test_a_savepoint_may_be_read_and_so_may_what_is_the_newest_after_a_restore(service: CompactionHarness) -> None:
    kept = service.append(ZERO)
    services = TableServices(service.harness.open(**NON_BLOCKING), {"hoodie.clean.commits.retained": 1})
    savepoint = services.savepoints.create()
    service.harness.clock.advance(1)
    over = service.append(ZERO)
    compact(service)
    service.append(ZERO)
    assert services.clean().deleted == 1
    assert over not in left(service)
    storage = service.harness.storage
    refuse_cleaned(storage, service.harness.timeline(), requested=kept)
    with pytest.raises(TableError):
        refuse_cleaned(storage, service.harness.timeline(), completed=savepoint.completion_time)
    services.restore(kept)
    assert services.savepoints.delete(kept)
    refuse_cleaned(storage, service.harness.timeline(), requested=kept)
    refuse_cleaned(storage, service.harness.timeline(), completed=savepoint.completion_time)
