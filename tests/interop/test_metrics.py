"""Metrics have the names that JVM Hudi gives them, so that one dashboard shows both kinds of writers."""

from __future__ import annotations

import random
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from other_readers import DEADLINE_S, SCHEMA, THEIRS, Jvm

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

ROWS = [("a", "x", 1, 1.0, "first")]
KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
NOT_THEIRS = ("_sum", "_longest", "_lost", "_miss", "heartbeat_age_count")
LATER = {"t_clean_duration", "t_clean_numFilesDeleted", "t_index_lookup_duration", "t_index_timer_count"}
"""What the JVM tells only after its commit, when it cleans, or with other indexes than this table has."""

PORTS = range(20_000, 30_000)
"""None that a system gives to clients in between."""


def find_port() -> int:
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def scrape(port: int) -> set[str]:
    """The names that are told at a port."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return {line.replace("{", " ").split()[0] for line in lines if not line.startswith("#")}


class AtCommit(BaseHTTPRequestHandler):
    """What the JVM calls once it has counted a commit: it waits for the answer before it tells nobody any more."""

    told: set[str]
    port: int

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.told.update(scrape(self.port))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def listening(port: int, told: set[str]) -> Iterator[dict[str, str]]:
    """The options by which a JVM that tells its metrics at `port` calls at each commit."""
    handler = type("Handler", (AtCommit,), {"port": port, "told": told})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield {
                "hoodie.write.commit.callback.on": "true",
                "hoodie.write.commit.callback.http.url": f"http://127.0.0.1:{server.server_port}/",
                "hoodie.write.commit.callback.http.timeout.seconds": "60",
            }
        finally:
            server.shutdown()
            thread.join()


def told_by_jvm(jvm: Jvm, path: str, options: dict[str, str]) -> set[str]:
    """What the JVM tells at its commit; it answers nobody any more once it is done."""
    port, told = find_port(), set[str]()
    with listening(port, told) as calling:
        told_where = {"hoodie.metrics.prometheus.port": str(port), "hoodie.metrics.lock.enable": "true"}
        asked = {**options, **told_where, **calling}
        jvm.ask("write", path=path, rows=ROWS, schema=SCHEMA, options=asked, gate="").result(DEADLINE_S)
    return told


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
def test_metrics_are_called_as_the_jvm_calls_them(
    jvm: Jvm, spark: Any, create: Callable[..., HoodieTable], frame: Any
) -> None:
    table = create()
    table.upsert(frame(ROWS))
    port = find_port()
    shared = {**THEIRS, "hoodie.metrics.on": "true", "hoodie.metrics.reporter.type": "PROMETHEUS"}
    theirs = told_by_jvm(jvm, table.path, {**shared, **KEYS, "hoodie.table.name": "t"})
    options = {**shared, "hoodie.metrics.prometheus.port": port}
    with HoodieTable.load(spark, table.path, options=options) as writer:
        writer.upsert(frame(ROWS))
        ours = scrape(port)
    assert {"t_lock_acquire_attempts", "t_lock_request_latency_count", "t_conflict_resolution_timer_count"} <= ours
    assert {"t_commit_totalRecordsWritten", "t_commit_totalUpdateRecordsWritten", "t_commit_duration"} <= ours
    assert {name for name in ours if not name.endswith(NOT_THEIRS)} <= theirs | LATER
