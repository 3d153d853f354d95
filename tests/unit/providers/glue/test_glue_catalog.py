"""AWS Glue's data catalog, as far as moto plays it: no request goes to AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from hudi_locks_providers.glue_catalog import GlueCatalog
from moto import mock_aws

from hudi_locks.catalog import CatalogSync, describe_table
from hudi_locks.cli import main
from hudi_locks.config import Options
from hudi_locks.errors import BackendRefused, BackendUnavailable
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table

TOOL = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"
ASKED = {
    "hoodie.datasource.meta.sync.enable": "true",
    "hoodie.meta.sync.client.tool.class": TOOL,
    "hoodie.datasource.hive_sync.database": "lake",
    "hoodie.datasource.hive_sync.table": "trips",
    "hoodie.aws.glue.region": "eu-west-1",
    "hoodie.aws.access.key": "an-access-key",
    "hoodie.aws.secret.key": "a-secret-key",
}
Golden = Callable[[str], LocalStorage]


@pytest.fixture(autouse=True)
def glue() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("glue", region_name="eu-west-1")


@pytest.fixture
def table(golden: Golden) -> Table:
    return Table.load(golden("v9_cow"))


def sync(table: Table, **more: str) -> None:
    changed = {key.replace("__", "."): value for key, value in more.items()}
    for one in CatalogSync.of(Options({**ASKED, **changed}), table):
        one.run()


def partitions_of(glue: Any) -> dict[tuple[str, ...], str]:
    found = glue.get_partitions(DatabaseName="lake", TableName="trips")["Partitions"]
    return {tuple(one["Values"]): one["StorageDescriptor"]["Location"] for one in found}


def test_a_table_is_made_with_its_partitions_and_told_how_far_it_was_synced(table: Table, glue: Any) -> None:
    sync(table)
    found = glue.get_table(DatabaseName="lake", Name="trips")["Table"]
    assert found["TableType"] == "EXTERNAL_TABLE"
    store = found["StorageDescriptor"]
    assert store["Location"] == table.storage.base
    assert store["InputFormat"] == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert store["SerdeInfo"]["Parameters"]["path"] == table.storage.base
    assert [column["Name"] for column in found["PartitionKeys"]] == list(table.config.partition_fields)
    told = found["Parameters"]
    assert told["EXTERNAL"] == "TRUE"
    assert told["spark.sql.sources.provider"] == "hudi"
    assert told["hudi.metadata-listing-enabled"] == "FALSE"
    last = table.timeline().completed_between("")[-1]
    assert told["last_commit_completion_time_sync"] == last.completion
    places = partitions_of(glue)
    assert len(places) > 1
    assert all(place.startswith(f"{table.storage.base}/") for place in places.values())


def test_what_others_set_stays_and_columns_follow(table: Table, glue: Any) -> None:
    sync(table, hoodie__datasource__meta__sync__glue__metadata_file_listing="true")
    found = glue.get_table(DatabaseName="lake", Name="trips")["Table"]
    kept = {name: found[name] for name in ("Name", "TableType", "StorageDescriptor", "PartitionKeys")}
    store = found["StorageDescriptor"]
    kept["StorageDescriptor"] = {**store, "Columns": store["Columns"][:-1]}
    changed = {**kept, "Owner": "a team", "Parameters": {**found["Parameters"], "mine": "stays"}}
    glue.update_table(DatabaseName="lake", TableInput=changed)
    sync(table, hoodie__datasource__meta__sync__glue__skip_table_archive="false")
    again = glue.get_table(DatabaseName="lake", Name="trips")["Table"]
    assert again["StorageDescriptor"]["Columns"] == found["StorageDescriptor"]["Columns"]
    assert (again["Owner"], again["Parameters"]["mine"]) == ("a team", "stays")
    assert again["Parameters"]["hudi.metadata-listing-enabled"] == "FALSE"


def test_all_partitions_are_compared_if_asked(table: Table, glue: Any) -> None:
    sync(table)
    before = partitions_of(glue)
    first = next(iter(before))
    glue.delete_partition(DatabaseName="lake", TableName="trips", PartitionValues=list(first))
    gone = {"Values": ["gone"] * len(first), "StorageDescriptor": {"Location": "/elsewhere"}}
    glue.create_partition(DatabaseName="lake", TableName="trips", PartitionInput=gone)
    sync(table, hoodie__meta__sync__incremental="false")
    assert partitions_of(glue) == before


def test_many_partitions_go_in_requests_of_the_size_that_glue_takes(table: Table, glue: Any) -> None:
    sync(table)
    [one] = CatalogSync.of(Options(ASKED), table)
    catalog, sizes = GlueCatalog(Options(ASKED)), []
    ask = catalog._ask

    def count(operation: str, **words: Any) -> Any:
        sizes.append((operation, len(words.get("PartitionInputList", words.get("PartitionsToDelete", ())))))
        return ask(operation, **words)

    catalog._ask = count  # type: ignore[method-assign]
    [described] = describe_table(table, table.timeline(), one.settings)
    many = {(f"p{number:04}",) * len(described.partition_columns): f"/t/p{number}" for number in range(230)}
    catalog.add_partitions(described, many)
    catalog.add_partitions(described, many)
    assert [size for _, size in sizes] == [100, 100, 30] * 2
    assert many.items() <= dict(catalog.list_partitions(described)).items()
    sizes.clear()
    catalog.drop_partitions(described, many)
    catalog.drop_partitions(described, list(many)[:1])
    assert [size for _, size in sizes] == [25] * 9 + [5, 1]
    assert not many.keys() & catalog.list_partitions(described).keys()


def test_names_of_its_own_go_before(table: Table, glue: Any) -> None:
    sync(
        table,
        hoodie__datasource__meta__sync__glue__database_name="Other",
        hoodie__datasource__meta__sync__glue__table_name="Rides",
        hoodie__datasource__meta__sync__glue__catalogId="123456789012",
    )
    assert glue.get_table(DatabaseName="other", Name="rides")["Table"]["Name"] == "rides"


def test_a_database_is_not_made_where_the_owner_says_so(table: Table) -> None:
    with pytest.raises(BackendRefused, match="there is no database lake: make it"):
        sync(table, hoodie__datasource__hive_sync__auto_create_database="false")


def test_what_glue_refuses_and_a_glue_that_is_silent_are_told_apart(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = GlueCatalog(Options(ASKED))
    monkeypatch.setattr(catalog._client, "get_database", deny)
    with pytest.raises(BackendRefused, match="AWS Glue refuses get_database: AccessDeniedException: not you"):
        catalog.create_database("lake")
    catalog.close()
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    [one] = CatalogSync.of(Options({**ASKED, "hoodie.aws.glue.endpoint": "http://127.0.0.1:1"}), table)
    monkeypatch.setattr("botocore.endpoint.Endpoint.make_request", refuse)
    with pytest.raises(BackendUnavailable, match="AWS Glue did not answer get_database"):
        one.run()
    assert "a-secret-key" not in repr(one)


def deny(**_: Any) -> None:
    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not you"}}, "GetDatabase")


def refuse(*_: Any) -> None:
    raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")


def test_a_region_must_be_named_somewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    without = {name: value for name, value in ASKED.items() if not name.endswith("glue.region")}
    with pytest.raises(BackendRefused, match=r"give hoodie\.aws\.glue\.region, or AWS_REGION"):
        GlueCatalog(Options(without))


def test_one_command_tells_glue(table: Table, glue: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for key, value in ASKED.items() for word in ("-o", f"{key}={value}")]
    with pytest.raises(SystemExit) as ended:
        main(["sync", table.storage.base, *words])
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("lake.trips: up to date; ")
    assert glue.get_table(DatabaseName="lake", Name="trips")
