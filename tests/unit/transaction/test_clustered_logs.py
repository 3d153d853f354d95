"""Clustering of file groups with logs: none is left behind, whenever it is published, and no two plans share any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from clustering_harness import LogClusteringHarness

from hudi_locks.transaction import Outcome, StopPoint

At = Callable[..., Any]
DEAD_S = 3600.0
PREFERRED = {"hoodie__write__lock__conflict__resolution__strategy": "prefer_writer"}


@pytest.fixture
def service(harness: Any) -> LogClusteringHarness:
    """A table with the file groups a and b, of which a has two logs, and c."""
    found = LogClusteringHarness.at(harness)
    found.make("a-0", "b-0", "c-0")
    found.append("a-0")
    found.append("a-0", "b-0")
    return found


def rows_of(service: LogClusteringHarness) -> list[str]:
    return sorted(row for rows in service.seen().values() for row in rows)


def planned(service: LogClusteringHarness) -> dict[str, int]:
    """How many logs of each file group the plan that waits has."""
    [pending] = service.clustering().list_pending(service.harness.timeline())
    return {piece.file_id: len(piece.log_paths) for group in pending.plan.groups for piece in group.slices}


def test_rows_of_logs_move_with_those_of_base_files_and_the_plan_names_the_newest_log_first(
    service: LogClusteringHarness,
) -> None:
    before, last = rows_of(service), service.harness.timeline().completed()[-1].requested
    clustering = service.clustering()
    instant = clustering.schedule()
    assert planned(service) == {"a-0": 2, "b-0": 1, "c-0": 0}
    [pending] = clustering.list_pending(service.harness.timeline())
    [logs] = [piece.log_paths for group in pending.plan.groups for piece in group.slices if piece.file_id == "a-0"]
    assert last in logs[0]
    assert service.cluster(clustering).is_committed  # type: ignore[union-attr]
    assert (list(service.seen()), rows_of(service)) == ([f"{instant}-0"], before)


@pytest.mark.parametrize("begins_first", [True, False])
def test_a_log_that_is_published_while_a_plan_waits_or_runs_meets_it(
    service: LogClusteringHarness, begins_first: bool
) -> None:
    before = rows_of(service)
    early = service.begin()
    clustering = service.clustering()
    instant = clustering.schedule()
    taken = clustering.take()
    assert taken is not None
    tx = early if begins_first else service.begin()
    result = tx.publish(service.log(tx, "a-0"))
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, instant)  # type: ignore[union-attr]
    assert service.join(*taken).is_committed
    assert rows_of(service) == before


def test_a_log_that_is_published_after_the_run_meets_what_was_replaced(service: LogClusteringHarness) -> None:
    before, early = rows_of(service), service.begin()
    clustering = service.clustering()
    instant = clustering.schedule()
    assert service.cluster(clustering).is_committed  # type: ignore[union-attr]
    result = early.publish(service.log(early, "a-0"))
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, instant)  # type: ignore[union-attr]
    assert rows_of(service) == before


@pytest.mark.parametrize("begins_first", [True, False])
def test_where_writers_are_preferred_a_log_stays_and_the_clustering_gives_way(
    service: LogClusteringHarness, begins_first: bool
) -> None:
    """Its plan does not have that log: published, it would hide it."""
    before = rows_of(service)
    early = service.begin(**PREFERRED) if begins_first else None
    clustering = service.clustering(**PREFERRED)
    clustering.schedule()
    taken = clustering.take()
    assert taken is not None
    tx = early or service.begin(**PREFERRED)
    assert tx.publish(service.log(tx, "a-0")).is_committed
    result = service.join(*taken)
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, tx.instant)  # type: ignore[union-attr]
    assert rows_of(service) == sorted([*before, tx.instant])
    assert service.harness.timeline().pending() == ()


def test_what_is_logged_while_the_plan_is_made_is_left_out_of_it(service: LogClusteringHarness, at: At) -> None:
    service.make("d-0")
    trace = at(StopPoint.SCHEDULE_PLANNED, lambda: service.append("a-0"))
    clustering = service.clustering(trace=trace)
    assert clustering.schedule() is None  # the one group of the plan has it
    assert clustering.schedule() is not None
    assert planned(service) == {"a-0": 3, "b-0": 1, "c-0": 0, "d-0": 0}


def test_compaction_and_clustering_leave_each_others_file_groups_alone(service: LogClusteringHarness) -> None:
    service.make("d-0")
    assert service.compaction().schedule() is not None
    clustering = service.clustering()
    assert clustering.schedule() is not None
    assert planned(service) == {"c-0": 0, "d-0": 0}
    assert service.run(service.compaction()).is_committed  # type: ignore[union-attr]
    service.append("a-0")
    assert service.compaction().schedule() is not None
    assert service.cluster(clustering).is_committed  # type: ignore[union-attr]
    service.run(service.compaction())
    assert clustering.schedule() is not None
    service.append("e-0")
    assert service.compaction().schedule() is not None
    [pending] = service.compaction().list_pending(service.harness.timeline())
    assert pending.plan.file_groups == {("p", "e-0")}


@pytest.mark.parametrize("compacts_first", [True, False])
def test_of_two_services_that_plan_at_once_one_takes_a_file_group(
    service: LogClusteringHarness, at: At, compacts_first: bool
) -> None:
    before = rows_of(service)
    if compacts_first:
        compaction = service.compaction(trace=at(StopPoint.SCHEDULE_PLANNED, service.clustering().schedule))
        assert compaction.schedule() is None
        assert planned(service) == {"a-0": 2, "b-0": 1, "c-0": 0}
    else:
        clustering = service.clustering(trace=at(StopPoint.SCHEDULE_PLANNED, service.compaction().schedule))
        assert clustering.schedule() is None
        [pending] = service.compaction().list_pending(service.harness.timeline())
        assert pending.plan.file_groups == {("p", "a-0"), ("p", "b-0")}
    service.cluster(service.clustering())
    service.run(service.compaction())
    assert rows_of(service) == before


def test_what_a_dead_process_began_is_planned_anew_without_what_was_logged_since(
    service: LogClusteringHarness,
) -> None:
    before = rows_of(service)
    service.clustering(**PREFERRED).schedule()
    taken = service.clustering(**PREFERRED).take()
    assert taken is not None
    taken[0]._state.heartbeat.pause()
    service.harness.clock.advance(DEAD_S)
    logged = service.append("a-0", **PREFERRED)
    clustering = service.clustering(**PREFERRED)
    assert service.cluster(clustering) is None
    assert rows_of(service) == sorted([*before, logged])
    clustering.schedule()
    assert planned(service) == {"a-0": 3, "b-0": 1, "c-0": 0}


def test_a_plan_that_is_taken_back_leaves_the_logs_as_they_are(service: LogClusteringHarness) -> None:
    before = service.seen()
    clustering = service.clustering()
    instant = str(clustering.schedule())
    assert clustering.abort(instant) is Outcome.ABORTED
    assert service.seen() == before
    logged = service.append("a-0")
    assert service.seen()["a-0"][-1] == logged
