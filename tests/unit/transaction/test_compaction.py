"""Compaction beside writers that do not wait for it: no row is lost or doubled, whoever completes when."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from compaction_harness import CompactionHarness
from transaction_harness import Killed, Mortal, kill

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
def service(harness: Any) -> CompactionHarness:
    return CompactionHarness.at(harness)


def test_logs_become_a_base_file_and_readers_see_no_step_of_it(service: CompactionHarness) -> None:
    written = [service.append(ZERO, ONE), service.append(ZERO)]
    compaction = service.compaction()
    instant = compaction.schedule()
    assert service.harness.claims()[-1].kind is ClaimKind.SCHEDULE
    assert service.seen() == {ZERO: written, ONE: written[:1]}
    result = service.run(compaction)
    assert result is not None
    assert result.is_committed
    assert service.seen() == {ZERO: written, ONE: written[:1]}
    done = service.harness.timeline().get(instant)
    assert (done.action, done.is_completed, done.completion) == ("commit", True, result.completion_time)
    assert service.harness.names(".hoodie/.heartbeat") == []
    later = service.append(ONE)
    assert service.seen()[ONE] == [written[0], later]
    assert compaction.schedule() is not None
    assert [op.base_instant for op in compaction.read_plan(service.harness.claims()[-1].instant).groups] == [instant]


@pytest.mark.parametrize("ends", sorted(set(itertools.permutations(["plan", "run", "write"]))), ids="-".join)
def test_a_write_that_begins_before_the_plan_is_there_once_whenever_it_completes(
    service: CompactionHarness, ends: tuple[str, ...]
) -> None:
    """The RFC's [t1, t3] and [t2, t5] with a plan at t4, and every other order."""
    first = service.append(ZERO)
    tx = service.begin()
    draft = service.log(tx, ZERO)
    compaction = service.compaction()
    steps: dict[str, Any] = {
        "plan": compaction.schedule,
        "run": lambda: service.run(compaction),
        "write": lambda: tx.publish(draft),
    }
    for step in ends:
        steps[step]()
    assert service.seen() == {ZERO: [first, tx.instant]}
    service.run(compaction)
    last = service.append(ZERO)
    assert service.seen() == {ZERO: [first, tx.instant, last]}


def test_what_is_logged_while_the_plan_is_made_is_part_of_it_in_its_order(service: CompactionHarness, at: Any) -> None:
    early = service.begin()
    draft = service.log(early, ZERO)
    first = service.append(ZERO)

    def log_more() -> None:
        assert early.publish(draft).is_committed
        service.append(ZERO, ONE)

    compaction = service.compaction(trace=at(StopPoint.SCHEDULE_PLANNED, log_more))
    instant = str(compaction.schedule())
    [operation] = compaction.read_plan(instant).groups
    times = [name.split("_")[1].split(".")[0] for name in operation.log_names]
    assert times == sorted(times)
    assert (len(times), times[:2]) == (3, [early.instant, first])
    service.run(compaction)
    assert service.seen()[ZERO] == times
    assert len(service.seen()[ONE]) == 1


@pytest.mark.parametrize("mode", ["OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"])
def test_neither_a_write_nor_a_compaction_gives_way_to_the_other(service: CompactionHarness, mode: str) -> None:
    how = {"hoodie__write__concurrency__mode": mode}
    first = service.append(ZERO, **how)
    compaction = service.compaction(**how)
    compaction.schedule()
    taken = compaction.take()
    assert taken is not None
    before = service.begin(**how)
    second = service.append(ZERO, **how) if mode.startswith("NON") else ""
    assert service.finish(*taken).is_committed
    assert before.publish(service.log(before, ZERO)).is_committed
    assert service.seen() == {ZERO: sorted(filter(None, [first, second, before.instant]))}


def test_who_slept_while_the_plan_was_taken_back_leaves_no_inflight_file(service: CompactionHarness, at: Any) -> None:
    """Its lock expired meanwhile; nobody could read or run an inflight file without a plan."""
    first = service.append(ZERO)
    instant = str(service.compaction().schedule())
    sleeper = service.compaction(trace=at(StopPoint.RESUME_HEARTBEAT, lambda: service.compaction().abort(instant)))
    with pytest.raises(WriteAborted, match="taken back meanwhile") as caught:
        sleeper.take(instant)
    assert caught.value.instant == instant
    assert service.harness.timeline().get(instant) is None
    again = service.run(service.compaction(), service.compaction().schedule())
    assert again is not None
    assert service.seen() == {ZERO: [first]}


@pytest.mark.parametrize("point", [StopPoint.SCHEDULE_CLAIMED, StopPoint.SCHEDULE_REQUESTED])
def test_a_plan_whose_maker_dies_is_run_by_the_next(service: CompactionHarness, at: Any, point: StopPoint) -> None:
    first = service.append(ZERO)
    with pytest.raises(Killed):
        service.compaction(trace=at(point, kill)).schedule()
    second = service.append(ZERO)
    service.harness.clock.advance(DEAD_S)
    result = service.run(service.compaction())
    assert result is not None
    assert result.is_committed
    assert service.seen() == {ZERO: [first, second]}


@pytest.mark.parametrize(
    "point",
    [
        StopPoint.RESUME_HEARTBEAT, StopPoint.RESUME_INFLIGHT, StopPoint.PUBLISH_LOCKED, StopPoint.PUBLISH_CHECKED,
        StopPoint.PUBLISH_CLAIMED, StopPoint.PUBLISH_LOOKED, StopPoint.PUBLISH_COMPLETED, StopPoint.PUBLISH_CLEANED,
    ],
)  # fmt: skip
def test_a_compaction_whose_process_dies_is_done_by_the_next(
    service: CompactionHarness, at: Any, point: StopPoint
) -> None:
    first = service.append(ZERO)
    mortal = Mortal(service.harness, at, point)
    mortal_table = Compaction(service.table, mortal.transactions)
    mortal_table.schedule()
    with pytest.raises(Killed):
        service.run(mortal_table)
    second = service.append(ZERO)
    service.harness.clock.advance(DEAD_S)
    other = service.compaction()
    service.run(other)
    assert service.seen() == {ZERO: [first, second]}
    other.schedule()
    service.run(other)
    assert service.seen() == {ZERO: [first, second]}
    assert service.harness.timeline().pending() == ()
    bases = {name.split("_")[2][:17] for name in service.harness.names("p") if name.endswith(".parquet")}
    assert bases == {i.requested for i in service.harness.timeline().completed(("commit",))}


def test_file_groups_of_another_plan_are_left_to_it(service: CompactionHarness) -> None:
    service.append(ZERO)
    first = service.compaction()
    assert first.schedule() is not None
    assert service.compaction().schedule() is None
    service.append(ZERO, ONE)
    second = str(service.compaction().schedule())
    assert first.read_plan(second).file_groups == {("p", ONE)}


def test_what_cannot_be_run_is_named(service: CompactionHarness) -> None:
    service.append(ZERO)
    compaction = service.compaction()
    instant = str(compaction.schedule())
    assert compaction.take(instant) is not None
    with pytest.raises(WriteAborted, match=rf"compaction {instant} is under way in another process"):
        service.compaction().take(instant)
    assert service.compaction().take() is None


def test_the_plan_of_a_jvm_is_left_to_it(service: CompactionHarness) -> None:
    service.append(ZERO)
    plan = Instant("20231114221319000", "compaction", State.REQUESTED)
    service.harness.storage.create_if_absent(LAYOUT_2.path(plan), CompactionPlan(()).encode())
    [pending] = service.compaction().list_pending(service.harness.timeline())
    assert (pending.is_ours, pending.is_begun) == (False, False)
    assert service.compaction().take() is None


def test_a_table_without_logs_has_nothing_to_compact(service: CompactionHarness, harness: Any) -> None:
    assert service.compaction().schedule() is None
    plain = Table(harness.storage, TableConfig("t", ("id",)))
    with pytest.raises(UnsupportedTable, match="copy-on-write table, which has no logs"):
        Compaction(plain, harness.open()).schedule()
