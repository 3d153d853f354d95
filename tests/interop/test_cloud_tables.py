"""Whole lives of tables on Azure and Google Cloud Storage, as their emulators are: written by our pipeline."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hudi_locks_conformance.servers import Server
from hudi_locks_providers._storage.credentials import azure_credentials
from other_readers import COLUMNS, ONE_CLOCK
from table_lives import SHORT_HISTORY, TYPES, live_a_life, race_writers

from hudi_locks.config import Options
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop
SERVICES = ("azurite", "fake_gcs")
OURS = {
    **ONE_CLOCK,
    **SHORT_HISTORY,
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "storage",
}


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def make(spark: Any, service: Server) -> Callable[..., HoodieTable]:
    def make_one(table_type: str) -> HoodieTable:
        base = f"{service.options['hoodie.base.path']}/{uuid.uuid4().hex}"
        names = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
        given = {**service.options, **OURS, **TYPES[table_type]}
        return HoodieTable.create(spark, base, table_type=table_type, options=given, **names)

    return make_one


@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_lives_its_life(make: Any, frame: Any, service: Server, table_type: str) -> None:
    table = make(table_type)
    expected = live_a_life(table, frame)
    if service.options["hoodie.base.path"].startswith("abfss:"):
        assert read_rust(table.path, service.options) == expected


def read_rust(base: str, options: Any) -> list[tuple[Any, ...]]:
    """By hudi-rs; of Google Cloud Storage it takes no other address than Google's."""
    from hudi import HudiTableBuilder

    given = azure_credentials(Options(options))
    told = {
        "azure_storage_account_name": given["account_name"],
        "azure_storage_account_key": given["account_key"],
        "azure_storage_endpoint": given["endpoint"],
        "azure_allow_http": "true",
    }
    batches = HudiTableBuilder.from_base_uri(base).with_storage_options(told).build().read()
    rows = (row for batch in batches for row in pa.record_batch(batch).to_pylist())
    return sorted((tuple(row[name] for name in COLUMNS) for row in rows), key=repr)


def test_several_writers_lose_nothing(make: Any, frame: Any, spark: Any, service: Server) -> None:
    table = make("COPY_ON_WRITE")
    options = {**service.options, **OURS, **TYPES["COPY_ON_WRITE"]}
    race_writers(table, frame, lambda: HoodieTable.load(spark, table.path, options=options))
