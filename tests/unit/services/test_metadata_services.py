"""Compaction, clean and archival of the metadata table."""

from __future__ import annotations

import pytest
from metadata_harness import MetadataHarness
from metadata_services import HOUR_S, logs, plan_wrongly, put, records, services
from transaction_harness import OPEN_LOCK, Harness, Killed, stop_at

from hudi_locks.errors import DamagedTable
from hudi_locks.format import METADATA_FOLDER, CleanPlan, Instant, State
from hudi_locks.services import TableServices
from hudi_locks.transaction import StopPoint

POINTS = [
    StopPoint.SERVICE_PLANNED,
    StopPoint.SERVICE_CLAIMED,
    StopPoint.SERVICE_REQUESTED,
    StopPoint.SERVICE_INFLIGHT,
    StopPoint.SERVICE_DONE,
    StopPoint.SERVICE_COMPLETED,
]
CLAIM = (StopPoint.SERVICE_CLAIMED, StopPoint.SERVICE_REQUESTED)
"""Of a plan; in version 6 that of a compaction is not claimed."""


def of_each_version(points: list[StopPoint]) -> list[tuple[int, StopPoint]]:
    return [(version, point) for version in (6, 8, 9) for point in points if version > 6 or point not in CLAIM]


@pytest.fixture(params=[6, 8, 9])
def kept(request: pytest.FixtureRequest, harness: Harness) -> MetadataHarness:
    return MetadataHarness.of(harness, request.param)


def come_up(kept: MetadataHarness, requested: str) -> None:
    """A completed delta commit of that time appears, of somebody else."""
    content = next(kept.storage.read(path) for i, path in kept.own_timeline().paths.items() if i.is_completed)
    begun = Instant(requested, "deltacommit", State.REQUESTED)
    states = (begun, begun.as_inflight(), begun.as_inflight().as_completed(f"{requested[:-1]}9"))
    for state in states:
        kept.storage.replace(kept.own_layout.path(state), (content or b"") if state.is_completed else b"")


def test_after_so_many_commits_the_logs_become_base_files_that_say_the_same(kept: MetadataHarness) -> None:
    put(kept, 4)
    kept.cleaner(commits__retained=1).run()
    before = records(kept)
    assert logs(kept) > 3
    done = services(kept).run()
    assert len(done.compactions) == 1
    assert logs(kept) == 0
    assert records(kept) == before
    kept.check()
    assert services(kept).run().compactions == ()
    kept.put("p/g-0")
    assert logs(kept) > 0, "later ones lie on top"
    kept.check()


def test_it_is_due_after_as_many_commits_as_the_option_says(kept: MetadataHarness) -> None:
    known = len(kept.own_timeline().completed(("deltacommit",)))
    assert not services(kept, commits=known + 3).is_due()
    put(kept, 3)
    assert services(kept, commits=known + 3).is_due()
    assert services(kept, commits=known + 4).run().compactions == ()


def test_the_option_is_asked_after_each_write(kept: MetadataHarness) -> None:
    options = {"hoodie.metadata.compact.max.delta.commits": "2", "hoodie.clean.automatic": "false"}
    table = TableServices(kept.open(), options)
    put(kept, 2)
    assert table.follow_write() == ()
    assert logs(kept) == 0
    assert table.serve_metadata_table().compactions == ()
    kept.put("p/g-0")
    assert table.follow_write() == ()
    assert logs(kept) > 0


def test_one_that_a_jvm_writer_made_since_the_table_was_loaded_is_served(kept: MetadataHarness) -> None:
    kept.foreign = True
    transactions = Harness.open(kept, locks=OPEN_LOCK)
    table = TableServices(transactions, {"hoodie.metadata.compact.max.delta.commits": "1"})
    assert not transactions.coordinator.keeps_metadata
    assert table.follow_write() == ()
    assert logs(kept) > 0, "nobody has looked yet"
    tx = transactions.begin("commit", "UPSERT")
    assert tx.publish(kept.rewrite(tx, "p/g-0")).is_committed
    assert table.follow_write() == ()
    assert logs(kept) == 0


@pytest.mark.parametrize(("kept", "point"), of_each_version(POINTS), indirect=["kept"])
def test_wherever_it_dies_no_record_is_lost_and_a_later_one_ends_it(kept: MetadataHarness, point: StopPoint) -> None:
    put(kept, 4)
    before = records(kept)
    with pytest.raises(Killed):
        services(kept, trace=stop_at(point)).run()
    assert records(kept) == before
    later = kept.put("p/g-0")
    kept.clock.advance(HOUR_S)
    services(kept).run()
    view = kept.metadata_table.view(kept.timeline())
    assert any(later in name for name in view.files["p"])
    kept.check()
    services(kept).run()
    kept.check()
    assert all(commit.requested < later for commit in kept.own_timeline().completed(("commit",))[:1])


def test_a_plan_of_a_moment_ago_is_left_to_whoever_made_it(kept: MetadataHarness) -> None:
    put(kept, 4)
    with pytest.raises(Killed):
        services(kept, trace=stop_at(StopPoint.SERVICE_INFLIGHT)).run()
    assert services(kept).run().compactions == ()
    assert len(kept.own_timeline().pending(("compaction",))) == 1


@pytest.mark.parametrize("kept", [8, 9], indirect=True)
def test_a_write_that_comes_in_between_withdraws_the_plan(kept: MetadataHarness) -> None:
    """Its log is not in the plan, and may be completed before the plan's time."""
    put(kept, 4)
    done = services(kept, trace=stop_at(StopPoint.SERVICE_PLANNED, lambda: kept.put("p/g-0"))).run()
    assert done.compactions == ()
    assert kept.own_timeline().pending() == ()
    kept.check()
    before = records(kept)
    assert len(services(kept).run().compactions) == 1
    assert records(kept) == before


@pytest.mark.parametrize(
    ("kept", "point"),
    of_each_version([CLAIM[0], StopPoint.SERVICE_INFLIGHT, StopPoint.SERVICE_DONE]),
    indirect=["kept"],
)
def test_a_write_that_comes_later_lies_on_top(kept: MetadataHarness, point: StopPoint) -> None:
    put(kept, 4)
    came: list[str] = []
    done = services(kept, trace=stop_at(point, lambda: came.append(kept.put("p/g-0")))).run()
    assert len(done.compactions) == 1
    assert any(came[0] in name for name in kept.metadata_table.view(kept.timeline()).files["p"])
    assert logs(kept) > 0
    kept.check()


def test_two_who_do_the_same_work_make_the_same_files(kept: MetadataHarness) -> None:
    put(kept, 4)
    before = records(kept)

    def other() -> None:
        kept.clock.advance(HOUR_S)
        assert len(services(kept).run().compactions) == 1

    assert services(kept, trace=stop_at(StopPoint.SERVICE_INFLIGHT, other)).run().compactions == ()
    assert records(kept) == before
    assert len(kept.own_timeline().completed(("commit",))) == 1
    kept.check()


def test_no_write_gets_the_time_of_a_compaction(kept: MetadataHarness) -> None:
    """The time is one that nobody's clock has reached yet, or that all clocks have passed."""
    put(kept, 3)
    tx = kept.open().begin("commit", "UPSERT")
    assert tx.publish(kept.rewrite(tx, "p/g-0")).is_committed
    done = services(kept).run()
    assert len(done.compactions) == 1
    assert kept.open().begin("commit", "UPSERT").instant > done.compactions[0]


def test_a_write_that_was_claimed_and_not_completed_is_in_the_plan(kept: MetadataHarness) -> None:
    put(kept, 3)
    tx = kept.open(trace=stop_at(StopPoint.PUBLISH_CLAIMED)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        tx.publish(kept.rewrite(tx, "p/g-7"))
    assert len(services(kept).run().compactions) == 1
    assert logs(kept) == 0
    assert any(tx.instant in name for name in kept.metadata_table.view(kept.timeline()).files["p"])
    kept.check()


@pytest.mark.parametrize("is_rolled_back", [False, True])
def test_nothing_is_compacted_that_may_be_rolled_back_or_was(kept: MetadataHarness, is_rolled_back: bool) -> None:
    put(kept, 3)
    tx = kept.open().begin("commit", "UPSERT")
    come_up(kept, tx.instant)
    if is_rolled_back:
        tx.abort("another attempt begins")
        come_up(kept, tx.instant)
    assert services(kept).run().compactions == ()


def test_what_the_table_does_not_know_and_nobody_rolled_back_is_the_jvms_own(kept: MetadataHarness) -> None:
    put(kept, 3)
    newest = kept.own_timeline().newest_time() or ""
    come_up(kept, f"{newest[:-3]}998")
    kept.clock.advance(5)
    assert len(services(kept).run().compactions) == 1


@pytest.mark.parametrize("kept", [8, 9], indirect=True)
def test_a_plan_that_lacks_a_log_is_withdrawn(kept: MetadataHarness) -> None:
    put(kept, 4)
    before = records(kept)
    begun = plan_wrongly(kept)
    done = services(kept).run()
    assert len(done.compactions) == 1
    assert done.compactions[0] != begun.requested
    assert records(kept) == before
    assert kept.own_timeline().pending() == ()


def test_a_plan_of_a_jvm_that_died_is_carried_out_without_what_it_left(kept: MetadataHarness) -> None:
    put(kept, 4)
    with pytest.raises(Killed):
        services(kept, trace=stop_at(StopPoint.SERVICE_INFLIGHT)).run()
    begun = kept.own_timeline().pending(("compaction",))[0]
    left = f"{METADATA_FOLDER}/files/files-0000-0_3-7-7_{begun.requested}.hfile"
    kept.storage.replace(left, b"half of it")
    kept.clock.advance(HOUR_S)
    assert services(kept).run().compactions == (begun.requested,)
    assert not kept.storage.exists(left)
    kept.check()


def test_who_finds_that_another_completed_it_takes_its_own_away(kept: MetadataHarness) -> None:
    put(kept, 4)

    def complete() -> None:
        begun = next(one for one in kept.own_timeline().instants if one.action == "commit")
        file = kept.own_layout.path(begun.as_completed(f"{begun.requested[:-3]}999"))
        kept.storage.replace(file, b"by a JVM")

    services(kept, trace=stop_at(StopPoint.SERVICE_COMPLETED, complete)).run()
    names = [name for name in kept.names(kept.own_layout.folder) if name.endswith(".commit")]
    assert len(names) == 1
    assert kept.storage.read(f"{kept.own_layout.folder}/{names[0]}") == b"by a JVM"


@pytest.mark.parametrize("kept", [8, 9], indirect=True)
def test_a_delta_commit_stays_on_the_timeline_while_its_log_lies_on_top_of_a_base_file(kept: MetadataHarness) -> None:
    """One that began before the compaction and was completed after it."""
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    put(kept, 3)
    tx = kept.open().begin("commit", "UPSERT")
    put(kept, 1)
    assert len(services(kept).run().compactions) == 1
    assert tx.publish(kept.rewrite(tx, "p/g-8")).is_committed
    put(kept, 30)
    kept.clock.advance(HOUR_S)
    assert TableServices(kept.open(), options).archive().archived > 3
    assert str(kept.timeline().first_active) > tx.instant
    archived = services(kept, commits=1000, options=options).run()
    assert archived.archived > 0
    assert kept.own_timeline().get(tx.instant) is not None
    assert any(tx.instant in name for name in kept.metadata_table.view(kept.timeline()).files["p"])


@pytest.mark.parametrize("kept", [8], indirect=True)
def test_old_files_go_and_the_timeline_stays_short(kept: MetadataHarness) -> None:
    options = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"}
    for _ in range(12):
        put(kept, 4)
        kept.clock.advance(HOUR_S)
        before = records(kept)
        services(kept, options=options).run()
        assert records(kept) == before
    kept.check()
    own = kept.own_timeline()
    files = [name for part in kept.parts for name in kept.names(f"{METADATA_FOLDER}/{part.value}")]
    assert len(own.completed(("clean",))) > 1
    assert len(own.completed(("deltacommit",))) == 48, "the table's own timeline is as long"
    assert len(files) < 48 * 3
    bases = [name for name in kept.names(f"{METADATA_FOLDER}/files") if name.endswith(".hfile")]
    assert len(bases) >= 20 // 4, "of the last twenty"


@pytest.mark.parametrize("kept", [9], indirect=True)
def test_once_it_is_compacted_both_timelines_are_archived(kept: MetadataHarness) -> None:
    options = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6", "hoodie.clean.commits.retained": "2"}
    options["hoodie.metadata.compact.max.delta.commits"] = "3"
    table = TableServices(kept.open(), options)
    for _ in range(30):
        kept.put("p/g-0")
        kept.clock.advance(HOUR_S)
        assert table.follow_write() == ()
    assert len(kept.timeline().completed(("commit",))) <= 12
    assert len(kept.own_timeline().completed(("deltacommit",))) <= 30
    assert kept.own_timeline().completed(("clean",)), "the timeline stays as long as the clean looks back"
    view = kept.metadata_table.view(kept.timeline())
    there = {entry.name: entry.size for entry in kept.storage.list("p") if entry.name.endswith(".parquet")}
    assert view.files["p"] == there


def test_a_clean_that_would_remove_other_files_is_refused(kept: MetadataHarness) -> None:
    put(kept, 2)
    newest = kept.own_timeline().newest_time() or ""
    begun = Instant(f"{newest[:-1]}9", "clean", State.REQUESTED)
    plan = CleanPlan(None, "", "KEEP_LATEST_COMMITS", {"../../p": (f"{kept.storage.base}/p/x.parquet",)})
    kept.storage.replace(kept.own_layout.path(begun), plan.encode())
    kept.clock.advance(HOUR_S)
    with pytest.raises(DamagedTable, match="no file of the metadata table"):
        services(kept).run()
