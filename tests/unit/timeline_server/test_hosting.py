"""Which markers a write gets, by its options and by what answers."""

from __future__ import annotations

import logging
import socket
from typing import Any

import pytest
from early_conflict_marks import marker
from transaction_harness import Harness, HarnessClock, heartbeats_that_end, write_file

from hudi_locks.errors import HoodieEarlyConflictDetectionException
from hudi_locks.format import CommitMetadata, MarkerName
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import ServerFiles, read_markers
from hudi_locks.observe import EARLY_CONFLICT_CHECK, TIMELINE_SERVER_FALLBACK, Metrics
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline_server import MarkerHost, ServerSettings
from hudi_locks.timeline_server.server import TimelineServer

GROUP, OTHER = FileGroupId("p", "g-0"), FileGroupId("p", "h-0")
SERVER = {
    "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
    "hoodie.markers.timeline_server_based.batch.interval_ms": "1",
}
EARLY = {"hoodie.write.concurrency.early.conflict.detection.enable": "true", "hoodie.write.lock.provider": "in_process"}


class Job:
    """A write, and what makes its markers."""

    def __init__(self, harness: Harness, **options: Any) -> None:
        given = {name.replace(".", "__"): value for name, value in options.items()}
        self.metrics = Metrics()
        self.transaction = harness.open(**given).begin("commit", "UPSERT")
        self.host = MarkerHost(ServerSettings.of(options), self.metrics)
        self.folder = f".hoodie/.temp/{self.transaction.instant}"
        self.storage = harness.storage

    def name(self, group: FileGroupId = GROUP) -> MarkerName:
        return marker(self.transaction.instant, group)

    def entries(self) -> list[str]:
        return [path.removeprefix(f"{self.folder}/") for path, _ in self.storage.walk(self.folder)]


def test_direct_markers_unless_a_server_is_asked_for(harness: Harness) -> None:
    harness.foreign = True
    job = Job(harness)
    job.transaction.files.announce([job.name()])
    assert job.entries() == [str(job.name())]


def test_no_markers_where_nobody_reads_them(harness: Harness) -> None:
    job = Job(harness)
    job.transaction.files.announce([job.name()])
    assert job.entries() == []


def test_a_server_for_the_time_of_the_write(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[TimelineServer] = []
    start = TimelineServer.start

    def watch(server: TimelineServer) -> None:
        made.append(server)
        start(server)

    monkeypatch.setattr(TimelineServer, "start", watch)
    job = Job(harness, **SERVER)
    with job.host.open(job.transaction) as files:
        files.announce([job.name()])
        assert made[0].url.startswith("http://127.0.0.1:")
        assert len(made[0].token) > 30
    assert job.entries() == ["MARKERS.type", "MARKERS0"]
    assert not made[0]._thread.is_alive()
    assert job.metrics.counter(TIMELINE_SERVER_FALLBACK) == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"hoodie.embed.timeline.server": "false"}, "names no other"),
        (
            {
                "hoodie.embed.timeline.server": "false",
                "hoodie.filesystem.view.remote.host": "127.0.0.1",
                "hoodie.filesystem.view.remote.port": "1",
            },
            "Connection refused",
        ),
        ({"hudi_locks.timeline_server.host": "192.0.2.1"}, "cannot listen"),
    ],
)
def test_without_a_server_direct_markers_are_made_visibly(
    harness: Harness, caplog: pytest.LogCaptureFixture, options: dict[str, str], reason: str
) -> None:
    job = Job(harness, **SERVER, **EARLY, **options)
    with caplog.at_level(logging.WARNING), job.host.open(job.transaction) as files:
        files.announce([job.name()])
    assert job.entries() == [str(job.name())]
    assert job.metrics.counter(TIMELINE_SERVER_FALLBACK) == 1
    assert reason in caplog.text
    assert "SimpleDirectMarkerBased is used instead" in caplog.text


def test_the_server_listens_at_the_port_that_is_asked_for(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        job = Job(harness, **SERVER, **{"hoodie.embed.timeline.server.port": str(port)})
        with caplog.at_level(logging.WARNING), job.host.open(job.transaction):
            assert job.metrics.counter(TIMELINE_SERVER_FALLBACK) == 1
    assert f"cannot listen on 127.0.0.1:{port}" in caplog.text


@pytest.mark.parametrize("files", [1, 2])
def test_the_server_writes_as_many_files_as_asked(harness: Harness, files: int) -> None:
    job = Job(harness, **SERVER, **{"hoodie.markers.timeline_server_based.batch.num_threads": str(files)})
    with job.host.open(job.transaction) as made:
        for number in range(3):
            made.announce([job.name(FileGroupId("p", f"g{number}-0"))])
    assert job.entries() == ["MARKERS.type", *(f"MARKERS{number}" for number in range(files))]


def test_tasks_that_lost_the_server_are_counted(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    job = Job(harness, **SERVER)
    with caplog.at_level(logging.WARNING), job.host.open(job.transaction) as files:
        files.announce([job.name()])
        files.maker._endpoint.__dict__["url"] = "http://127.0.0.1:1"  # type: ignore[union-attr]
        files.announce([job.name(OTHER)])
    assert read_markers(job.storage, job.transaction.instant).names == {job.name(), job.name(OTHER)}
    assert len(ServerFiles(job.storage, job.folder).numbers()) == 2
    assert job.metrics.counter(TIMELINE_SERVER_FALLBACK) == 1
    assert "1 tasks of" in caplog.text


def test_a_stand_alone_server_is_asked_when_the_driver_runs_none(harness: Harness) -> None:
    job = Job(harness, **SERVER)
    with job.host.open(job.transaction) as files:
        endpoint = files.maker._endpoint  # type: ignore[union-attr]
        host, port = endpoint.url.removeprefix("http://").split(":")
        remote = {
            "hoodie.embed.timeline.server": "false",
            "hoodie.filesystem.view.remote.host": host,
            "hoodie.filesystem.view.remote.port": port,
            "hudi_locks.timeline_server.token": endpoint.token,
        }
        other = Job(harness, **SERVER, **remote)
        assert endpoint.token not in repr(other.host)
        with other.host.open(other.transaction) as theirs:
            theirs.announce([other.name(OTHER)])
    assert other.entries() == ["MARKERS.type", "MARKERS0"]


def test_an_overlapping_write_is_given_up_and_a_disjoint_one_is_not(harness: Harness) -> None:
    earlier, later = Job(harness, **SERVER, **EARLY), Job(harness, **SERVER, **EARLY)
    with earlier.host.open(earlier.transaction) as ours, later.host.open(later.transaction) as theirs:
        ours.announce([earlier.name(GROUP)])
        theirs.announce([later.name(OTHER)])
        assert later.transaction.find_early_conflict() is None
    third = Job(harness, **SERVER, **EARLY)
    with third.host.open(third.transaction) as files, pytest.raises(HoodieEarlyConflictDetectionException) as caught:
        files.announce([third.name(GROUP)])
    assert (caught.value.partition, caught.value.file_id, caught.value.other) == (*GROUP, earlier.transaction.instant)
    found = third.transaction.find_early_conflict()
    assert found is not None
    assert (found.other, found.is_early) == (earlier.transaction.instant, True)


def test_the_commit_removes_the_markers_of_a_server(harness: Harness) -> None:
    job = Job(harness, **SERVER)
    with job.host.open(job.transaction) as files:
        write_file(files, "p", job.name().data_file, b"x", io_type=job.name().io_type)
    assert job.transaction.publish(CommitMetadata.of((), "UPSERT", schema="{}")).is_committed
    assert harness.names("p") == []
    assert job.entries() == []


def test_a_rollback_removes_them_too(harness: Harness) -> None:
    job = Job(harness, **SERVER)
    with job.host.open(job.transaction) as files:
        write_file(files, "p", job.name().data_file, b"x", io_type=job.name().io_type)
    job.transaction.abort("a test")
    assert not harness.storage.exists(job.name().data_path)
    assert job.entries() == []


class Calls(MemoryStorage):
    """Counts every call."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.calls: list[tuple[str, str]] = []

    def list(self, folder: str) -> Any:
        self.calls.append(("list", folder))
        return super().list(folder)

    def read(self, path: str) -> Any:
        self.calls.append(("read", path))
        return super().read(path)

    def stat(self, path: str) -> Any:
        self.calls.append(("stat", path))
        return super().stat(path)


@pytest.mark.parametrize("kind", [{}, SERVER])
def test_without_the_flag_nothing_is_looked_at_for_early_detection(
    monkeypatch: pytest.MonkeyPatch, kind: dict[str, str]
) -> None:
    clock = HarnessClock()
    with heartbeats_that_end(monkeypatch):
        harness = Harness(clock, Calls(clock))
        beside, job = Job(harness), Job(harness, **kind)
        beside.transaction.files.announce([beside.name()])
        storage: Any = harness.storage
        storage.calls.clear()
        with job.host.open(job.transaction) as files:
            files.announce([job.name(OTHER)])
    others = [call for call in storage.calls if not call[1].startswith(job.folder)]
    assert others == []
    assert EARLY_CONFLICT_CHECK not in job.metrics.snapshot()
