"""What a session says of its file systems, in our keys."""

from __future__ import annotations

from typing import Final

import pytest

from hudi_locks.config import Options
from hudi_locks.spark.store_settings import add_store_settings

AZURE: Final = "abfss://box@mine.dfs.core.windows.net/t"
HADOOP: Final = "spark.hadoop.fs."


def ask(path: str, told: dict[str, str], **given: str) -> dict[str, object]:
    conf = {f"{HADOOP}{name}": value for name, value in told.items()}
    return dict(add_store_settings(Options({key.replace("__", "."): given[key] for key in given}), path, conf))


def test_each_path_is_told_of_its_own_store_alone() -> None:
    told = {
        "s3a.endpoint": "minio:9000",
        "s3a.connection.ssl.enabled": "false",
        "gs.storage.root.url": "https://gcs.example/",
        "azure.account.key.mine.dfs.core.windows.net": "k",
    }
    assert ask("s3a://b/t", told) == {
        "hudi_locks.storage.endpoint_url": "http://minio:9000",
        "hudi_locks.storage.allow_http": "true",
    }
    assert ask("gs://b/t", told) == {"hudi_locks.storage.endpoint_url": "https://gcs.example"}
    assert ask(AZURE, told) == {"hoodie.write.lock.azure.connection.string": "AccountName=mine;AccountKey=k"}
    assert ask("/data/t", told) == ask("hdfs://h/t", told) == {}


def test_what_is_said_of_a_bucket_goes_before_what_is_said_of_all() -> None:
    told = {
        "s3a.endpoint": "minio:9000",
        "s3a.endpoint.region": "us-east-1",
        "s3a.access.key": "a",
        "s3a.bucket.sales.endpoint": "other:9000",
        "s3a.bucket.sales.connection.ssl.enabled": "false",
        "s3a.bucket.sales.access.key": "b",
        "s3a.bucket.returns.access.key": "c",
    }
    assert ask("s3a://sales/t", told) == {
        "hudi_locks.storage.endpoint_url": "http://other:9000",
        "hudi_locks.storage.allow_http": "true",
        "hudi_locks.storage.region": "us-east-1",
        "hoodie.aws.access.key": "b",
    }
    assert ask("s3a://costs/t", told) == {
        "hudi_locks.storage.endpoint_url": "https://minio:9000",
        "hudi_locks.storage.region": "us-east-1",
        "hoodie.aws.access.key": "a",
    }


def test_an_option_goes_before_the_session() -> None:
    given = {"hudi_locks__storage__endpoint_url": "https://other"}
    assert ask("gs://b/t", {"gs.storage.root.url": "https://x"}, **given) == {
        "hudi_locks.storage.endpoint_url": "https://other"
    }
    signature = {"hoodie__write__lock__azure__sas__token": "sig"}
    assert ask(AZURE, {"azure.account.key.mine.dfs.core.windows.net": "k"}, **signature) == {
        "hoodie.write.lock.azure.sas.token": "sig"
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (AZURE, "azure.account.key.mine.dfs.core.windows.net"),
        (AZURE, "azure.account.key.mine.blob.core.windows.net"),
        ("wasbs://box@mine.blob.core.windows.net/t", "azure.account.key.mine.blob.core.windows.net"),
        ("wasbs://box@mine.blob.core.windows.net/t", "azure.account.key.mine.dfs.core.windows.net"),
    ],
)
def test_an_account_key_is_found_by_either_name_of_the_account(path: str, name: str) -> None:
    assert list(ask(path, {name: "k"}).values()) == ["AccountName=mine;AccountKey=k"]
    assert ask(path, {name.replace("mine", "other"): "k"}) == {}


def test_an_account_of_another_cloud_keeps_its_addresses() -> None:
    host = "mine.dfs.core.chinacloudapi.cn"
    found = ask(f"abfss://box@{host}/t", {f"azure.account.key.{host}": "k"})
    assert list(found.values()) == ["AccountName=mine;AccountKey=k;EndpointSuffix=core.chinacloudapi.cn"]


def test_signatures_principals_and_identities_of_azure() -> None:
    assert ask(AZURE, {"azure.sas.fixed.token.mine.dfs.core.windows.net": "s"}) == {
        "hoodie.write.lock.azure.sas.token": "s"
    }
    assert ask(AZURE, {"azure.sas.box.mine.blob.core.windows.net": "s"}) == {"hoodie.write.lock.azure.sas.token": "s"}
    client = {"azure.account.oauth2.client.id.mine.dfs.core.windows.net": "c"}
    secret = {
        "azure.account.oauth2.client.secret": "s",
        "azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant-1/oauth2/token",
    }
    assert ask(AZURE, {**client, **secret}) == {
        "hoodie.write.lock.azure.client.id": "c",
        "hoodie.write.lock.azure.client.secret": "s",
        "hoodie.write.lock.azure.client.tenant.id": "tenant-1",
    }
    kind = {"azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"}
    assert ask(AZURE, {**client, **kind}) == {"hoodie.write.lock.azure.managed.identity.client.id": "c"}
    assert ask(AZURE, client) == {}


def test_the_file_of_a_google_service_account() -> None:
    found = ask("gs://b/t", {"gs.auth.service.account.json.keyfile": "/etc/key.json"})
    assert found == {"hudi_locks.storage.service_account_file": "/etc/key.json"}
