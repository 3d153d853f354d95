"""Whole lives of tables on HDFS: written by our pipeline and by JVM Hudi, read by Spark's own file system."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bucketed_tables import KEYS, THEIRS, TOGETHER, in_order, rows
from hudi_locks_conformance.servers import LocalServer, Server
from hudi_locks_conformance.servers.mini_dfs import find_rpc_port
from other_readers import DEADLINE_S, ONE_CLOCK, Jvm
from table_lives import SHORT_HISTORY, TYPES, collect, live_a_life, make_rows, merge, race_writers

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop
SHARED = {
    **ONE_CLOCK,
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


NAMED = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}


def by_hdfs(test: Any) -> Any:
    """A test of JVM Hudi, which takes no `webhdfs:` address; ours takes the same `hdfs:` one."""
    bundles = [
        pytest.param(("1.0.2", 8), marks=pytest.mark.nightly, id="1.0.2-v8"),
        pytest.param(("1.2.0", 9), id="1.2.0-v9"),
    ]
    marked = pytest.mark.parametrize("jvm", bundles, indirect=True)(test)
    return pytest.mark.parametrize("base", ["hdfs"], indirect=True)(marked)


@pytest.fixture(params=["webhdfs"])
def base(request: pytest.FixtureRequest, minidfs: Server) -> str:
    assert isinstance(minidfs, LocalServer)
    port = {"webhdfs": minidfs.port, "hdfs": find_rpc_port(minidfs)}[request.param]
    return f"{request.param}://127.0.0.1:{port}/tables/{uuid.uuid4().hex}"


NATIVE = {"hudi_locks.hdfs.client": "native"}
"""By Hadoop's own protocol, on the driver and on executors."""


@pytest.fixture
def make(spark: Any, base: str) -> Callable[..., HoodieTable]:
    def make_one(table_type: str, **options: str) -> HoodieTable:
        given = {**OURS, **TYPES[table_type], **{key.replace("__", "."): value for key, value in options.items()}}
        return HoodieTable.create(spark, base, table_type=table_type, options=given, **NAMED)

    return make_one


@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_lives_its_life(make: Any, frame: Any, table_type: str) -> None:
    live_a_life(make(table_type), frame)


@pytest.fixture
def native(make: Any) -> Callable[[str], HoodieTable]:
    return lambda table_type: make(table_type, **{key.replace(".", "__"): value for key, value in NATIVE.items()})


@pytest.mark.nightly
@pytest.mark.parametrize("base", ["hdfs"], indirect=True)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_lives_its_life_without_webhdfs(native: Any, frame: Any, table_type: str) -> None:
    assert live_a_life(native(table_type), frame)


@pytest.mark.parametrize("base", ["hdfs"], indirect=True)
def test_a_table_is_written_without_webhdfs(native: Any, frame: Any) -> None:
    table = native("MERGE_ON_READ")
    first, second = make_rows(range(20), 1, "first"), make_rows(range(10, 30), 2, "second")
    for batch in (first, second):
        table.upsert(frame(batch))
    assert collect(table.read()) == merge(first, second)
    assert verify_table(table.table.storage).damages == ()


def test_several_writers_lose_nothing(make: Any, frame: Any, spark: Any) -> None:
    table = make("COPY_ON_WRITE")
    options = {**OURS, **TYPES["COPY_ON_WRITE"]}
    race_writers(table, frame, lambda: HoodieTable.load(spark, table.path, options=options))


@pytest.fixture(params=["webhdfs", pytest.param("native", marks=pytest.mark.nightly)])
def hadoop(request: pytest.FixtureRequest, spark: Any, minidfs: Server) -> Iterator[str]:
    """What hdfs-site.xml tells Spark of HTTP, if anything; the scheme by which name nodes are asked then."""
    told = {"webhdfs": f"127.0.0.1:{minidfs.port}", "native": ""}
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set("dfs.namenode.http-address", told[request.param])
    yield {"webhdfs": "http", "native": "hdfs"}[request.param]
    settings.unset("dfs.namenode.http-address")


@by_hdfs
@pytest.mark.parametrize("table_type", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.nightly), "MERGE_ON_READ"])
def test_the_jvm_reads_and_writes_the_same_table(
    make: Any, frame: Any, hadoop: str, jvm: Jvm, base: str, table_type: str, zookeeper_lock: Any
) -> None:
    """In turns, and at once in partitions of their own."""
    ours, theirs = zookeeper_lock
    keyed = {key.replace(".", "__"): value for key, value in ours.items()}
    table = make(table_type, hoodie__write__table__version=str(jvm.table_version), **keyed)
    named = {key.replace(".", "__"): value for key, value in {**TYPES[table_type], **theirs}.items()}
    assert table.table.storage.addresses[0].startswith(f"{hadoop}://")
    expected = make_rows(range(40), 1, "ours")
    table.insert(frame(expected))
    assert jvm.read_path(base) == expected
    for change, label in ((range(10, 50), "jvm"), (range(5, 30), "ours")):
        changed = make_rows(change, 2, label)
        jvm.write(table, changed, **named) if label == "jvm" else table.upsert(frame(changed))
        expected = merge(expected, changed)
        assert collect(table.read()) == jvm.read_path(base) == expected
    even, odd = make_rows(range(0, 60, 2), 3, "jvm at once"), make_rows(range(1, 60, 2), 3, "ours at once")
    writing = jvm.begin_write(table, even, **named)
    table.upsert(frame(odd))
    writing.result(DEADLINE_S)
    assert collect(table.read()) == jvm.read_path(base) == merge(even, odd)
    assert verify_table(table.table.storage).damages == ()


@pytest.mark.nightly  # on a disk the same runs each time
@by_hdfs
def test_the_jvm_and_ours_write_the_same_file_groups_at_once(
    spark: Any, frame: Any, hadoop: str, jvm: Jvm, base: str, zookeeper_lock: Any
) -> None:
    """Neither blocks the other; of each key the newest row stays, whoever was first."""
    ours, theirs = zookeeper_lock
    options = {**OURS, **TOGETHER, **ours, "hoodie.write.table.version": str(jvm.table_version)}
    table = HoodieTable.create(spark, base, table_type="MERGE_ON_READ", options=options, **NAMED)
    assert table.table.storage.addresses[0].startswith(f"{hadoop}://")  # type: ignore[attr-defined]
    table.insert(frame(rows(KEYS, 1, "first")))
    named = {**THEIRS, **{key.replace(".", "__"): value for key, value in theirs.items()}}
    writing = jvm.begin_write(table, [*rows(KEYS[:6], 3, "jvm"), *rows(KEYS[6:], 2, "jvm")], **named)
    table.upsert(frame([*rows(KEYS[:6], 2, "ours"), *rows(KEYS[6:], 3, "ours")]))
    writing.result(DEADLINE_S)
    expected = in_order([*rows(KEYS[:6], 3, "jvm"), *rows(KEYS[6:], 3, "ours")])
    assert collect(table.read()) == jvm.read_path(base) == expected
    assert table.compaction.run() is not None
    assert collect(table.read()) == jvm.read_path(base) == expected
    assert verify_table(table.table.storage).damages == ()
