"""Metrics are handed on to Prometheus, a push gateway or standard output, under the names of JVM Hudi."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hudi_locks import ConfigError, ManualClock
from hudi_locks.config import Options, check_options, metrics_keys
from hudi_locks.observe import LOCK_ACQUIRE_ATTEMPTS, LOCK_ACQUIRE_DURATION, Metrics, start_reporting
from hudi_locks.services import TableWriter
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig

Sent = list[tuple[str, str, str]]
ON = {"hoodie.metrics.on": "true"}
TYPE, PORT = "hoodie.metrics.reporter.type", "hoodie.metrics.prometheus.port"
GATEWAY = {TYPE: "PROMETHEUS_PUSHGATEWAY", "hoodie.metrics.pushgateway.host": "127.0.0.1"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def gateway() -> Iterator[tuple[int, Sent]]:
    """Port of a server that keeps what it is sent: method, path, body."""
    sent: Sent = []

    class Handler(BaseHTTPRequestHandler):
        def take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            sent.append((self.command, self.path, body))
            self.send_response(202)
            self.end_headers()

        do_PUT = do_DELETE = take  # noqa: N815  # names of the library

        def log_message(self, *_: object) -> None:
            """In silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, sent
    server.shutdown()
    server.server_close()


def filled() -> Metrics:
    metrics = Metrics()
    metrics.count(LOCK_ACQUIRE_ATTEMPTS, 3)
    metrics.report(LOCK_ACQUIRE_DURATION, 0.5)
    metrics.report(LOCK_ACQUIRE_DURATION, 0.25)
    metrics.show("commit", {"totalRecordsWritten": 5})
    metrics.show("commit", {"totalRecordsWritten": 7})
    return metrics


def scrape(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if not line.startswith("#"))}


def start(clock: ManualClock, given: Mapping[str, object], *, name: str = "my-trips.x") -> Callable[[], None]:
    """Hand on what some locks left."""
    return start_reporting(filled(), check_options(Options({**ON, **given})), name=name, clock=clock)


def test_prometheus_is_answered_under_the_names_of_the_jvm(port: int, clock: ManualClock) -> None:
    stop = start(clock, {TYPE: "prometheus", PORT: port})
    assert scrape(port) == {
        "my_trips_x_lock_acquire_attempts": 3,
        "my_trips_x_lock_acquire_duration_count": 2,
        "my_trips_x_lock_acquire_duration_sum": 0.75,
        "my_trips_x_lock_acquire_duration_longest": 0.5,
        "my_trips_x_commit_totalRecordsWritten": 7,
    }
    stop()


def test_writers_of_a_table_are_summed_and_what_they_did_stays(port: int, clock: ManualClock) -> None:
    given = {TYPE: "PROMETHEUS", PORT: port}
    stops = [start(clock, given) for _ in range(2)]
    other = start(clock, given, name="9lives")
    assert scrape(port)["my_trips_x_lock_acquire_attempts"] == 6
    assert scrape(port)["_9lives_lock_acquire_attempts"] == 3
    for stop in (*stops, other):
        stop()
    start(clock, {**given, "hoodie.metrics.reporter.metricsname.prefix": "my-trips.x"}, name="other")()
    found = scrape(port)
    assert found["my_trips_x_lock_acquire_attempts"] == 9
    assert found["my_trips_x_commit_totalRecordsWritten"] == 7, "of the last commit, and no sum"
    assert found["my_trips_x_lock_acquire_duration_longest"] == 0.5


def test_a_port_that_another_process_has_is_refused_by_name(clock: ManualClock) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"hoodie.metrics.prometheus.port={port} cannot be .* another process"):
            start(clock, {TYPE: "PROMETHEUS", PORT: port})


def test_a_gateway_gets_them_now_and_then_and_at_the_end(gateway: tuple[int, Sent], clock: ManualClock) -> None:
    port, sent = gateway
    told = {
        "hoodie.metrics.pushgateway.port": port,
        "hoodie.metrics.pushgateway.job.name": "nightly",
        "hoodie.metrics.pushgateway.report.period.seconds": 60,
        "hoodie.metrics.pushgateway.random.job.name.suffix": False,
    }
    stop = start(clock, {**GATEWAY, **told})
    clock.advance(61)
    assert [line[:2] for line in sent] == [("PUT", "/metrics/job/nightly")]
    assert "my_trips_x_lock_acquire_attempts 3.0" in sent[0][2]
    stop()
    assert [line[0] for line in sent] == ["PUT", "PUT", "DELETE"]


def test_a_gateway_may_keep_them_under_a_name_of_their_own(gateway: tuple[int, Sent], clock: ManualClock) -> None:
    port, sent = gateway
    told = {"hoodie.metrics.pushgateway.port": port, "hoodie.metrics.pushgateway.delete.on.shutdown": False}
    for _ in range(2):
        start(clock, {**GATEWAY, **told})()
    assert [line[0] for line in sent] == ["PUT", "PUT"]
    assert len({line[1] for line in sent}) == 2
    assert all(line[1].startswith("/metrics/job/hudi-") for line in sent)


def test_a_gateway_that_is_away_is_said_and_stops_nothing(
    port: int, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hudi_locks"):
        start(clock, {**GATEWAY, "hoodie.metrics.pushgateway.port": port})()
    assert "metrics could not be handed on" in caplog.text


def test_the_console_shows_them(clock: ManualClock, capsys: pytest.CaptureFixture[str]) -> None:
    start(clock, {TYPE: "CONSOLE"})()
    assert capsys.readouterr().out == (
        "my_trips_x_commit_totalRecordsWritten 7\n"
        "my_trips_x_lock_acquire_attempts 3\nmy_trips_x_lock_acquire_duration 2 times, 0.750 s, the longest 0.500 s\n"
    )


def test_a_process_that_closes_nothing_shows_them_at_its_end() -> None:
    script = (
        "from hudi_locks.clock import SystemClock\nfrom hudi_locks.config import Options\n"
        "from hudi_locks.observe import Metrics, start_reporting\nmetrics = Metrics()\n"
        "options = Options({'hoodie.metrics.on': True, 'hoodie.metrics.reporter.type': 'CONSOLE'})\n"
        "start_reporting(metrics, options, name='t', clock=SystemClock())\nmetrics.count('lock.lost')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "t_lock_lost 1\n"


@pytest.mark.parametrize("given", [{}, {TYPE: "JMX"}, {TYPE: "DATADOG"}])
def test_a_reporter_that_is_not_offered_is_refused_with_the_way_out(given: dict[str, str], clock: ManualClock) -> None:
    with pytest.raises(ConfigError, match=r"use one of PROMETHEUS, .* or set hoodie.metrics.on to false"):
        start(clock, given)


def test_every_reporter_that_is_named_can_be_asked_for(clock: ManualClock, port: int) -> None:
    started = [
        start(clock, {TYPE: name, PORT: port, "hoodie.metrics.pushgateway.port": port})
        for name in metrics_keys.REPORTERS
    ]
    for stop in started:
        stop()
    assert len(started) == len(metrics_keys.REPORTERS) == 4


def test_a_writer_of_a_table_hands_on_its_own(tmp_path: Path, port: int) -> None:
    Table.create(LocalStorage(str(tmp_path)), TableConfig("t", ("id",)))
    given = {TYPE: "PROMETHEUS", PORT: port}
    locked = {"hoodie.write.lock.provider": "filesystem", "hoodie.metrics.lock.enable": "true"}
    with TableWriter.open(tmp_path, {**ON, **given, **locked}) as writer, writer.locks.lock():  # type: ignore[union-attr]
        assert scrape(port)["t_lock_acquire_success"] == 1
    assert scrape(port)["t_lock_release_success"] == 1


def test_nothing_is_imported_when_they_are_off() -> None:
    script = (
        "import sys\nfrom hudi_locks.clock import SystemClock\nfrom hudi_locks.config import Options\n"
        "from hudi_locks.observe import Metrics, start_reporting\n"
        "start_reporting(Metrics(), Options(), name='t', clock=SystemClock())()\n"
        "assert 'prometheus_client' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
