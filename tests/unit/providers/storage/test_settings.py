"""From Hudi's keys to a place and to credentials."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hudi_locks_providers._storage import stores
from hudi_locks_providers._storage.credentials import azure_credentials, s3_credential_provider, s3_credentials
from hudi_locks_providers._storage.location import Location, parse_location
from hudi_locks_providers.storage import StorageLockProvider

from hudi_locks import ConfigError, LockScope, ManualClock, Owner, ProviderLoadError
from hudi_locks.config import Options


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("s3://b/lake/t", Location("s3", "b", "", "lake/t")),
        ("s3a://b/lake/t/", Location("s3", "b", "", "lake/t")),
        ("s3a://b//lake///t", Location("s3", "b", "", "lake/t")),
        ("s3://b", Location("s3", "b", "", "")),
        ("s3://b/a%20b#c?d", Location("s3", "b", "", "a b#c?d")),
        ("gs://b/t", Location("gcs", "b", "", "t")),
        ("abfss://c@acc.dfs.core.windows.net/t", Location("azure", "c", "acc", "t")),
        ("wasb://c@acc.blob.core.windows.net/t", Location("azure", "c", "acc", "t")),
        (" memory://b/t ", Location("memory", "b", "", "t")),
    ],
)
def test_a_base_path_is_a_place(base: str, expected: Location) -> None:
    assert parse_location(base) == expected


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("/data/t", "use the filesystem lock provider"),
        ("file:///data/t", "use the filesystem lock provider"),
        ("hdfs://nn/t", "knows s3, s3a, gs, abfs, abfss, wasb and wasbs, not hdfs"),
        ("s3:///t", "names no bucket; write it as s3://bucket/path"),
        ("abfss://c/t", "write it as abfss://container@account.dfs.core.windows.net/path"),
    ],
)
def test_another_base_path_is_refused(base: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_location(base)


def test_the_lease_outlasts_ten_renewals() -> None:
    options = {"hoodie.base.path": "s3://b/t", "hoodie.write.lock.storage.renew.interval.secs": 31}
    with pytest.raises(ConfigError, match="ten renewals"):
        StorageLockProvider(options, clock=ManualClock(), on_lost=lambda *_: None)


def test_static_keys_need_both_parts() -> None:
    access, secret = {"hoodie.aws.access.key": "a"}, {"hoodie.aws.secret.key": "s"}
    assert s3_credentials(Options(access)) == s3_credentials(Options(secret)) == {}
    found = s3_credentials(Options({**access, **secret, "hoodie.aws.session.token": "t"}))
    assert found == {"access_key_id": "a", "secret_access_key": "s", "session_token": "t"}


def test_without_keys_the_default_chain_is_asked(monkeypatch: Any) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    assert s3_credential_provider(Options({})) is None


class Session:
    def get_credentials(self) -> Any:
        return self

    def get_frozen_credentials(self) -> Any:
        return type("Frozen", (), {"access_key": "a", "secret_key": "s", "token": None})


class Boto3:
    """As much of boto3 as is asked for."""

    Session = Session
    made: dict[str, Any]

    def client(self, name: str, **given: Any) -> Any:
        self.made = given
        return self

    def assume_role(self, **asked: Any) -> Any:
        self.asked = asked
        return {"Credentials": {"AccessKeyId": "r", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": 1}}


def test_a_profile_of_this_machine_is_read_through_boto3(monkeypatch: Any) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setitem(sys.modules, "boto3", Boto3())
    fetch = s3_credential_provider(Options({}))
    assert fetch is not None
    assert fetch()["access_key_id"] == "a"


def test_a_role_is_assumed_with_the_static_keys(monkeypatch: Any) -> None:
    boto3 = Boto3()
    monkeypatch.setitem(sys.modules, "boto3", boto3)
    options = {
        "hoodie.aws.access.key": "a",
        "hoodie.aws.secret.key": "s",
        "hoodie.aws.role.arn": "arn:r",
        "hoodie.aws.role.external.id": "e",
        "hoodie.aws.role.session.name": "nightly",
        "hudi_locks.storage.region": "eu-north-1",
    }
    fetch = s3_credential_provider(Options(options))
    assert fetch is not None
    assert fetch()["access_key_id"] == "r"
    assert boto3.asked == {"RoleArn": "arn:r", "RoleSessionName": "nightly", "ExternalId": "e"}
    assert (boto3.made["aws_access_key_id"], boto3.made["region_name"]) == ("a", "eu-north-1")


def test_a_role_without_boto3_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ProviderLoadError, match=r"pip install 'hudi-locks\[s3\]'"):
        s3_credential_provider(Options({"hoodie.aws.role.arn": "arn:r"}))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"hoodie.write.lock.azure.sas.token": "?sv=1&sig=x"}, {"sas_key": "sv=1&sig=x"}),
        ({"hoodie.write.lock.azure.managed.identity.client.id": "m"}, {"client_id": "m"}),
        (
            {
                "hoodie.write.lock.azure.client.tenant.id": "t",
                "hoodie.write.lock.azure.client.id": "i",
                "hoodie.write.lock.azure.client.secret": "s",
            },
            {"tenant_id": "t", "client_id": "i", "client_secret": "s"},
        ),
        (
            {"hoodie.write.lock.azure.connection.string": "AccountName=n;AccountKey=a==;BlobEndpoint=http://h/n;"},
            {"account_name": "n", "account_key": "a==", "endpoint": "http://h/n"},
        ),
        (
            {
                "hoodie.write.lock.azure.connection.string": (
                    "DefaultEndpointsProtocol=https;AccountName=n;AccountKey=a;EndpointSuffix=x.cn"
                )
            },
            {"account_name": "n", "account_key": "a", "endpoint": "https://n.blob.x.cn"},
        ),
    ],
)
def test_azure_keys(given: dict[str, str], expected: dict[str, str]) -> None:
    assert azure_credentials(Options(given)) == expected


def test_half_a_service_principal_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"client.secret is missing: a service principal needs all of"):
        azure_credentials(
            Options({"hoodie.write.lock.azure.client.tenant.id": "t", "hoodie.write.lock.azure.client.id": "i"})
        )


def test_our_endpoint_wins_over_the_connection_strings(monkeypatch: Any) -> None:
    connection = {"hoodie.write.lock.azure.connection.string": "AccountName=n;AccountKey=a;BlobEndpoint=http://there/n"}
    azure = parse_location("abfs://c@n.dfs.core.windows.net/t")
    assert stores.find_endpoint(Options(connection), azure) == "http://there/n"
    ours = {**connection, "hudi_locks.storage.endpoint_url": "https://here/n/"}
    assert stores.find_endpoint(Options(ours), azure) == "https://here/n"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://env:1")
    assert stores.find_endpoint(Options({}), parse_location("s3://b/t")) == "http://env:1"


def test_one_client_serves_all_tables_of_a_bucket() -> None:
    location, other = parse_location("s3://b/t"), parse_location("s3://b/u")
    assert stores.open_store(Options({}), location) is stores.open_store(Options({}), other)
    keys = {"hoodie.aws.access.key": "a", "hoodie.aws.secret.key": "s"}
    assert stores.open_store(Options(keys), location) is not stores.open_store(Options({}), location)


def test_requests_are_signed_for_the_region_that_is_named(monkeypatch: Any) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    location = parse_location("s3://regions/t")
    assert stores.open_store(Options({}), location).config["region"] == "eu-west-3"
    named = Options({"hudi_locks.storage.region": "eu-north-1"})
    assert stores.open_store(named, location).config["region"] == "eu-north-1"


def test_the_policy_names_the_locks_of_the_table() -> None:
    policy = StorageLockProvider.iam_policy({"hoodie.base.path": "s3a://b/lake/t"})
    assert policy is not None
    resources = {action: one["Resource"] for one in policy["Statement"] for action in one["Action"]}
    assert resources["s3:PutObject"] == "arn:aws:s3:::b/lake/t/.hoodie/.locks/*"
    assert resources["s3:ListBucket"] == "arn:aws:s3:::b"
    assert resources["s3:DeleteObject"].endswith("/.hoodie/.locks/.hudi_locks/probe/*")
    assert StorageLockProvider.iam_policy({"hoodie.base.path": "gs://b/t"}) is None


def test_a_missing_library_is_told_with_its_command(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    provider = StorageLockProvider(
        {"hoodie.base.path": "memory://none/t"}, clock=ManualClock(), on_lost=lambda *_: None
    )
    with pytest.raises(ProviderLoadError, match=r"pip install 'hudi-locks\[s3\]'"):
        provider.try_acquire(LockScope.table(), Owner("a"), 0)
