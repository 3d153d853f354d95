"""Log compaction beside writers: its log comes right behind those that it merged, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from compaction_harness import NON_BLOCKING
from log_compaction_harness import LogCompactionHarness
from transaction_harness import Killed, Mortal, kill

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import CompactionOperation, CompactionPlan, Instant, LogFileName, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import LogCompaction
from hudi_locks.table import Table, TableConfig, slices_changed
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint, concurrent_writes, planning
from hudi_locks.transaction.begin import Begin

ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))
DEAD_S = 3600.0


@pytest.fixture
def service(harness: Any) -> LogCompactionHarness:
    return LogCompactionHarness.at(harness)


@pytest.fixture
def written(service: LogCompactionHarness) -> list[str]:
    return [service.append(ZERO), service.append(ZERO, ONE), service.append(ZERO)]


def merge(service: LogCompactionHarness, **how: Any) -> str:
    log_compaction = service.log_compaction(**how)
    instant = log_compaction.schedule()
    assert instant is not None
    result = service.join(log_compaction)
    assert result is not None
    assert result.is_committed
    return instant


def test_logs_become_one_log_and_readers_see_no_step_of_it(service: LogCompactionHarness, written: list[str]) -> None:
    state = {ZERO: written, ONE: written[1:2]}
    log_compaction = service.log_compaction()
    instant = str(log_compaction.schedule())
    assert (service.harness.claims()[-1].kind, service.harness.claims()[-1].action) == (
        ClaimKind.SCHEDULE,
        "logcompaction",
    )
    plan = log_compaction.read_plan(instant)
    assert plan.file_groups == {("p", ZERO)}
    assert plan.compactor.endswith(".LogCompactionExecutionHelper")
    assert service.seen() == state
    result = service.join(log_compaction)
    assert result is not None
    assert result.is_committed
    assert service.seen() == service.seen(as_of=str(result.completion_time)) == state
    done = service.harness.timeline().get(instant)
    assert (done.action, done.is_completed, done.completion) == ("deltacommit", True, result.completion_time)
    assert service.harness.names(".hoodie/.heartbeat") == []
    assert service.harness.timeline().pending() == ()
    assert any(f"{ZERO}_{instant}.log" in name for name in service.harness.names("p"))


def test_snapshots_before_it_are_read_from_what_it_merged(service: LogCompactionHarness, written: list[str]) -> None:
    before = service.harness.timeline().completed_between("")
    merge(service)
    for number, instant in enumerate(before):
        assert service.seen(as_of=str(instant.completion))[ZERO] == written[: number + 1]


def test_it_is_done_again_only_once_enough_new_logs_came(service: LogCompactionHarness, written: list[str]) -> None:
    merge(service)
    again = service.log_compaction()
    assert again.count_commits(service.harness.timeline()) == 0
    assert again.schedule() is None
    written.append(service.append(ZERO))
    assert again.schedule() is None
    written.append(service.append(ZERO))
    assert again.count_commits(service.harness.timeline()) == 2
    second = merge(service)
    [operation] = again.read_plan(second).groups
    assert len(operation.log_names) == 6
    assert service.seen()[ZERO] == written
    assert service.log_compaction(threshold=9).schedule() is None


def test_a_compaction_takes_it_along_with_what_it_merged(service: LogCompactionHarness, written: list[str]) -> None:
    merge(service)
    later = service.append(ZERO)
    compaction = service.compaction()
    plan = compaction.read_plan(str(compaction.schedule()))
    assert sorted(len(operation.log_names) for operation in plan.groups) == [1, 5]
    assert service.log_compaction(threshold=1).schedule() is None
    result = service.run(compaction)
    assert result is not None
    assert result.is_committed
    assert service.seen() == {ZERO: [*written, later], ONE: written[1:2]}
    assert service.log_compaction(threshold=1).schedule() is None
    last = [service.append(ZERO), service.append(ZERO)]
    assert service.log_compaction().count_commits(service.harness.timeline()) == 2
    merge(service)
    assert service.seen()[ZERO] == [*written, later, *last]


@pytest.mark.parametrize("first", ["compaction", "log_compaction"])
def test_file_groups_of_a_plan_are_left_to_it(service: LogCompactionHarness, written: list[str], first: str) -> None:
    assert written
    second = {"compaction": "log_compaction", "log_compaction": "compaction"}[first]
    planned = getattr(service, first)()
    mine = planned.read_plan(str(planned.schedule())).file_groups
    assert getattr(service, first)().make_plan(service.harness.timeline()) is None or first == "log_compaction"
    other = getattr(service, second)().make_plan(service.harness.timeline())
    assert other is None or not other.file_groups & mine


# ---- writes beside it ----


@pytest.mark.parametrize("mode", ["OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"])
def test_writes_that_begin_after_its_plan_lie_on_top_and_neither_gives_way(
    service: LogCompactionHarness, written: list[str], mode: str
) -> None:
    how: dict[str, Any] = {"hoodie__write__concurrency__mode": mode}
    log_compaction = service.log_compaction(**how)
    log_compaction.schedule()
    taken = log_compaction.take()
    assert taken is not None
    before = service.append(ZERO, **how)
    beside = service.begin(**how)
    draft = service.log(beside, ZERO)
    assert service.finish_join(*taken).is_committed
    assert service.seen()[ZERO] == [*written, before]
    assert beside.publish(draft).is_committed
    assert service.seen()[ZERO] == [*written, before, beside.instant]


def test_nothing_is_planned_while_a_write_is_under_way(service: LogCompactionHarness, written: list[str]) -> None:
    tx = service.begin()
    draft = service.log(tx, ZERO)
    assert service.log_compaction().schedule() is None
    assert tx.publish(draft).is_committed
    merge(service)
    assert service.seen()[ZERO] == [*written, tx.instant]


def test_a_dead_write_is_rolled_back_first(service: LogCompactionHarness, written: list[str]) -> None:
    tx = service.begin()
    service.log(tx, ZERO)
    assert service.log_compaction().schedule() is None
    tx._state.heartbeat.pause()
    service.harness.clock.advance(DEAD_S)
    merge(service)
    assert service.harness.timeline().get(tx.instant) is None
    assert service.seen()[ZERO] == written


def test_a_write_that_begins_while_it_is_planned_keeps_it_from_being_planned(
    service: LogCompactionHarness, written: list[str], at: Any
) -> None:
    assert written
    begun = []
    trace = at(StopPoint.SCHEDULE_PLANNED, lambda: begun.append(service.begin()))
    assert service.log_compaction(trace=trace).schedule() is None
    assert begun[0].publish(service.log(begun[0], ZERO)).is_committed


def test_what_is_logged_while_it_is_planned_is_part_of_it(
    service: LogCompactionHarness, written: list[str], at: Any
) -> None:
    trace = at(StopPoint.SCHEDULE_PLANNED, lambda: written.append(service.append(ZERO)))
    log_compaction = service.log_compaction(trace=trace)
    [operation] = log_compaction.read_plan(str(log_compaction.schedule())).groups
    assert len(operation.log_names) == 4
    service.join(log_compaction)
    assert service.seen()[ZERO] == written


@pytest.mark.parametrize("is_mine", [True, False], ids=["of its file group", "of another one"])
@pytest.mark.parametrize(
    ("point", "takes_later"),
    [(StopPoint.BEGIN_LISTED, True), (StopPoint.BEGIN_HEARTBEAT, True), (StopPoint.BEGIN_REQUESTED, False)],
)
def test_a_write_whose_begin_is_overtaken_takes_a_later_time_or_makes_it_give_way(
    service: LogCompactionHarness, written: list[str], at: Any, point: StopPoint, takes_later: bool, is_mine: bool
) -> None:
    """The whole log compaction happens while the begin stands still."""
    merged = service.log_compaction()
    planned: list[Any] = []

    def overtake() -> None:
        planned.append(merged.schedule())

    tx = service.begin(trace=at(point, overtake))
    assert (planned[0] is not None) is takes_later
    assert (tx.instant > str(planned[0])) is takes_later
    draft = service.log(tx, ZERO if is_mine else ONE)
    if planned[0] is not None:
        result = service.join(merged)
        assert result is not None
        assert result.is_committed
    assert tx.publish(draft).is_committed
    assert service.seen()[ZERO] == [*written, *([tx.instant] if is_mine else [])]


def test_a_write_that_stands_still_between_its_look_and_its_begin_is_seen_by_its_heartbeat(
    service: LogCompactionHarness, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = service.log_compaction()
    results: list[Any] = []
    create = Begin._create

    def create_late(self: Begin, instant: Instant) -> bool:
        monkeypatch.setattr(Begin, "_create", create)
        assert merged.schedule() is not None
        results.append(service.join(merged))
        return create(self, instant)

    monkeypatch.setattr(Begin, "_create", create_late)
    tx = service.begin()
    [result] = results
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, tx.instant)
    assert tx.publish(service.log(tx, ZERO)).is_committed
    assert service.seen()[ZERO] == [*written, tx.instant]
    merge(service)
    assert service.seen()[ZERO] == [*written, tx.instant]


@pytest.mark.parametrize("mode", ["OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"])
@pytest.mark.parametrize("is_first", [True, False], ids=["log compaction first", "write first"])
def test_the_claims_decide_where_nobody_looked(
    service: LogCompactionHarness, written: list[str], monkeypatch: pytest.MonkeyPatch, mode: str, is_first: bool
) -> None:
    """A write with the earlier time that neither planning nor heartbeats told of: who comes second gives way."""
    how: dict[str, Any] = {"hoodie__write__concurrency__mode": mode}
    tx = service.begin(**how)
    draft = service.log(tx, ZERO)
    monkeypatch.setattr(planning, "INGESTION", ())
    monkeypatch.setattr(concurrent_writes, "earlier_operations", lambda *_, **__: ())
    merged = service.log_compaction(**how)
    assert merged.schedule() is not None
    taken = merged.take()
    assert taken is not None
    merging = service.join_logs(*taken)
    ends = [(taken[0], merging), (tx, draft)] if is_first else [(tx, draft), (taken[0], merging)]
    done, given_up = [one.publish(metadata) for one, metadata in ends]
    assert (done.is_committed, given_up.outcome) == (True, Outcome.ABORTED)
    assert given_up.conflict is not None
    assert given_up.conflict.groups == (("p", ZERO),)
    assert service.seen()[ZERO] == [*written, *([] if is_first else [tx.instant])]


def test_a_write_of_another_file_group_that_was_earlier_is_no_conflict(
    service: LogCompactionHarness, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = service.begin()
    draft = service.log(tx, ONE)
    monkeypatch.setattr(planning, "INGESTION", ())
    merged = service.log_compaction()
    merged.schedule()
    assert tx.publish(draft).is_committed
    result = service.join(merged)
    assert result is not None
    assert result.is_committed
    assert service.seen() == {ZERO: written, ONE: [written[1], tx.instant]}


# ---- JVM writers ----


def test_it_gives_way_to_a_compaction_that_a_jvm_plans_meanwhile(
    service: LogCompactionHarness, written: list[str]
) -> None:
    """That plan has the merged logs and not the one made of them, which would lie on top of its base file."""
    service.harness.foreign = True
    merged = service.log_compaction()
    mine = str(merged.schedule())
    taken = merged.take()
    assert taken is not None
    service.harness.clock.advance(1)
    theirs = Instant(
        service.harness.open().coordinator.peek().timeline.newest_time()[:14] + "999", "compaction", State.REQUESTED
    )
    assert theirs.requested > mine
    plan = CompactionPlan((CompactionOperation("p", ZERO, written[0], "", merged.read_plan(mine).groups[0].log_names),))
    service.harness.storage.create_if_absent(LAYOUT_2.path(theirs), plan.encode())
    result = service.finish_join(*taken)
    assert result.outcome is Outcome.ABORTED
    assert result.conflict is not None
    assert result.conflict.other == theirs.requested
    assert service.seen()[ZERO] == written


def test_a_plan_of_a_jvm_is_left_to_it(service: LogCompactionHarness, written: list[str]) -> None:
    assert written
    plan = Instant("20231114221319000", "logcompaction", State.REQUESTED)
    groups = (CompactionOperation("p", ZERO, written[0], "", ("a log",)),)
    service.harness.storage.create_if_absent(LAYOUT_2.path(plan), CompactionPlan(groups).encode())
    merged = service.log_compaction()
    [pending] = merged.list_pending(service.harness.timeline())
    assert (pending.is_ours, pending.is_begun) == (False, False)
    assert merged.take() is None
    assert merged.make_plan(service.harness.timeline()) is None


# ---- deaths ----


@pytest.mark.parametrize("point", [StopPoint.SCHEDULE_CLAIMED, StopPoint.SCHEDULE_REQUESTED])
def test_a_plan_whose_maker_dies_is_run_by_the_next(
    service: LogCompactionHarness, written: list[str], at: Any, point: StopPoint
) -> None:
    with pytest.raises(Killed):
        service.log_compaction(trace=at(point, kill)).schedule()
    later = service.append(ZERO)
    service.harness.clock.advance(DEAD_S)
    result = service.join(service.log_compaction())
    assert result is not None
    assert result.is_committed
    assert service.seen() == {ZERO: [*written, later], ONE: written[1:2]}


@pytest.mark.parametrize(
    "point",
    [
        StopPoint.RESUME_HEARTBEAT, StopPoint.RESUME_INFLIGHT, StopPoint.PUBLISH_LOCKED, StopPoint.PUBLISH_CHECKED,
        StopPoint.PUBLISH_CLAIMED, StopPoint.PUBLISH_LOOKED, StopPoint.PUBLISH_COMPLETED, StopPoint.PUBLISH_CLEANED,
    ],
)  # fmt: skip
def test_one_whose_process_dies_is_done_by_the_next(
    service: LogCompactionHarness, written: list[str], at: Any, point: StopPoint
) -> None:
    mortal = Mortal(service.harness, at, point)
    mortal_table = LogCompaction(service.table, mortal.transactions, 2)
    mortal_table.schedule()
    with pytest.raises(Killed):
        service.join(mortal_table)
    later = service.append(ZERO)
    service.harness.clock.advance(DEAD_S)
    other = service.log_compaction()
    service.join(other)
    assert service.seen() == {ZERO: [*written, later], ONE: written[1:2]}
    other.schedule()
    service.join(other)
    assert service.seen() == {ZERO: [*written, later], ONE: written[1:2]}
    assert service.harness.timeline().pending() == ()
    names = [LogFileName.parse(name) for name in service.harness.names("p")]
    logged = {name.instant for name in names if name}
    assert logged == {i.requested for i in service.harness.timeline().completed(("deltacommit",))}


def test_a_plan_can_be_taken_back(service: LogCompactionHarness, written: list[str]) -> None:
    merged = service.log_compaction()
    instant = str(merged.schedule())
    tx, plan = merged.take() or pytest.fail("nothing to take")
    service.join_logs(tx, plan)
    service.harness.clock.advance(DEAD_S)
    tx._state.heartbeat.pause()
    assert service.log_compaction().abort(instant) is Outcome.ABORTED
    assert service.harness.timeline().pending() == ()
    assert not any(instant in name for name in service.harness.names("p"))
    assert service.seen()[ZERO] == written


# ---- what is asked of the table, and what readers of changes see ----


def test_changes_are_those_of_the_writes(service: LogCompactionHarness, written: list[str]) -> None:
    """Rows are judged by the write that they came with, and it brings none of its own."""
    before = str(service.harness.timeline().get(written[-1]).completion)
    instant = merge(service)
    changes = slices_changed(service.harness.storage, service.harness.timeline(), begin=before)
    rows = [row for piece in changes.slices for row in service.rows(piece)]
    assert changes.instants == (instant,)
    assert instant not in rows
    assert set(rows) == set(written)


def test_a_table_whose_rows_fill_nulls_is_refused(service: LogCompactionHarness, harness: Any) -> None:
    extra = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    config = TableConfig("t", ("id",), ("part",), ordering_fields=("ts",), table_type="MERGE_ON_READ", extra=extra)
    filling = LogCompaction(Table(harness.storage, config), harness.open(**NON_BLOCKING))
    with pytest.raises(UnsupportedTable, match=r"take the values of nulls .* compact it instead"):
        filling.schedule()
    with pytest.raises(UnsupportedTable, match="copy-on-write table, which has no logs"):
        LogCompaction(Table(harness.storage, TableConfig("t", ("id",))), harness.open()).schedule()
    assert service.harness.claims() == []
