"""How often an upsert asks each kind of store, counted at a proxy before the service: docs/benchmarks.md tells it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from cloud_proxy import CloudProxy
from hdfs_proxy import HdfsProxy
from http_proxy import HttpProxy
from hudi_locks_conformance.servers import LocalServer
from other_readers import SCHEMA
from s3_proxy import S3Proxy

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop
ALONE = {
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "in_process",
    "hudi_locks.foreign_writers": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.client.heartbeat.interval_in_ms": "3600000",
    "hoodie.index.type": "SIMPLE",
}
SORTS = ("metadata", "partitions", "written", "read")
LISTINGS = ("ListObjectsV2", "LIST", "LISTSTATUS")
READS = ("GetObject", "HeadObject", "GET", "HEAD", "OPEN", "OPEN at a data node", "GETFILESTATUS")
REMOVAL = "POST"
STAGED = "/.hudi_locks/staging/"
STAGED_TOO = "/completed"
"""Within such a folder, a file of the timeline."""
ROOT = "hoodie.base.path"


class Store(NamedTuple):
    """A kind of service.

    Attributes:
        name: What documents call it.
        make_proxy: Puts a proxy before its address.
    """

    name: str
    make_proxy: Callable[[str], HttpProxy]


STORES = {
    "versitygw": Store("S3", S3Proxy),
    "azurite": Store("Azure", lambda url: CloudProxy(url, "devstoreaccount1/locks")),
    "fake_gcs": Store("Google Cloud Storage", lambda url: CloudProxy(url, "locks")),
    "minidfs": Store("HDFS", HdfsProxy),
}


@pytest.fixture(params=STORES)
def counted(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, str], HttpProxy]]:
    """Name of the store, options of a new table there that is reached through the proxy, and the proxy."""
    store, server = STORES[request.param], request.getfixturevalue(request.param)
    assert isinstance(server, LocalServer)
    with closing(store.make_proxy(f"http://127.0.0.1:{server.port}")) as proxy:
        ports = f":{server.port}", f":{urlsplit(proxy.url).port}"
        options = {ROOT: f"webhdfs://127.0.0.1:{server.port}/tables", **server.options}
        options = {name: value.replace(*ports) for name, value in options.items()}
        yield store.name, {**options, ROOT: f"{options[ROOT]}/{uuid.uuid4().hex}"}, proxy


def sort_out(requests: list[tuple[str, str]], folder: str) -> dict[str, int]:
    """How many were for the table's metadata, for partitions' listings, and for data files."""
    found = dict.fromkeys(SORTS, 0)
    for kind, key in requests:
        found[sort_one(kind, key.rpartition(folder)[2])] += 1
    return found


def sort_one(kind: str, path: str) -> str:
    """Azure's removals, which do not say of what, count as of staged files: one of them is of the heartbeat."""
    if kind in LISTINGS:
        return "metadata" if path.startswith("/.hoodie") else "partitions"
    if kind == REMOVAL or STAGED in path:
        return "metadata" if STAGED_TOO in path else "written"
    if not path.endswith(".parquet"):
        return "metadata"
    return "read" if kind in READS else "written"


def read_figures(store: str, groups: int) -> dict[str, int]:
    """What the page of benchmarks says of an upsert into so many file groups."""
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    counts = r" \| (\d+)" * 5
    found = re.search(rf"^\| {store} \| {groups}{counts} \|$", page, re.MULTILINE)
    assert found, f"docs/benchmarks.md has no row for {groups} file groups on {store}"
    told = dict(zip(SORTS, map(int, found.groups()[:4]), strict=True))
    assert int(found[5]) == sum(told.values())
    return told


@pytest.mark.parametrize("groups", [pytest.param(2, marks=pytest.mark.nightly), 8])
def test_an_upsert_asks_no_more_often_than_the_page_says(
    spark: Any, counted: tuple[str, dict[str, str], HttpProxy], monkeypatch: Any, groups: int
) -> None:
    asked = count_upsert(spark, counted, monkeypatch, groups)
    assert asked == read_figures(counted[0], groups)


@pytest.mark.parametrize("counted", ["versitygw"], indirect=True)
@pytest.mark.parametrize("told", ["beside JVM writers", "beside JVM writers, with a metadata table"])
def test_a_metadata_table_costs_no_more_requests_than_the_page_says(
    spark: Any, counted: tuple[str, dict[str, str], HttpProxy], monkeypatch: Any, tmp_path: Path, told: str
) -> None:
    lock = {"hoodie.write.lock.provider": "filesystem", "hoodie.write.lock.filesystem.path": str(tmp_path)}
    kept = {**lock, "hudi_locks.foreign_writers": "true", "hoodie.metadata.enable": str(told.endswith("table")).lower()}
    asked = count_upsert(spark, counted, monkeypatch, 8, **kept)
    assert asked == read_figures(f"{counted[0]}, {told}", 8)


def count_upsert(
    spark: Any, counted: tuple[str, dict[str, str], HttpProxy], monkeypatch: Any, groups: int, **changes: str
) -> dict[str, int]:
    """The requests of the fourth upsert into a new table, sorted out."""
    monkeypatch.setattr("hudi_locks.transaction.known_timeline._LISTED_S", -1.0)  # as if each step took a second
    monkeypatch.setattr("hudi_locks.timeline.claims._SPACING_S", 0.0)
    monkeypatch.setattr("hudi_locks_providers._wire.service_time._FRESH_S", 3600.0)  # asked for before the count begins
    _, options, proxy = counted
    base, names = options[ROOT], {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
    table = HoodieTable.create(spark, base, options={**options, **ALONE, **changes}, **names)

    def upsert(ts: int) -> None:
        rows = [(f"{number:03}", f"r{number % groups}", ts, 1.0, "x") for number in range(40)]
        table.upsert(spark.createDataFrame(rows, SCHEMA).coalesce(1))

    for ts in range(1, 4):
        upsert(ts)
    proxy.requests.clear()
    upsert(4)
    return sort_out(proxy.requests, base.rpartition("/")[2])
