"""Tables that both kinds of writer made, copied into a bucket: read there as on the disk."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hudi_locks_conformance.servers import Server
from other_readers import COLUMNS, Jvm
from real_servers import copy_table

from hudi_locks.spark import HoodieTable, session
from hudi_locks.storage import open_storage
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop
TYPES = {
    "COPY_ON_WRITE": {"hoodie.index.type": "SIMPLE"},
    "MERGE_ON_READ": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}
ROWS = [(f"{number:03}", f"r{number % 3}", 1, float(number), "first") for number in range(60)]


def copy_to(server: Server, table: HoodieTable) -> str:
    """Where the table's files are in the bucket then."""
    base = f"{server.options['hoodie.base.path']}/{uuid.uuid4().hex}"
    copy_table(table.table.storage, open_storage(base, server.options))
    return base


def read_ours(table: HoodieTable, **asked: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in table.read(**asked).select(*COLUMNS).collect()), key=repr)


def read_rust(base: str, options: Any) -> list[tuple[Any, ...]]:
    from hudi import HudiTableBuilder

    builder = HudiTableBuilder.from_base_uri(base)
    told = {
        "aws_endpoint": options["hudi_locks.storage.endpoint_url"],
        "aws_access_key_id": options["hoodie.aws.access.key"],
        "aws_secret_access_key": options["hoodie.aws.secret.key"],
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
    batches = builder.with_storage_options(told).build().read()
    rows = (row for batch in batches for row in pa.record_batch(batch).to_pylist())
    return sorted((tuple(row[name] for name in COLUMNS) for row in rows), key=repr)


@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_in_a_bucket_is_read_as_on_the_disk(
    spark: Any, jvm: Jvm, create: Callable[..., HoodieTable], frame: Any, versitygw: Server, table_type: str
) -> None:
    table = create(table_type=table_type, options=TYPES[table_type])
    table.insert(frame(ROWS))
    jvm.write(table, [(key, region, 2, -1.0, "jvm") for key, region, *_ in ROWS[::4]], **_name(TYPES[table_type]))
    table.upsert(frame([(key, region, 3, -2.0, "ours") for key, region, *_ in ROWS[::7]]))
    base = copy_to(versitygw, table)
    found = HoodieTable.load(spark, base, options=versitygw.options)
    expected = jvm.read(table)
    assert read_ours(found) == read_ours(table) == expected
    assert read_rust(base, versitygw.options) == expected
    assert read_ours(found, where="region = 'r1'") == [row for row in expected if row[1] == "r1"]
    assert verify_table(found.table.storage).damages == ()
    begin = str(table.table.timeline().completed()[0].completion)
    changes = [
        sorted(tuple(row) for row in one.incremental(begin).select(*COLUMNS).collect()) for one in (found, table)
    ]
    assert changes[0] == changes[1] != []
    before = sorted(tuple(row) for row in found.as_of(begin).select(*COLUMNS).collect())
    assert before == sorted(ROWS)


def _name(options: dict[str, str]) -> dict[str, str]:
    return {key.replace(".", "__"): value for key, value in options.items()}


def test_the_session_says_how_the_bucket_is_reached(
    spark: Any, create: Callable[..., HoodieTable], frame: Any, versitygw: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for Spark's own file system; so is the lock that lies beside the table."""
    table = create()
    table.insert(frame(ROWS))
    base = copy_to(versitygw, table)
    told = {
        "endpoint": versitygw.options["hudi_locks.storage.endpoint_url"].removeprefix("http://"),
        "connection.ssl.enabled": "false",
        "path.style.access": "true",
        "access.key": versitygw.options["hoodie.aws.access.key"],
        "secret.key": versitygw.options["hoodie.aws.secret.key"],
    }
    conf = {f"spark.hadoop.fs.s3a.{name}": value for name, value in told.items()}
    monkeypatch.setitem(session._configurations, spark.sparkContext, conf)
    found = HoodieTable.load(spark, base, options={"hoodie.write.lock.provider": "storage"})
    assert read_ours(found) == sorted(ROWS)
    found.upsert(frame([(*ROWS[0][:2], 2, 9.0, "on S3")]))
    assert read_ours(found) == sorted([(*ROWS[0][:2], 2, 9.0, "on S3"), *ROWS[1:]])
