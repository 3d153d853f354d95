"""Metrics have the names that JVM Hudi gives them, so that one dashboard shows both kinds of writers."""

from __future__ import annotations

import random
import socket
import urllib.request
from collections.abc import Callable
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import pytest
from other_readers import SCHEMA, THEIRS, Jvm

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


PORTS = range(20_000, 30_000)
"""None that a system gives to clients: whoever asks such a port again and again while nobody listens may come to be
connected with itself, and then nobody else can listen there."""


def find_port() -> int:
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def scrape(port: int) -> set[str]:
    """The names that are told at a port; none if nobody answers, or not to the end, as a JVM that is done."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except (OSError, HTTPException):
        return set()
    return {line.replace("{", " ").split()[0] for line in lines if not line.startswith("#")}


def told_by_jvm(jvm: Jvm, path: str, options: dict[str, str]) -> set[str]:
    """What the JVM tells while it writes; it answers nobody any more once it has."""
    port, told = find_port(), set[str]()
    asked = {**options, "hoodie.metrics.prometheus.port": str(port), "hoodie.metrics.lock.enable": "true"}
    writing = jvm.ask("write", path=path, rows=ROWS, schema=SCHEMA, options=asked, gate="")
    while True:
        told |= scrape(port)
        try:
            writing.result(0.01)
        except NotYet:
            continue
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
    assert {name for name in ours if not name.endswith(NOT_THEIRS)} <= theirs
