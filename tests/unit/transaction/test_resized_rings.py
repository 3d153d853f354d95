"""Rings that a clustering leaves: there once it is completed, for everybody, and never else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from clustering_harness import SCHEMA, ClusteringHarness
from transaction_harness import Killed, stop_at

from hudi_locks.errors import WriteAborted
from hudi_locks.format import ClusteringPlan, CommitMetadata, Instant, State
from hudi_locks.format.consistent_hashing import HashRing
from hudi_locks.services import Clustering, ClusteringSettings, TableServices
from hudi_locks.table import Table, TableConfig, create_partition_metadata
from hudi_locks.table.hash_rings import find_hash_ring, load_hash_rings
from hudi_locks.timeline import LAYOUT_1, LAYOUT_2, TimelineLayout
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER
from hudi_locks.transaction import Outcome, PublishResult, StopPoint, Transaction, Transactions, name_clustering

FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata/p"
OPTIONS: dict[str, object] = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": 2,
    "hoodie.bucket.index.max.num.buckets": 8,
    "hoodie.bucket.index.split.threshold": 0,
}
FIRST = HashRing.create("p", 2)
STEPS = [
    point
    for point in StopPoint
    if point.value.startswith(("resume:", "publish:"))
    and "metadata" not in point.value
    and point is not StopPoint.PUBLISH_UNLOCKED
]


class Rings(ClusteringHarness):
    """File groups that are nodes of a ring; a clustering splits them without Spark."""

    def resizing(self, transactions: Transactions | None = None, **changed: object) -> Clustering:
        """As a process of its own has it."""
        settings = ClusteringSettings.of({**OPTIONS, **changed}, table_properties={})
        return Clustering(self.table, transactions or self.harness.open(), settings)

    def split(self, clustering: Clustering, instant: str | None = None) -> PublishResult | None:
        taken = clustering.take(instant)
        return None if taken is None else self.divide(*taken)

    def divide(self, tx: Transaction, plan: ClusteringPlan) -> PublishResult:
        """A file for each new node."""
        ids = sorted(file_id for change in plan.ring_changes["p"] for file_id in change.file_ids)
        replaced = tuple(sorted(file_id for _, file_id in plan.file_groups))
        written = self.write(tx, *ids).stats
        return tx.publish(CommitMetadata.of(written, "CLUSTER", schema=SCHEMA, replaced_file_ids={"p": replaced}))

    def ring(self) -> HashRing:
        """What everybody goes by."""
        found = find_hash_ring(self.harness.storage, self.harness.timeline(), "p")
        assert found is not None
        return found

    def look(self) -> None:
        """Readers see the file groups that the ring names, and no others."""
        assert sorted(self.groups()) == sorted(self.ring().file_ids)

    def check(self) -> None:
        """The same, and nothing is left of what was undone."""
        self.look()
        timeline, names = self.harness.timeline(), self.harness.names(FOLDER)
        for time in {name.partition(".")[0] for name in names} - {"0" * 14}:
            assert timeline.is_completed(time), names


@pytest.fixture(params=[LAYOUT_2, LAYOUT_1], ids=["v8", "v6"])
def rings(harness: Any, request: pytest.FixtureRequest) -> Rings:
    layout: TimelineLayout = request.param
    harness.layout = layout
    found = new_rings(harness) if layout is LAYOUT_2 else old_rings(harness)
    load_hash_rings(harness.storage, harness.timeline(), ["p"], buckets=2)
    found.commit(*FIRST.file_ids)
    return found


def new_rings(harness: Any) -> Rings:
    return Rings(harness, ClusteringHarness.at(harness).table)


def old_rings(harness: Any) -> Rings:
    create_partition_metadata(harness.storage, "p", instant="0")
    return Rings(harness, Table(harness.storage, TableConfig("t", ("id",), ("part",), version=6)))


def expire_all(rings: Rings) -> None:
    for name in rings.harness.names(HEARTBEAT_FOLDER):
        rings.harness.storage.replace(f"{HEARTBEAT_FOLDER}/{name}", b"")
    rings.harness.clock.advance(3600)


def test_the_ring_changes_with_the_clustering(rings: Rings) -> None:
    planned = rings.resizing().schedule()
    assert rings.ring() == FIRST
    result = rings.split(rings.resizing(), planned)
    assert result is not None
    assert result.is_committed
    assert (len(rings.ring().values), rings.ring().number) == (4, 1)
    rings.check()
    assert rings.split(rings.resizing(), rings.resizing().schedule()) is not None
    assert (len(rings.ring().values), rings.ring().number) == (8, 2)
    rings.check()


@pytest.mark.parametrize("point", STEPS, ids=lambda point: point.value)
def test_wherever_a_clustering_dies_ring_and_files_agree(rings: Rings, point: StopPoint) -> None:
    planned = rings.resizing().schedule()
    dying = rings.resizing(rings.harness.open(trace=stop_at(point)))
    with suppress(Killed):
        rings.split(dying, planned)
    rings.look()
    expire_all(rings)
    outcome = rings.harness.open().resolve(str(planned))
    rings.check()
    assert (len(rings.ring().values) == 4) is (outcome is Outcome.COMMITTED)
    rings.commit(rings.ring().file_ids[0])
    rings.split(rings.resizing(), rings.resizing().schedule())
    rings.check()


@pytest.mark.parametrize("point", STEPS, ids=lambda point: point.value)
def test_one_that_sleeps_while_it_is_taken_back_leaves_no_ring(rings: Rings, point: StopPoint) -> None:
    planned = str(rings.resizing().schedule())
    outcomes = list[Outcome]()

    def take_back() -> None:
        outcomes.append(rings.harness.open().resolve(planned))

    try:
        rings.split(rings.resizing(rings.harness.open(trace=stop_at(point, take_back))), planned)
    except WriteAborted:
        assert outcomes == [Outcome.ABORTED]
    rings.check()
    if outcomes:
        assert (len(rings.ring().values) == 4) is (outcomes == [Outcome.COMMITTED])


def test_one_that_sleeps_before_it_makes_the_ring_removes_it(rings: Rings, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, storage = str(rings.resizing().schedule()), rings.harness.storage
    replace, outcomes = storage.replace, list[Outcome]()

    def replace_late(path: str, data: bytes) -> None:
        if path.endswith(".hashing_meta"):
            outcomes.append(rings.harness.open().resolve(planned))
        replace(path, data)

    monkeypatch.setattr(storage, "replace", replace_late)
    result = rings.split(rings.resizing(), planned)
    assert result is not None
    assert (result.outcome, outcomes) == (Outcome.ABORTED, [Outcome.ABORTED])
    rings.check()


def test_a_write_beside_it_meets_a_conflict(rings: Rings) -> None:
    taken = rings.resizing().take(rings.resizing().schedule())
    assert taken is not None
    met = rings.harness.open().begin("commit", "UPSERT")
    refused = met.publish(rings.write(met, FIRST.file_ids[0]))
    assert refused.conflict is not None
    assert refused.conflict.other == taken[0].instant
    assert rings.divide(*taken).is_committed
    rings.check()


@pytest.mark.parametrize("rings", [LAYOUT_2], indirect=True)
def test_a_restore_takes_the_ring_back_with_its_clustering(rings: Rings) -> None:
    kept = rings.harness.timeline().completed()[-1].requested
    assert rings.split(rings.resizing(), rings.resizing().schedule()) is not None
    load_hash_rings(rings.harness.storage, rings.harness.timeline(), ["p"], buckets=2)
    assert any(name.endswith(".commit") for name in rings.harness.names(FOLDER)), "it is marked"
    TableServices(rings.harness.open(), {}).restore(kept)
    assert rings.ring() == FIRST
    rings.check()


def test_one_plan_at_a_time_has_a_partition(rings: Rings) -> None:
    clustering, other = rings.resizing(), rings.resizing()
    plan = clustering.make_plan(rings.harness.timeline())
    assert plan is not None
    halves = [ClusteringPlan((group,)) for group in plan.groups]
    first = rings.harness.open().schedule_clustering(lambda _: halves[0])
    assert rings.harness.open().schedule_clustering(lambda _: halves[1]) is None, "of another bucket"
    assert other.make_plan(rings.harness.timeline()) is None
    assert rings.split(rings.resizing(), first) is not None
    rings.check()
    assert len(rings.ring().values) == 3
    assert other.schedule() is not None


def test_a_plan_of_an_older_ring_is_given_up(rings: Rings) -> None:
    plan = rings.resizing().make_plan(rings.harness.timeline())
    assert plan is not None
    stale, both = ClusteringPlan(plan.groups[:1]), list[str | None]()

    def schedule_other(point: StopPoint) -> None:
        """Between the plan of another process and its claim, a whole clustering of the other bucket."""
        if point is StopPoint.SCHEDULE_PLANNED and not both:
            both.append(None)
            both[0] = rings.harness.open().schedule_clustering(lambda _: ClusteringPlan(plan.groups[1:]))
            assert rings.split(rings.resizing(), both[0]) is not None

    assert rings.harness.open(trace=schedule_other).schedule_clustering(lambda _: stale) is None
    rings.check()
    assert (len(rings.ring().values), rings.ring().number) == (3, 1)


def test_a_ring_that_changed_behind_a_plan_is_not_overwritten(rings: Rings) -> None:
    taken = rings.resizing().take(rings.resizing().schedule())
    assert taken is not None
    storage = rings.harness.storage
    later = HashRing(FIRST.values, FIRST.file_ids, 7)  # as a JVM writer might leave one that knows of no claims
    storage.replace(f"{FOLDER}/00000000000000.hashing_meta", later.encode("p"))
    result = rings.divide(*taken)
    assert result.outcome is Outcome.ABORTED
    assert "planned from ring 0 of partition 'p', and ring 7 counts now" in result.reason
    rings.check()


class TestPlansOfTheJvm:
    """A plan that has no claim is run where it is named, as long as nobody wrote to its file groups."""

    @pytest.fixture
    def rings(self, harness: Any) -> Rings:
        harness.foreign = True
        found = new_rings(harness)
        load_hash_rings(harness.storage, harness.timeline(), ["p"], buckets=2)
        found.commit(*FIRST.file_ids)
        return found

    @pytest.fixture
    def planned(self, rings: Rings) -> str:
        plan = rings.resizing().make_plan(rings.harness.timeline())
        assert plan is not None
        harness = rings.harness
        time = harness.layout.time(harness.clock.wall_ms())
        harness.storage.replace(harness.layout.path(Instant(time, "clustering", State.REQUESTED)), plan.encode())
        harness.clock.advance(1)
        return str(time)

    def test_it_is_run(self, rings: Rings, planned: str) -> None:
        assert rings.split(rings.resizing()) is None, "unless it is named, it is theirs"
        result = rings.split(rings.resizing(), planned)
        assert result is not None
        assert result.is_committed
        rings.check()
        assert len(rings.ring().values) == 4

    def test_a_write_that_meets_it_is_told_what_works(self, rings: Rings, planned: str) -> None:
        met = rings.harness.open().begin("commit", "UPSERT")
        conflict = met.publish(rings.write(met, FIRST.file_ids[0])).conflict
        assert conflict is not None
        assert (conflict.other, conflict.other_writer) == (planned, "a JVM writer")
        assert "--abort" not in conflict.advice
        assert "let a JVM writer run it or roll it back" in conflict.advice
        assert f"hudi-locks cluster PATH --run {planned}" in conflict.advice
        with pytest.raises(WriteAborted, match="was planned by a JVM writer: let that run it, or roll it back there"):
            rings.resizing().abort(planned)

    def test_a_write_since_forbids_it(self, rings: Rings, planned: str) -> None:
        time = rings.harness.layout.time(rings.harness.clock.wall_ms())
        rings.harness.foreign_commit(time, f"{int(time) + 1}", FIRST.file_ids[0])
        with pytest.raises(WriteAborted, match=rf"file group {FIRST.file_ids[0]} .* was written since: let a JVM"):
            rings.split(rings.resizing(), planned)
        rings.check()

    def test_a_write_between_its_adoption_and_its_publish_takes_it_back(self, rings: Rings, planned: str) -> None:
        taken = rings.resizing().take(planned)
        assert taken is not None
        time = rings.harness.layout.time(rings.harness.clock.wall_ms())
        rings.harness.foreign_commit(time, f"{int(time) + 1}", FIRST.file_ids[0])
        result = rings.divide(*taken)
        assert result.conflict is not None
        assert result.conflict.other == time
        rings.check()
        assert rings.ring() == FIRST

    def test_one_that_is_under_way_is_left_alone(self, rings: Rings, planned: str) -> None:
        path = rings.harness.layout.path(Instant(planned, "clustering", State.INFLIGHT))
        rings.harness.storage.replace(path, b"")
        with pytest.raises(WriteAborted, match="is under way, or its process has died"):
            rings.split(rings.resizing(), planned)

    @pytest.mark.parametrize("point", [StopPoint.SCHEDULE_CLAIMED, *STEPS], ids=lambda point: point.value)
    def test_wherever_it_dies_ring_and_files_agree(self, rings: Rings, planned: str, point: StopPoint) -> None:
        with suppress(Killed):
            rings.split(rings.resizing(rings.harness.open(trace=stop_at(point))), planned)
        expire_all(rings)
        if point is StopPoint.SCHEDULE_CLAIMED:
            assert rings.split(rings.resizing(), planned) is not None
        else:
            rings.harness.open().resolve(planned)
        rings.check()


def write_to_what_was_adopted(rings: Rings) -> None:
    """A JVM writer's row of a bucket that its plan splits, from before the plan is adopted."""
    plan = rings.resizing().make_plan(rings.harness.timeline())
    assert plan is not None
    harness = rings.harness
    planned = harness.layout.time(harness.clock.wall_ms())
    requested = Instant(planned, name_clustering(harness.layout), State.REQUESTED)
    harness.storage.replace(harness.layout.path(requested), plan.encode())
    harness.clock.advance(1)
    time = harness.layout.time(harness.clock.wall_ms())
    harness.foreign_commit(time, f"{int(time) + 1}", FIRST.file_ids[0])
    harness.clock.advance(1)
    with pytest.raises(WriteAborted, match="was written since"):
        rings.split(rings.resizing(), planned)


DIES = partial(test_wherever_a_clustering_dies_ring_and_files_agree, point=StopPoint.PUBLISH_PREPARED)
SLEEPS = partial(test_one_that_sleeps_while_it_is_taken_back_leaves_no_ring, point=StopPoint.PUBLISH_PREPARED)
PLANNING = "hudi_locks.transaction.planning.ClusteringPlanning._bring_up_to_date"
BROKEN: dict[str, tuple[str, Any, Callable[[Rings], None]]] = {
    "no ring is made": (
        "hudi_locks.transaction.publish.keep_rings",
        lambda *_: None,
        test_the_ring_changes_with_the_clustering,
    ),
    "a ring stays": ("hudi_locks.transaction.rollback.take_back_rings", lambda *_: None, DIES),
    "a ring stays behind a sleeper": ("hudi_locks.transaction.rollback.take_back_rings", lambda *_: None, SLEEPS),
    "a ring counts at once": ("hudi_locks.table.hash_rings._is_completed", lambda *_: True, DIES),
    "two plans have a partition": (PLANNING, lambda _, plan, *__: plan, test_one_plan_at_a_time_has_a_partition),
    "a plan is of an older ring": (PLANNING, lambda _, plan, *__: plan, test_a_plan_of_an_older_ring_is_given_up),
    "a plan is adopted unseen": (
        "hudi_locks.services.Clustering._find_changed",
        lambda *_: set(),
        write_to_what_was_adopted,
    ),
}


@pytest.mark.parametrize("rings", [LAYOUT_2], indirect=True)
@pytest.mark.parametrize("rule", BROKEN)
def test_a_rule_that_is_dropped_is_found(rings: Rings, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    target, broken, play = BROKEN[rule]
    monkeypatch.setattr(target, broken)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        play(rings)


def test_a_plan_that_is_adopted_is_compared_first(harness: Any) -> None:
    harness.foreign = True
    found = new_rings(harness)
    load_hash_rings(harness.storage, harness.timeline(), ["p"], buckets=2)
    found.commit(*FIRST.file_ids)
    write_to_what_was_adopted(found)
