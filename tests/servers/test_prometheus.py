"""A real Prometheus asks two writers for their metrics, and answers the queries of the dashboard."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import Launch, LocalProcess, find_free_port
from waiting import until

from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig

pytestmark = pytest.mark.servers
BOARD = Path(__file__).parents[2] / "docs" / "dashboards" / "hudi-writers.json"
COMMITS = 8
COUNTED = ("lock.acquire.attempts", "lock.acquire.success", "conflict_resolution.success.counter")
RARE = ("_failure", "_lost", "_miss", "early_conflict", "heartbeat_age", "Insert|Update")
"""In queries for these: a writer tells nothing of them that met none, never beat, or wrote no rows."""
CONFIG = """\
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: writers
    static_configs:
      - targets: [{}]
"""
WRITER = """\
import json, sys
from hudi_locks.format import CommitMetadata
from hudi_locks.services import TableWriter

options = {"hoodie.write.lock.provider": "filesystem", "hoodie.metrics.on": "true",
           "hoodie.metrics.reporter.type": "PROMETHEUS", "hoodie.metrics.prometheus.port": sys.argv[2],
           "hoodie.write.lock.wait_time_ms": "60000"}
with TableWriter.open(sys.argv[1], options) as writer:
    for _ in range(int(sys.argv[3])):
        transaction = writer.transactions.begin("commit", "UPSERT")
        assert transaction.publish(CommitMetadata.of((), "UPSERT", schema=None)).is_committed
    counted = writer.transactions.metrics.snapshot()
    print(json.dumps({name: value for name, value in counted.items() if isinstance(value, int)}), flush=True)
    sys.stdin.read()
"""


class Prometheus:
    """One that asks at these ports each second. A context manager.

    Args:
        folder: For its data.
        ports: Of those it asks, on loopback.
    """

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self._process = LocalProcess(folder)
        self._port = find_free_port()
        targets = ", ".join(f'"127.0.0.1:{port}"' for port in ports)
        (folder / "prometheus.yml").write_text(CONFIG.format(targets))
        listens = f"--web.listen-address=127.0.0.1:{self._port}"
        words = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", listens]
        self._process.start(Launch(words))

    def ask(self, path: str, **arguments: str) -> Any:
        """The data of its answer; nothing while it is not there yet."""
        address = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{arguments}: {refused.read().decode()}") from refused
        except OSError:
            return None

    def add_up(self, query: str) -> float:
        """The sum of a query over all that it asks."""
        found = self.ask("query", query=f"sum({query})")
        return float(found["result"][0]["value"][1]) if found and found["result"] else 0.0

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(open_storage(str(tmp_path / "trips")), TableConfig("trips", ("id",)))


@pytest.fixture
def ports() -> list[int]:
    return [find_free_port(), find_free_port()]


@pytest.fixture
def writers(table: Table, ports: list[int]) -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes at work on one table, which stay when they are done until their input ends."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with ExitStack() as stack:
        started = []
        for port in ports:
            command = [sys.executable, "-c", WRITER, table.storage.base, str(port), str(COMMITS)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            process = subprocess.Popen(command, env=environment, text=True, **pipes)  # type: ignore[call-overload]
            started.append(stack.enter_context(process))
        yield started


@pytest.fixture
def prometheus(tmp_path: Path, ports: list[int]) -> Iterator[Prometheus]:
    if not shutil.which("prometheus"):
        pytest.skip("needs Prometheus: sudo apt-get install -y prometheus")
    (tmp_path / "prometheus").mkdir()
    with Prometheus(tmp_path / "prometheus", ports) as server:
        yield server


def list_queries() -> list[str]:
    """Of the dashboard, as Grafana asks them of the table trips."""
    found = [target["expr"] for panel in json.loads(BOARD.read_text())["panels"] for target in panel["targets"]]
    return [query.replace("${table}", "trips").replace("$__rate_interval", "1m") for query in found]


def test_it_knows_what_two_writers_did_and_answers_the_dashboard(
    table: Table, writers: list[subprocess.Popen[str]], prometheus: Prometheus
) -> None:
    counted = [json.loads(writer.stdout.readline()) for writer in writers if writer.stdout]
    assert len(table.timeline().completed()) == 2 * COMMITS
    expected = {f"trips_{name.replace('.', '_')}": sum(one[name] for one in counted) for name in COUNTED}
    expected["trips_commit_timer_count"] = 2 * COMMITS
    assert until(lambda: {name: prometheus.add_up(name) for name in expected} == expected)
    told = {"match[]": '{__name__=~".+_lock_acquire_attempts"}'}
    assert prometheus.ask("label/__name__/values", **told) == ["trips_lock_acquire_attempts"]
    answers = {query: len(prometheus.ask("query", query=query)["result"]) for query in list_queries()}
    often = {query for query in answers if not any(name in query for name in RARE)}
    assert {"trips_lock_request_latency_longest", "trips_lock_acquire_duration_longest"} < often
    assert until(lambda: all(len(prometheus.ask("query", query=query)["result"]) == len(writers) for query in often))
