"""What a metastore says in the middle of a sync; a real one is asked by the tests beside JVM Hudi."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hudi_locks_providers.hive_catalog import HiveCatalog
from thrift_files.libraries.thrift_hive_metastore_client.ttypes import InvalidObjectException, NoSuchObjectException

from hudi_locks.catalog import CatalogTable
from hudi_locks.config import Options
from hudi_locks.errors import BackendRefused

TABLE = CatalogTable("lake", "trips", "/data/trips", (), (), "an.InputFormat", {}, {})


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> HiveCatalog:
    """One whose metastore knows no database, table or partition."""
    made = HiveCatalog(Options({"hoodie.datasource.hive_sync.metastore.uris": "thrift://127.0.0.1:1"}))

    def call(method: str, *_: Any) -> Any:
        kind = InvalidObjectException if method == "create_table" else NoSuchObjectException
        raise made._calls._translate(method, kind("lake"))

    monkeypatch.setattr(made._calls, "call", call)
    return made


@pytest.mark.parametrize(
    "act",
    [
        lambda catalog: catalog.alter(TABLE, {}),
        lambda catalog: catalog.list_partitions(TABLE),
        lambda catalog: catalog.add_partitions(TABLE, {("a",): "/data/trips/a"}),
    ],
)
def test_a_table_that_is_dropped_meanwhile_is_named(catalog: HiveCatalog, act: Callable[[HiveCatalog], object]) -> None:
    with pytest.raises(BackendRefused, match=r"has no table lake\.trips any more: somebody dropped it meanwhile"):
        act(catalog)


def test_a_partition_that_is_gone_needs_no_drop(catalog: HiveCatalog) -> None:
    catalog.drop_partitions(TABLE, [("a",)])
    assert catalog.find("lake", "trips") is None


def test_a_database_that_is_missing_is_named(catalog: HiveCatalog) -> None:
    with pytest.raises(BackendRefused, match="there is no database lake: make it"):
        catalog.create(TABLE)
