"""A short soak of a table on S3, and of one on HDFS, behind a link that fails; `python -m soak` has the long ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_locks_conformance.servers import Server, ServerUnavailable
from soak.plan import OPTIONS
from soak.readers import open_readers
from soak.running import SoakPlan
from soak.services import describe_service
from soak.soaking import render_outcome, soak
from soak.stores import run_store

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name", ["s3", pytest.param("hdfs", marks=pytest.mark.nightly)])
def test_killed_and_stopped_writers_behind_a_link_that_fails_leave_what_a_serial_replay_gives(
    tmp_path: Path, zookeeper: Server, name: str
) -> None:
    try:
        with run_store(name, tmp_path, seed=1) as store, open_readers(name, store, bundle="") as readers:
            lock = describe_service("zookeeper", zookeeper.options)
            options = {**OPTIONS, **lock.options, **store.options}
            plan = SoakPlan(store, tmp_path / "events.jsonl", options, lock.lease_s, 3, 8, seed=1, peace=(2, 3))
            outcome = soak(plan, readers, print)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    assert outcome.ok, render_outcome(outcome)
    assert outcome.course.kills
    assert outcome.course.stops
    assert outcome.course.link["outages"] + outcome.course.link["restarts of the service"]
