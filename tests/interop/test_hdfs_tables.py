"""Whole lives of tables on HDFS: written by our pipeline, read by Spark's own file system."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hudi_locks_conformance.servers import Server
from real_servers import run_server
from small_tables import archive_now
from table_lives import TYPES, collect, make_rows, merge

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop
SHARED = {
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
OURS = {**SHARED, "hoodie.write.lock.provider": "filesystem", "hoodie.fs.atomic_creation.support": "webhdfs"}


@pytest.fixture(scope="session")
def minidfs() -> Iterator[Server]:
    yield from run_server("minidfs")


@pytest.fixture
def base(minidfs: Server) -> str:
    return f"webhdfs://127.0.0.1:{minidfs.port}/tables/{uuid.uuid4().hex}"


@pytest.fixture
def make(spark: Any, base: str) -> Callable[..., HoodieTable]:
    def make_one(table_type: str, **options: str) -> HoodieTable:
        given = {**OURS, **TYPES[table_type], **{key.replace("__", "."): value for key, value in options.items()}}
        names = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
        return HoodieTable.create(spark, base, table_type=table_type, options=given, **names)

    return make_one


@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_lives_its_life(make: Any, frame: Any, table_type: str) -> None:
    table = make(
        table_type, hoodie__keep__max__commits="4", hoodie__keep__min__commits="3", hoodie__clean__commits__retained="1"
    )
    first, second = make_rows(range(60), 1, "first"), make_rows(range(30, 90), 2, "second")
    table.insert(frame(first))
    begin = str(table.table.timeline().completed()[-1].completion)
    table.upsert(frame(second))
    table.delete(frame(make_rows(range(5), 3, "gone")))
    expected = [row for row in merge(first, second) if row[0] >= "005"]
    assert collect(table.read()) == expected
    assert collect(table.as_of(begin)) == sorted(first)
    assert collect(table.incremental(begin)) == sorted(second)
    served = table.compaction.run() if table_type == "MERGE_ON_READ" else table.clustering.run(sort_by=["id"])
    assert served is not None
    for turn in range(3, 7):
        third = make_rows(range(10, 20), turn, f"turn {turn}")
        table.upsert(frame(third))
        expected = merge(expected, third)
    assert table.services.clean().deleted
    assert archive_now(table) > 0
    table.services.sweep()
    assert collect(table.read()) == expected
    assert table.table.storage.list_staged() == set()
    assert verify_table(table.table.storage).damages == ()


def test_several_writers_lose_nothing(make: Any, frame: Any, spark: Any) -> None:
    table = make("COPY_ON_WRITE")
    table.insert(frame(make_rows(range(40), 0, "first")))
    turns, start = 3, threading.Barrier(2)

    def write(number: int) -> None:
        own = HoodieTable.load(spark, table.path, options={**OURS, **TYPES["COPY_ON_WRITE"]})
        start.wait()
        for turn in range(1, turns + 1):
            own.upsert(frame(make_rows(range(number, 40, 2), turn, f"writer {number}")))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    expected = merge(*(make_rows(range(number, 40, 2), turns, f"writer {number}") for number in range(2)))
    assert collect(table.read()) == expected
    assert verify_table(table.table.storage).damages == ()
