"""Compaction beside writers that do not wait for it: no row is lost or doubled, whoever completes when."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from compaction_desk import CompactionDesk
from transaction_desk import Killed, Mortal, kill

from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format import CompactionPlan, Instant, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import Compaction
from hudi_locks.table import Table, TableConfig
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import StopPoint

ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))
DEAD_S = 3600.0


@pytest.fixture
def at_desk(desk: Any) -> CompactionDesk:
    return CompactionDesk.at(desk)


def test_logs_become_a_base_file_and_readers_see_no_step_of_it(at_desk: CompactionDesk) -> None:
    written = [at_desk.append(ZERO, ONE), at_desk.append(ZERO)]
    compaction = at_desk.compaction()
    instant = compaction.schedule()
    assert at_desk.desk.claims()[-1].kind is ClaimKind.SCHEDULE
    assert at_desk.seen() == {ZERO: written, ONE: written[:1]}
    result = at_desk.run(compaction)
    assert result is not None
    assert result.is_committed
    assert at_desk.seen() == {ZERO: written, ONE: written[:1]}
    done = at_desk.desk.timeline().get(instant)
    assert (done.action, done.is_completed, done.completion) == ("commit", True, result.completion_time)
    assert at_desk.desk.names(".hoodie/.heartbeat") == []
    later = at_desk.append(ONE)
    assert at_desk.seen()[ONE] == [written[0], later]
    assert compaction.schedule() is not None
    assert [op.base_instant for op in compaction.read_plan(at_desk.desk.claims()[-1].instant).groups] == [instant]


@pytest.mark.parametrize("ends", sorted(set(itertools.permutations(["plan", "run", "write"]))), ids="-".join)
def test_a_write_that_begins_before_the_plan_is_there_once_whenever_it_completes(
    at_desk: CompactionDesk, ends: tuple[str, ...]
) -> None:
    """The RFC's [t1, t3] and [t2, t5] with a plan at t4, and every other order."""
    first = at_desk.append(ZERO)
    tx = at_desk.begin()
    draft = at_desk.log(tx, ZERO)
    compaction = at_desk.compaction()
    steps: dict[str, Any] = {
        "plan": compaction.schedule,
        "run": lambda: at_desk.run(compaction),
        "write": lambda: tx.publish(draft),
    }
    for step in ends:
        steps[step]()
    assert at_desk.seen() == {ZERO: [first, tx.instant]}
    at_desk.run(compaction)
    last = at_desk.append(ZERO)
    assert at_desk.seen() == {ZERO: [first, tx.instant, last]}


def test_what_is_logged_while_the_plan_is_made_is_part_of_it_in_its_order(at_desk: CompactionDesk, at: Any) -> None:
    early = at_desk.begin()
    draft = at_desk.log(early, ZERO)
    first = at_desk.append(ZERO)

    def log_more() -> None:
        assert early.publish(draft).is_committed
        at_desk.append(ZERO, ONE)

    compaction = at_desk.compaction(trace=at(StopPoint.SCHEDULE_PLANNED, log_more))
    instant = str(compaction.schedule())
    [operation] = compaction.read_plan(instant).groups
    times = [name.split("_")[1].split(".")[0] for name in operation.log_names]
    assert times == sorted(times)
    assert (len(times), times[:2]) == (3, [early.instant, first])
    at_desk.run(compaction)
    assert at_desk.seen()[ZERO] == times
    assert len(at_desk.seen()[ONE]) == 1


@pytest.mark.parametrize("mode", ["OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"])
def test_neither_a_write_nor_a_compaction_gives_way_to_the_other(at_desk: CompactionDesk, mode: str) -> None:
    how = {"hoodie__write__concurrency__mode": mode}
    first = at_desk.append(ZERO, **how)
    compaction = at_desk.compaction(**how)
    compaction.schedule()
    taken = compaction.take()
    assert taken is not None
    before = at_desk.begin(**how)
    second = at_desk.append(ZERO, **how) if mode.startswith("NON") else ""
    assert at_desk.finish(*taken).is_committed
    assert before.publish(at_desk.log(before, ZERO)).is_committed
    assert at_desk.seen() == {ZERO: sorted(filter(None, [first, second, before.instant]))}


@pytest.mark.parametrize("point", [StopPoint.SCHEDULE_CLAIMED, StopPoint.SCHEDULE_REQUESTED])
def test_a_plan_whose_maker_dies_is_run_by_the_next(at_desk: CompactionDesk, at: Any, point: StopPoint) -> None:
    first = at_desk.append(ZERO)
    with pytest.raises(Killed):
        at_desk.compaction(trace=at(point, kill)).schedule()
    second = at_desk.append(ZERO)
    at_desk.desk.clock.advance(DEAD_S)
    result = at_desk.run(at_desk.compaction())
    assert result is not None
    assert result.is_committed
    assert at_desk.seen() == {ZERO: [first, second]}


@pytest.mark.parametrize(
    "point",
    [
        StopPoint.RESUME_HEARTBEAT, StopPoint.RESUME_INFLIGHT, StopPoint.PUBLISH_LOCKED, StopPoint.PUBLISH_CHECKED,
        StopPoint.PUBLISH_CLAIMED, StopPoint.PUBLISH_LOOKED, StopPoint.PUBLISH_COMPLETED, StopPoint.PUBLISH_CLEANED,
    ],
)  # fmt: skip
def test_a_compaction_whose_process_dies_is_done_by_the_next(
    at_desk: CompactionDesk, at: Any, point: StopPoint
) -> None:
    first = at_desk.append(ZERO)
    mortal = Mortal(at_desk.desk, at, point)
    mortal_table = Compaction(at_desk.table, mortal.transactions)
    mortal_table.schedule()
    with pytest.raises(Killed):
        at_desk.run(mortal_table)
    second = at_desk.append(ZERO)
    at_desk.desk.clock.advance(DEAD_S)
    other = at_desk.compaction()
    at_desk.run(other)
    assert at_desk.seen() == {ZERO: [first, second]}
    other.schedule()
    at_desk.run(other)
    assert at_desk.seen() == {ZERO: [first, second]}
    assert at_desk.desk.timeline().pending() == ()
    bases = {name.split("_")[2][:17] for name in at_desk.desk.names("p") if name.endswith(".parquet")}
    assert bases == {i.requested for i in at_desk.desk.timeline().completed(("commit",))}


def test_file_groups_of_another_plan_are_left_to_it(at_desk: CompactionDesk) -> None:
    at_desk.append(ZERO)
    first = at_desk.compaction()
    assert first.schedule() is not None
    assert at_desk.compaction().schedule() is None
    at_desk.append(ZERO, ONE)
    second = str(at_desk.compaction().schedule())
    assert first.read_plan(second).file_groups == {("p", ONE)}


def test_what_cannot_be_run_is_named(at_desk: CompactionDesk) -> None:
    at_desk.append(ZERO)
    compaction = at_desk.compaction()
    instant = str(compaction.schedule())
    assert compaction.take(instant) is not None
    with pytest.raises(WriteAborted, match=rf"compaction {instant} is under way in another process"):
        at_desk.compaction().take(instant)
    assert at_desk.compaction().take() is None


def test_the_plan_of_a_jvm_is_left_to_it(at_desk: CompactionDesk) -> None:
    at_desk.append(ZERO)
    plan = Instant("20231114221319000", "compaction", State.REQUESTED)
    at_desk.desk.storage.create_if_absent(LAYOUT_2.path(plan), CompactionPlan(()).encode())
    [pending] = at_desk.compaction().list_pending(at_desk.desk.timeline())
    assert (pending.is_ours, pending.is_begun) == (False, False)
    assert at_desk.compaction().take() is None


def test_a_table_without_logs_has_nothing_to_compact(at_desk: CompactionDesk, desk: Any) -> None:
    assert at_desk.compaction().schedule() is None
    plain = Table(desk.storage, TableConfig("t", ("id",)))
    with pytest.raises(UnsupportedTable, match="copy-on-write table, which has no logs"):
        Compaction(plain, desk.open()).schedule()
