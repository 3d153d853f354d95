"""Whole lives of tables on HDFS: written by our pipeline, read by Spark's own file system."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hudi_locks_conformance.servers import Server
from real_servers import run_server
from table_lives import SHORT_HISTORY, TYPES, live_a_life, race_writers

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop
SHARED = {
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
OURS = {
    **SHARED,
    **SHORT_HISTORY,
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.fs.atomic_creation.support": "webhdfs",
}


@pytest.fixture(scope="session")
def minidfs() -> Iterator[Server]:
    yield from run_server("minidfs")


@pytest.fixture
def base(minidfs: Server) -> str:
    return f"webhdfs://127.0.0.1:{minidfs.port}/tables/{uuid.uuid4().hex}"


@pytest.fixture
def make(spark: Any, base: str) -> Callable[..., HoodieTable]:
    def make_one(table_type: str) -> HoodieTable:
        given = {**OURS, **TYPES[table_type]}
        names = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
        return HoodieTable.create(spark, base, table_type=table_type, options=given, **names)

    return make_one


@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_lives_its_life(make: Any, frame: Any, table_type: str) -> None:
    live_a_life(make(table_type), frame)


def test_several_writers_lose_nothing(make: Any, frame: Any, spark: Any) -> None:
    table = make("COPY_ON_WRITE")
    options = {**OURS, **TYPES["COPY_ON_WRITE"]}
    race_writers(table, frame, lambda: HoodieTable.load(spark, table.path, options=options))
