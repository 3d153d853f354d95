"""Clustering beside writes: both decide on the same facts, and no death leaves half of it."""

from __future__ import annotations

from typing import Any

import pytest
from clustering_harness import ClusteringHarness
from transaction_harness import Killed, Mortal, kill

from hudi_locks.errors import WriteAborted, WriteConflict
from hudi_locks.format import ClusteringPlan, Instant, State
from hudi_locks.format.claim import ClaimKind
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint

DEAD_S = 3600.0
THEIRS = "20231114221319000"


@pytest.fixture
def service(harness: Any) -> ClusteringHarness:
    """A table with the file groups a, b and c."""
    found = ClusteringHarness.at(harness)
    found.commit("a-0", "b-0")
    found.commit("c-0")
    return found


def test_small_file_groups_become_one_and_readers_see_no_step_of_it(service: ClusteringHarness) -> None:
    clustering = service.clustering()
    instant = clustering.schedule()
    assert [claim.kind for claim in service.harness.claims()][-1] is ClaimKind.SCHEDULE
    assert service.groups() == ["a-0", "b-0", "c-0"]
    assert service.run(clustering).is_committed  # type: ignore[union-attr]
    assert service.groups() == [f"{instant}-0"]
    completed = service.harness.timeline().get(instant)
    assert (completed.action, completed.is_completed) == ("replacecommit", True)
    assert service.run(clustering) is None
    assert clustering.schedule() is None
    assert service.harness.names(".hoodie/.heartbeat") == []


def test_the_plan_on_the_timeline_is_the_one_that_was_claimed(service: ClusteringHarness) -> None:
    clustering = service.clustering()
    instant = str(clustering.schedule())
    path = LAYOUT_2.path(Instant(instant, "clustering", State.REQUESTED))
    data = service.harness.storage.read(path)
    claim = service.harness.claims()[-1]
    assert (claim.instant, claim.time, claim.content.data) == (instant, instant, data)
    plan = ClusteringPlan.decode(data, path)
    assert plan is not None
    assert plan.file_groups == claim.replaces == {("p", "a-0"), ("p", "b-0"), ("p", "c-0")}


def test_what_changes_while_the_plan_is_made_is_left_out_of_it(service: ClusteringHarness, at: Any) -> None:
    options = {"hoodie.clustering.plan.strategy.max.bytes.per.group": 8}
    service.commit("d-0")
    trace = at(StopPoint.SCHEDULE_PLANNED, lambda: service.commit("a-0"))
    clustering = service.clustering(options=options, trace=trace)
    assert clustering.schedule() is not None
    [pending] = clustering.list_pending(service.harness.timeline())
    assert pending.plan.file_groups == {("p", "c-0"), ("p", "d-0")}


JVM = "20231114221314000", "20231114221314500"
"""Begin and end of a JVM writer's commit, by a clock that is behind, as those of several machines may be."""


@pytest.fixture
def beside_jvm(service: ClusteringHarness) -> ClusteringHarness:
    service.harness.foreign = True
    return service


def test_what_the_jvm_archived_before_the_plan_is_no_conflict_of_its_run(beside_jvm: ClusteringHarness) -> None:
    beside_jvm.harness.foreign_commit(*JVM, "a-0")
    beside_jvm.harness.archive(JVM[0])
    clustering = beside_jvm.clustering()
    instant = clustering.schedule()
    result = beside_jvm.run(clustering)
    assert result is not None
    assert (result.outcome, result.instant, result.conflict) == (Outcome.COMMITTED, instant, None)


@pytest.mark.parametrize("is_archived", [False, True])
def test_what_the_jvm_changes_while_the_plan_is_made_is_left_out_though_it_archives_at_once(
    beside_jvm: ClusteringHarness, at: Any, is_archived: bool
) -> None:
    def change() -> None:
        beside_jvm.harness.foreign_commit(*JVM, "a-0")
        if is_archived:
            beside_jvm.harness.archive(JVM[0])

    beside_jvm.commit("d-0")
    options = {"hoodie.clustering.plan.strategy.max.bytes.per.group": 8}
    clustering = beside_jvm.clustering(options=options, trace=at(StopPoint.SCHEDULE_PLANNED, change))
    clustering.schedule()
    [pending] = clustering.list_pending(beside_jvm.harness.timeline())
    assert pending.plan.file_groups == {("p", "c-0"), ("p", "d-0")}
    result = beside_jvm.run(clustering)
    assert result is not None
    assert result.is_committed


def test_what_the_jvm_changes_after_the_plan_is_a_conflict_though_it_archives_at_once(
    beside_jvm: ClusteringHarness,
) -> None:
    clustering = beside_jvm.clustering()
    clustering.schedule()
    late = "20231114221330000"
    beside_jvm.harness.foreign_commit(JVM[0], late, "a-0")
    beside_jvm.harness.archive(JVM[0])
    result = beside_jvm.run(clustering)
    assert result is not None
    assert result.conflict is not None
    assert result.conflict.other == JVM[0]


def test_two_schedulers_at_once_do_not_take_one_file_group_twice(service: ClusteringHarness, at: Any) -> None:
    other = service.clustering()
    trace = at(StopPoint.SCHEDULE_PLANNED, other.schedule)
    assert service.clustering(trace=trace).schedule() is None
    assert len(service.harness.timeline().pending(("clustering",))) == 1


@pytest.mark.parametrize("begins_first", [True, False])
def test_a_write_of_a_planned_file_group_meets_the_plan_and_is_told_what_to_do(
    service: ClusteringHarness, begins_first: bool
) -> None:
    transactions = service.harness.open()
    early = transactions.begin("commit", "UPSERT") if begins_first else None
    instant = service.clustering().schedule()
    tx = early or transactions.begin("commit", "UPSERT")
    with pytest.raises(WriteConflict, match=r"the other was begun .* ago and is not finished") as caught:
        tx.publish(service.write(tx, "a-0")).raise_unless_committed()
    assert (caught.value.other, caught.value.file_id) == (instant, "a-0")
    assert f"hudi-locks cluster PATH --abort {instant}" in str(caught.value)
    new = transactions.begin("commit", "INSERT")
    assert new.publish(service.write(new, "new-0")).is_committed


def test_a_plan_that_was_taken_back_is_in_nobodys_way(service: ClusteringHarness) -> None:
    tx = service.harness.open().begin("commit", "UPSERT")
    clustering = service.clustering()
    instant = str(clustering.schedule())
    assert clustering.abort(instant) is Outcome.ABORTED
    assert tx.publish(service.write(tx, "a-0")).is_committed
    assert service.harness.timeline().get(instant) is None
    with pytest.raises(WriteAborted, match="no pending clustering; there are: none"):
        service.run(clustering, instant)


def test_a_write_that_began_before_the_plan_and_ends_after_its_run_begins_anew(service: ClusteringHarness) -> None:
    tx = service.harness.open().begin("commit", "UPSERT")
    metadata = service.write(tx, "a-0")
    clustering = service.clustering()
    instant = clustering.schedule()
    assert service.run(clustering).is_committed  # type: ignore[union-attr]
    conflict = tx.publish(metadata).conflict
    assert conflict is not None
    assert (conflict.other, conflict.other_is_pending) == (instant, False)


def test_clustering_yields_to_a_commit_that_came_first_and_leaves_nothing(service: ClusteringHarness) -> None:
    """A JVM writer that prefers itself does not look at the plan."""
    service.harness.foreign = True
    clustering = service.clustering()
    instant = str(clustering.schedule())
    taken = clustering.take()
    assert taken is not None
    service.harness.foreign_commit("20231114221320100", "20231114221320200", "a-0")
    result = service.finish(*taken)
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, "20231114221320100")  # type: ignore[union-attr]
    assert "Plan the table service anew" in str(result.conflict)
    assert not [name for name in service.files() if instant in name]
    assert service.harness.timeline().get(instant) is None


@pytest.mark.parametrize(
    "point", [StopPoint.SCHEDULE_PLANNED, StopPoint.SCHEDULE_CLAIMED, StopPoint.SCHEDULE_REQUESTED]
)
def test_wherever_a_scheduler_dies_the_next_one_goes_on(service: ClusteringHarness, at: Any, point: StopPoint) -> None:
    with pytest.raises(Killed):
        service.clustering(trace=at(point, kill)).schedule()
    service.harness.clock.advance(DEAD_S)
    clustering = service.clustering()
    service.harness.open().begin("commit", "UPSERT").abort("only looked")
    planned = clustering.list_pending(service.harness.timeline())
    assert len(planned) == (0 if point is StopPoint.SCHEDULE_PLANNED else 1)
    if not planned:
        clustering.schedule()
    assert service.run(clustering).is_committed  # type: ignore[union-attr]
    assert len(service.groups()) == len({name for name in service.files() if "-0-0_" in name}) - 3 == 1


def test_clustering_yields_to_writers_where_they_are_preferred(service: ClusteringHarness) -> None:
    prefer: Any = {"hoodie__write__lock__conflict__resolution__strategy": "prefer_writer"}
    clustering = service.clustering(**prefer)
    clustering.schedule()
    taken = clustering.take()
    assert taken is not None
    tx = service.harness.open(**prefer).begin("commit", "UPSERT")
    assert tx.publish(service.write(tx, "a-0")).is_committed
    conflict = service.finish(*taken).conflict
    assert conflict is not None
    assert (conflict.other, service.groups()) == (tx.instant, ["a-0", "b-0", "c-0"])


RUNNING = [
    StopPoint.RESUME_HEARTBEAT,
    StopPoint.RESUME_INFLIGHT,
    StopPoint.PUBLISH_LOCKED,
    StopPoint.PUBLISH_PREPARED,
    StopPoint.PUBLISH_CLAIMED,
    StopPoint.PUBLISH_COMPLETED,
    StopPoint.PUBLISH_CLEANED,
]


@pytest.mark.parametrize("point", RUNNING)
def test_wherever_a_run_dies_the_next_one_finishes_it_or_begins_anew(
    service: ClusteringHarness, at: Any, point: StopPoint
) -> None:
    service.clustering().schedule()
    mortal = Mortal(service.harness, at, point)
    dying = service.clustering()
    object.__setattr__(dying, "transactions", mortal.transactions)
    with pytest.raises(Killed):
        service.run(dying)
    assert service.run(service.clustering()) is None  # it may be alive, or is done
    service.harness.clock.advance(DEAD_S)
    again = service.run(service.clustering())
    is_decided = point in RUNNING[4:]
    assert (again is None) is is_decided
    [group] = service.groups()
    assert [name for name in service.files() if not name.startswith(("a-0", "b-0", "c-0"))] == [
        f"{group}_0-0-0_{group.removesuffix('-0')}.parquet"
    ]
    assert service.harness.timeline().pending() == ()
    tx = service.harness.open().begin("commit", "UPSERT")
    assert tx.publish(service.write(tx, group)).is_committed


def test_what_a_living_process_runs_is_left_to_it(service: ClusteringHarness) -> None:
    clustering = service.clustering()
    instant = str(clustering.schedule())
    taken = clustering.take()
    assert taken is not None
    other = service.clustering()
    assert other.take() is None
    with pytest.raises(WriteAborted, match="is under way in another process"):
        other.take(instant)
    with pytest.raises(WriteAborted, match="is under way, or its process has died"):
        service.harness.open().resume(instant)
    assert service.finish(*taken).is_committed


def test_two_processes_that_begin_one_plan_at_once_run_it_once(service: ClusteringHarness, at: Any) -> None:
    instant = str(service.clustering().schedule())
    refused: list[str] = []

    def begin_too() -> None:
        with pytest.raises(WriteAborted, match="is being begun by another process") as caught:
            service.harness.open().resume(instant)
        refused.append(str(caught.value))

    clustering = service.clustering(trace=at(StopPoint.RESUME_HEARTBEAT, begin_too))
    assert service.run(clustering).is_committed  # type: ignore[union-attr]
    assert len(refused) == 1


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_plan_is_taken_back_with_every_file_even_from_a_living_process(
    service: ClusteringHarness, is_begun: bool
) -> None:
    clustering = service.clustering()
    instant = str(clustering.schedule())
    taken = clustering.take() if is_begun else None
    if taken is not None:
        service.write(taken[0], "half-0")
    assert service.clustering().abort(instant) is Outcome.ABORTED
    assert not [name for name in service.files() if instant in name]
    if taken is not None:
        assert service.finish(*taken).outcome is Outcome.ABORTED
    assert service.groups() == ["a-0", "b-0", "c-0"]


def test_what_is_done_cannot_be_taken_back(service: ClusteringHarness) -> None:
    clustering = service.clustering()
    instant = str(clustering.schedule())
    service.run(clustering)
    assert clustering.abort(instant) is Outcome.COMMITTED
    assert service.groups() == [f"{instant}-0"]


def test_a_plan_whose_inputs_changed_since_its_process_died_is_made_without_them(service: ClusteringHarness) -> None:
    options = {"hoodie.clustering.plan.strategy.max.bytes.per.group": 8}
    service.commit("d-0")
    clustering = service.clustering(options=options)
    clustering.schedule()
    taken = clustering.take()
    assert taken is not None
    taken[0]._state.heartbeat.pause()
    service.harness.clock.advance(DEAD_S)
    service.harness.foreign_commit("20231114231325000", "20231114231325100", "a-0")
    assert service.run(service.clustering()).is_committed  # type: ignore[union-attr]
    assert service.groups()[1:] == ["a-0", "b-0"]


def put_foreign_plan(service: ClusteringHarness, clustering_plan: Any) -> None:
    clustering = Instant(THEIRS, "clustering", State.REQUESTED)
    service.harness.storage.replace(LAYOUT_2.path(clustering), clustering_plan(("p", "a-0")))


def test_a_plan_of_the_jvm_is_respected_and_left_to_it(service: ClusteringHarness, clustering_plan: Any) -> None:
    service.harness.foreign = True
    put_foreign_plan(service, clustering_plan)
    clustering = service.clustering()
    clustering.schedule()
    [theirs, ours] = clustering.list_pending(service.harness.timeline())
    assert (theirs.is_ours, ours.is_ours) == (False, True)
    assert ours.plan.file_groups == {("p", "b-0"), ("p", "c-0")}
    for refused in (clustering.take, clustering.abort):
        with pytest.raises(WriteAborted, match="planned by a JVM writer"):
            refused(THEIRS)
    assert service.run(clustering).is_committed  # type: ignore[union-attr]
    assert service.run(clustering) is None


def test_a_jvm_writer_that_took_the_plan_over_is_not_published_for(service: ClusteringHarness) -> None:
    """It rolls our attempt back and runs the plan itself, under the same time."""
    service.harness.foreign = True
    clustering = service.clustering()
    instant = str(clustering.schedule())
    taken = clustering.take()
    assert taken is not None
    service.harness.storage.replace(LAYOUT_2.path(Instant(instant, "clustering", State.INFLIGHT)), b"")
    result = service.finish(*taken)
    assert (result.outcome, result.reason) == (Outcome.ABORTED, "another process runs the same plan")


def test_a_write_sees_that_a_jvm_writer_ran_a_plan_of_ours(service: ClusteringHarness) -> None:
    service.harness.foreign = True
    instant = str(service.clustering().schedule())
    tx = service.harness.open().begin("commit", "UPSERT")
    metadata = service.write(tx, "a-0")
    pending = Instant(instant, "clustering", State.INFLIGHT)
    service.harness.storage.replace(LAYOUT_2.path(pending), b"")
    done = service.write(service.harness.open().begin("commit", "INSERT"), "theirs-0")
    replacing = type(done)(done.partition_to_write_stats, "CLUSTER", done.extra, {"p": ("a-0", "b-0", "c-0")})
    path = LAYOUT_2.path(pending.as_completed("20231114221321000"))
    service.harness.storage.replace(path, replacing.encode("replacecommit", layout_version=2))
    conflict = tx.publish(metadata).conflict
    assert conflict is not None
    assert (conflict.other, conflict.other_action, conflict.file_id) == (instant, "replacecommit", "a-0")


def test_a_restore_that_is_pending_keeps_clustering_out(service: ClusteringHarness) -> None:
    service.harness.storage.replace(LAYOUT_2.path(Instant(THEIRS, "restore", State.REQUESTED)), b"")
    with pytest.raises(WriteAborted, match=f"restore {THEIRS} is pending"):
        service.clustering().schedule()


@pytest.mark.parametrize("step", ["schedule", "run"])
def test_no_step_of_clustering_looks_like_a_foreign_writer_to_an_unfinished_publish(
    service: ClusteringHarness, at: Any, step: str
) -> None:
    service.harness.foreign = True
    clustering = service.clustering()
    if step == "run":
        clustering.schedule()
    tx = service.harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "INSERT")
    with pytest.raises(Killed):
        tx.publish(service.write(tx, "new-0"))
    if step == "schedule":
        clustering.schedule()
    assert service.run(clustering).is_committed  # type: ignore[union-attr]
    assert "new-0" in service.groups()
    assert ClaimKind.VOID not in [claim.kind for claim in service.harness.claims()]


def test_a_clustering_that_is_planned_and_run_during_a_publish_is_no_intruder(
    service: ClusteringHarness, at: Any
) -> None:
    service.harness.foreign = True
    clustering = service.clustering()

    def cluster() -> None:
        clustering.schedule()
        assert service.run(clustering).is_committed  # type: ignore[union-attr]

    tx = service.harness.open(trace=at(StopPoint.PUBLISH_LOOKED_AGAIN, cluster)).begin("commit", "INSERT")
    result = tx.publish(service.write(tx, "new-0"))
    assert (result.outcome, result.warnings) == (Outcome.COMMITTED, ())
    assert service.harness.names(".hoodie/.hudi_locks/notices") == []
