"""Short soaks: writers that are killed and stopped, and writers beside the JVM, against a serial replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import Server
from other_readers import read_rust
from soak.fleet import FleetPlan
from soak.judgement import Readers, read_ours
from soak.plan import OPTIONS
from soak.running import SoakPlan
from soak.services import LockService, describe_service, run_service
from soak.soaking import render_outcome, soak, soak_fleet
from soak.stores import on_disk
from soak.streams import StreamsPlan, render_streams, soak_streams

pytestmark = [pytest.mark.interop, pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])]


@pytest.fixture
def readers(jvm: Any) -> Readers:
    return {"this package": read_ours, "hudi-rs": read_rust, f"JVM {jvm.version}": jvm.read_path}


def expect_equal(tmp_path: Path, service: LockService, readers: Readers, jvm: Any) -> None:
    options = {**OPTIONS, **service.options}
    store, log = on_disk(str(tmp_path / "table")), tmp_path / "events.jsonl"
    plan = SoakPlan(store, log, options, lease_s=2.0, writers=4, commits=20, seed=jvm.table_version, risk=0.01)
    outcome = soak(plan, readers, print, version=jvm.table_version)
    assert outcome.ok, render_outcome(outcome)
    assert outcome.course.kills
    assert outcome.course.stops


@pytest.mark.nightly  # it waits for the end of leases of a minute; test_soak_stores plays the same on S3
def test_killed_and_stopped_writers_with_the_file_lock_leave_what_a_serial_replay_gives(
    tmp_path: Path, readers: Readers, jvm: Any
) -> None:
    with run_service("filesystem", str(tmp_path / "table")) as service:
        expect_equal(tmp_path, service, readers, jvm)


@pytest.mark.nightly  # test_soak_stores plays the same on S3
def test_killed_and_stopped_writers_with_zookeeper_leave_what_a_serial_replay_gives(
    tmp_path: Path, readers: Readers, jvm: Any, zookeeper: Server
) -> None:
    expect_equal(tmp_path, describe_service("zookeeper", zookeeper.options), readers, jvm)


def test_writers_of_both_kinds_under_one_zookeeper_lock_leave_what_a_serial_replay_gives(
    tmp_path: Path, readers: Readers, jvm: Any, zookeeper: Server
) -> None:
    service = describe_service("zookeeper", zookeeper.options)
    plan = FleetPlan(str(tmp_path / "table"), tmp_path / "events.jsonl", service, commits=3, seed=jvm.table_version)
    outcome = soak_fleet(plan, [jvm, jvm], readers, print)
    assert outcome.ok, render_outcome(outcome)


@pytest.mark.nightly  # test_streaming has restarts in every run, and the soak of streams plays more of these
def test_streams_that_are_killed_share_a_table_and_are_followed(tmp_path: Path, jvm: Any, zookeeper: Server) -> None:
    lock = describe_service("zookeeper", zookeeper.options).options
    plan = StreamsPlan(tmp_path, lock, streams=2, minutes=0.5, rate=10, calm_s=(12.0, 14.0))
    outcome = soak_streams(plan, {"hudi-rs": read_rust, f"JVM {jvm.version}": jvm.read_path}, print)
    assert not outcome.differences, render_streams(outcome)
    assert outcome.kills
    assert outcome.told["compacted"]
