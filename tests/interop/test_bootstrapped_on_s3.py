"""Tables in a bucket that JVM Hudi makes of Parquet files in the same bucket, or in another one: both write them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bootstrapped_tables import write_source
from hudi_locks_conformance.servers import Server, ServerUnavailable
from other_readers import DEADLINE_S, ONE_CLOCK, SCHEMA, Jvm, open_jvm_on_s3

from hudi_locks.errors import DamagedTable
from hudi_locks.spark import HoodieTable, read, write
from hudi_locks.storage import Storage, open_storage
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

WRITE = "hoodie.datasource.write."
KEYGEN = "org.apache.hudi.keygen.SimpleKeyGenerator"
SHARED = {
    **ONE_CLOCK,
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "region",
    WRITE + "precombine.field": "ts",
    WRITE + "hive_style_partitioning": "true",
    WRITE + "partitionpath.urlencode": "true",
}
ALONE = {
    **SHARED,
    "hoodie.write.concurrency.mode": "single_writer",
    "hoodie.clean.failed.writes.policy": "EAGER",
    "hoodie.metadata.index.column.stats.enable": "false",
}
"""Of the JVM, which never writes while another one does."""
SHOWN = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path", "id", "region", "ts", "value", "label")
Rows = list[tuple[Any, ...]]


def make_rows(first: int) -> pa.Table:
    numbers = range(first, first + 10)
    columns = {"id": [f"k{n:03}" for n in numbers], "ts": pa.array([1] * 10, pa.int64())}
    return pa.table({**columns, "value": [float(n) for n in numbers], "label": [f"source {n}" for n in numbers]})


@pytest.fixture(scope="module")
def jvm_on_s3(versitygw: Server) -> Iterator[Jvm]:
    try:
        jvm = open_jvm_on_s3(versitygw.options)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    yield jvm
    jvm.close()


def make_bucket(server: Server) -> str:
    """A bucket beside that of the server, to which the same keys lead."""
    from hudi_locks_providers._s3.client import open_client
    from hudi_locks_providers._storage.location import parse_location

    address = f"s3a://sources-{uuid.uuid4().hex[:12]}/data"
    location = parse_location(address)
    open_client(open_storage(address, server.options).options, location).api.create_bucket(Bucket=location.bucket)  # type: ignore[attr-defined]
    return address


class Bench:
    """A bootstrapped table, its source, and writers of both kinds."""

    def __init__(self, spark: Any, jvm: Jvm, server: Server, source: str, table_type: str) -> None:
        self.spark, self.jvm, self.server = spark, jvm, server
        self.source: Storage = open_storage(source, server.options)
        self.path = f"{server.options['hoodie.base.path']}/{uuid.uuid4().hex}".replace("s3://", "s3a://")
        self.kind = {WRITE + "table.type": table_type, "hoodie.write.table.version": "9"}

    def upload(self, folder: Path) -> None:
        files = {f"region={name}": [make_rows(100 * n), make_rows(100 * n + 50)] for n, name in enumerate(("x", "a b"))}
        write_source(folder, files)
        (folder / "region=a b").rename(folder / "region=a%3Ab")
        for file in folder.rglob("*.parquet"):
            self.source.replace(str(file.relative_to(folder)), file.read_bytes())

    def bootstrap(self) -> None:
        named = {"hoodie.bootstrap.base.path": self.source.base, "hoodie.bootstrap.keygen.class": KEYGEN}
        given = {**ALONE, **self.kind, **named, WRITE + "keygenerator.class": KEYGEN}
        self.jvm.ask("bootstrap", path=self.path, options=given).result(DEADLINE_S)

    @property
    def options(self) -> Mapping[str, Any]:
        return {**self.server.options, **SHARED, **self.kind, "hoodie.write.lock.provider": "storage"}

    def ours(self, *rows: tuple[Any, ...]) -> None:
        write(self.spark.createDataFrame(list(rows), SCHEMA).coalesce(1), self.path, self.options, mode="append")

    def theirs(self, *rows: tuple[Any, ...]) -> None:
        given, listed = {**ALONE, **self.kind, WRITE + "operation": "upsert"}, [list(row) for row in rows]
        self.jvm.ask("write", path=self.path, rows=listed, schema=SCHEMA, options=given, gate="").result(DEADLINE_S)

    def load(self) -> HoodieTable:
        return HoodieTable.load(self.spark, self.path, options=self.options)

    def digest(self) -> dict[str, str]:
        return {path: hashlib.md5(self.source.read(path) or b"").hexdigest() for path, _ in self.source.walk("")}

    def read(self) -> Rows:
        """The rows, after both agreed on them and the table was found sound."""
        asked = {"path": self.path, "columns": list(SHOWN), "options": {}}
        theirs = sorted((tuple(row) for row in self.jvm.ask("read", **asked).result(DEADLINE_S)), key=repr)
        found = read(self.spark, self.path, self.server.options).select(*SHOWN)
        assert sorted(map(tuple, found.collect()), key=repr) == theirs
        assert verify_table(self.load().table.storage, reads_values=True).damages == ()
        return theirs


@pytest.fixture
def make(spark: Any, jvm_on_s3: Jvm, versitygw: Server, tmp_path: Path) -> Callable[[str, str], Bench]:
    def bootstrap(where: str, table_type: str) -> Bench:
        own = f"{versitygw.options['hoodie.base.path']}/{uuid.uuid4().hex}".replace("s3://", "s3a://")
        bench = Bench(spark, jvm_on_s3, versitygw, own if where == "same" else make_bucket(versitygw), table_type)
        bench.upload(tmp_path / "source")
        bench.bootstrap()
        return bench

    return bootstrap


def count(rows: Rows) -> tuple[int, float]:
    return len(rows), sum(row[6] for row in rows)


@pytest.mark.parametrize(("where", "table_type"), [("same", "COPY_ON_WRITE"), ("another", "MERGE_ON_READ")])
def test_both_write_in_turns_and_the_source_stays_as_it_is(
    make: Callable[[str, str], Bench], where: str, table_type: str
) -> None:
    bench = make(where, table_type)
    before = bench.digest()
    assert len(before) == 4
    assert count(bench.read()) == (40, 3180.0)
    bench.ours(("k000", "x", 2, 1.0, "ours"), ("k100", "a:b", 2, 0.0, "ours"), ("n1", "x", 2, 5.0, "ours"))
    assert count(bench.read()) == (41, 3086.0)
    bench.theirs(("k001", "x", 3, 2.0, "theirs"), ("k150", "a:b", 3, 0.0, "theirs"))
    assert count(bench.read()) == (41, 2937.0)
    if table_type == "MERGE_ON_READ":
        bench.load().compaction.schedule()
        assert bench.load().compaction.run() is not None
    else:
        assert bench.load().clustering.run() is not None
    assert count(bench.read()) == (41, 2937.0)
    bench.theirs(("k002", "x", 4, 0.0, "theirs"))
    bench.ours(("k003", "x", 5, 0.0, "ours"))
    assert count(bench.read()) == (41, 2932.0)
    assert bench.digest() == before


def test_a_source_that_is_gone_is_named(make: Callable[[str, str], Bench]) -> None:
    bench = make("same", "COPY_ON_WRITE")
    lost = next(path for path in bench.digest() if path.startswith("region=x/"))
    assert bench.source.delete(lost)
    with pytest.raises(DamagedTable, match=f"{lost} is gone"):
        read(bench.spark, bench.path, bench.server.options)
