"""Tasks that ask a timeline server for their markers, and what they do without it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from early_conflict_marks import EARLIER, NOW, marker

from hudi_locks import ManualClock
from hudi_locks.early_conflict import AsyncTimelineServerBased, DetectionContext, EarlyConflict, GuardedMarkers
from hudi_locks.errors import HoodieEarlyConflictDetectionException
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import FallbackMarkers, ServerFiles, read_markers
from hudi_locks.observe import TIMELINE_SERVER_REFUSED, TIMELINE_SERVER_REQUEST, Metrics, Timing
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.heartbeat import heartbeat_path
from hudi_locks.timeline_server.app import make_app
from hudi_locks.timeline_server.client import Endpoint, ServerMarkers, Unreachable
from hudi_locks.timeline_server.server import TimelineServer
from hudi_locks.timeline_server.service import Answer, MarkerService

FOLDER = f".hoodie/.temp/{NOW}"
GROUPS = [FileGroupId("p", "g-0"), FileGroupId("", "h-0")]
NAMES = [marker(NOW, group) for group in GROUPS]
TOKEN = "a-secret"


class Patience(ManualClock):
    """Passes while somebody sleeps, and tells for how long."""

    def __init__(self) -> None:
        super().__init__()
        self.slept_s: list[float] = []

    def sleep(self, duration_s: float) -> None:
        self.slept_s.append(duration_s)


class Scripted(MarkerService):
    """Does what a test says before it does its work."""

    refusals = 0
    failures = 0
    requests = 0
    conflict: EarlyConflict | None = None

    def is_busy(self, requested: str) -> bool:
        self.refusals -= 1
        return self.refusals >= 0

    async def create(self, requested: str, names: Any, *, detects: bool = True) -> Answer:
        self.requests += 1
        if self.requests <= self.failures:
            raise RuntimeError("a bug")
        return Answer(conflict=self.conflict) if self.conflict else await super().create(requested, names)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(ManualClock())


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def service(storage: MemoryStorage) -> Scripted:
    return Scripted(storage, files=20, interval_s=0.0)


@pytest.fixture
def server(storage: MemoryStorage, service: Scripted, metrics: Metrics) -> Iterator[TimelineServer]:
    def make(token: str) -> Any:
        return make_app(service, base_path=storage.base, token=token, metrics=metrics)

    with TimelineServer(make, token=TOKEN) as running:
        yield running


@pytest.fixture
def clock() -> Patience:
    return Patience()


@pytest.fixture
def endpoint(storage: MemoryStorage, server: TimelineServer, clock: Patience) -> Endpoint:
    return Endpoint(server.url, storage.base, TOKEN, clock=clock)


@pytest.fixture
def markers(storage: MemoryStorage, endpoint: Endpoint) -> ServerMarkers:
    return ServerMarkers(endpoint, NOW, fallback=FallbackMarkers(storage, NOW))


def found(storage: MemoryStorage) -> set[Any]:
    return set(read_markers(storage, NOW).names)


def test_one_request_makes_all_markers_of_a_task(
    storage: MemoryStorage, markers: ServerMarkers, metrics: Metrics
) -> None:
    assert markers.create_all(NAMES) == 0.0
    assert markers.create_all(NAMES) == 0.0
    assert found(storage) == set(NAMES)
    assert sorted(entry.name for entry in storage.list(FOLDER)) == ["MARKERS.type", "MARKERS0"]
    timing = metrics.snapshot()[TIMELINE_SERVER_REQUEST]
    assert isinstance(timing, Timing)
    assert timing.count == 2


def test_the_token_stays_hidden(endpoint: Endpoint) -> None:
    assert TOKEN not in repr(endpoint)
    assert pickle.loads(pickle.dumps(Endpoint(endpoint.url, "/t", TOKEN))).token == TOKEN


def test_a_conflict_is_raised_with_its_facts(service: Scripted, markers: ServerMarkers) -> None:
    service.conflict = EarlyConflict(NOW, GROUPS[0], EARLIER, "marker", "process 7 on there")
    with pytest.raises(HoodieEarlyConflictDetectionException, match="process 7 on there") as caught:
        markers.create_all(NAMES)
    assert (caught.value.partition, caught.value.file_id, caught.value.other) == (*GROUPS[0], EARLIER)


def test_a_server_that_does_not_keep_up_is_given_time(
    storage: MemoryStorage, service: Scripted, markers: ServerMarkers, clock: Patience, metrics: Metrics
) -> None:
    service.refusals = 5
    markers.create_all(NAMES)
    assert clock.slept_s == [1.0] * 5
    assert metrics.counter(TIMELINE_SERVER_REFUSED) == 5
    assert ServerFiles(storage, FOLDER).numbers() == [0]


def test_a_request_that_fails_is_repeated(
    storage: MemoryStorage, service: Scripted, markers: ServerMarkers, clock: Patience
) -> None:
    service.failures = 2
    markers.create_all(NAMES)
    assert clock.slept_s == [0.1, 0.5]
    assert ServerFiles(storage, FOLDER).numbers() == [0]


@pytest.mark.parametrize("how", ["closed", "failing", "token", "table", "address"])
def test_who_gets_no_answer_keeps_markers_in_a_file_of_its_own(
    storage: MemoryStorage, service: Scripted, server: TimelineServer, endpoint: Endpoint, clock: Patience, how: str
) -> None:
    given = {"token": (endpoint.url, storage.base, "another"), "table": (endpoint.url, "/elsewhere", TOKEN)}
    asked = Endpoint(*given.get(how, (endpoint.url, storage.base, TOKEN)), clock=clock)
    if how == "address":
        asked = Endpoint("http://127.0.0.1:1", storage.base, TOKEN, clock=clock)
    markers = ServerMarkers(asked, NOW, fallback=FallbackMarkers(storage, NOW))
    service.failures = 99 if how == "failing" else 0
    if how == "closed":
        ServerMarkers(endpoint, NOW, fallback=FallbackMarkers(storage, NOW)).create_all(NAMES[:1])
        server.close()
    with pytest.raises(Unreachable):
        asked.create_all(NOW, [str(NAMES[0])], detects=False)
    markers.create_all(NAMES[:1])
    markers.create_all(NAMES[1:])
    assert found(storage) == set(NAMES)
    assert ServerFiles(storage, FOLDER).is_used()
    assert [entry.name for entry in storage.list(FOLDER) if not entry.name.startswith("MARKERS")] == []
    assert max(ServerFiles(storage, FOLDER).numbers()) >= 1000


def test_who_has_lost_the_server_looks_for_conflicts_itself(storage: MemoryStorage, clock: Patience) -> None:
    storage.create_if_absent(heartbeat_path(EARLIER), b"")
    ServerFiles(storage, f".hoodie/.temp/{EARLIER}").write(0, [str(marker(EARLIER, GROUPS[0]))])
    fallback = GuardedMarkers(
        FallbackMarkers(storage, NOW), DetectionContext(storage, LAYOUT_2, NOW), AsyncTimelineServerBased
    )
    markers = ServerMarkers(Endpoint("http://127.0.0.1:1", storage.base, clock=clock), NOW, fallback=fallback)
    markers.create_all(NAMES[1:])
    with pytest.raises(HoodieEarlyConflictDetectionException, match=EARLIER):
        markers.create_all(NAMES)
    assert found(storage) == set(NAMES[1:])


@pytest.mark.parametrize("text", ["<html>", "{}", '{"created": []}', '{"created": 7}', "[]"])
def test_what_is_no_answer_of_a_timeline_server_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    from hudi_locks.timeline_server import client

    answer: Callable[..., Any] = lambda *_: client._Reply(200, text.encode())  # noqa: E731
    monkeypatch.setattr(Endpoint, "_send", answer)
    endpoint = Endpoint("http://127.0.0.1:1", "/t")
    with pytest.raises(Unreachable):
        endpoint.create_all(NOW, ["p/f.marker.CREATE"], detects=True)
    with pytest.raises(Unreachable):
        endpoint.check(NOW)
