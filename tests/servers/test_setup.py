"""What a lock service needs before the first lock, made on real ones, and used by a lock afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import pytest
from hudi_locks_conformance.servers import Server
from kazoo.client import KazooClient

from hudi_locks import LockProvider, LockScope, Owner, SystemClock
from hudi_locks.lock import SetupStep, SetupTerms, load_provider_class

pytestmark = pytest.mark.servers
Open = Callable[..., LockProvider]


@pytest.fixture
def unique() -> str:
    return f"setup-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def open_provider() -> Iterator[Open]:
    with ExitStack() as stack:

        def make(name: str, options: dict[str, str]) -> LockProvider:
            kind = load_provider_class(name)
            return stack.enter_context(kind(options, clock=SystemClock(), on_lost=lambda *_: None))

        yield make


def run(provider: LockProvider, **terms: bool) -> list[SetupStep]:
    return list(provider.set_up(SetupTerms(**terms)))


def outcomes(steps: list[SetupStep]) -> list[str]:
    return [step.outcome for step in steps]


def take_and_release(provider: LockProvider) -> None:
    lease = provider.try_acquire(LockScope.table(), Owner("ada", "host-a", 11), 0)
    assert lease is not None
    provider.release(lease)


def test_the_table_of_dynamodb(dynamodb: Server, unique: str, open_provider: Open) -> None:
    options = {
        **dynamodb.options,
        "hoodie.write.lock.dynamodb.table": unique,
        "hoodie.write.lock.dynamodb.partition_key": "trips",
        "hoodie.write.lock.dynamodb.billing_mode": "PROVISIONED",
        "hoodie.write.lock.dynamodb.read_capacity": "3",
    }
    service = boto3.client(
        "dynamodb",
        endpoint_url=options["hoodie.write.lock.dynamodb.endpoint_url"],
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    provider = open_provider("dynamodb", options)
    assert outcomes(run(provider, dry_run=True)) == ["to make"]
    assert unique not in service.list_tables()["TableNames"]
    assert outcomes(run(provider)) == ["made"]
    assert service.describe_table(TableName=unique)["Table"]["ProvisionedThroughput"]["ReadCapacityUnits"] == 3
    again = run(open_provider("dynamodb", {**options, "hoodie.write.lock.dynamodb.billing_mode": "PAY_PER_REQUEST"}))
    assert outcomes(again) == ["there"]
    assert "has no effect on a table that is there" in again[0].advice
    take_and_release(provider)
    service.close()


def test_the_nodes_of_zookeeper(zookeeper: Server, unique: str, open_provider: Open) -> None:
    """A lock makes no chroot, and is refused until there is one."""
    url = zookeeper.options["hoodie.write.lock.zookeeper.url"]
    options = {
        **zookeeper.options,
        "hoodie.write.lock.zookeeper.url": f"{url}/{unique}/lake",
        "hoodie.write.lock.zookeeper.base_path": "/hudi",
        "hoodie.write.lock.zookeeper.lock_key": "trips",
    }
    provider = open_provider("zookeeper", options)
    assert outcomes(run(provider, dry_run=True)) == ["to make"] * 4
    assert outcomes(run(provider)) == ["made"] * 4
    assert outcomes(run(provider)) == ["there"] * 4
    client = KazooClient(url)
    client.start()
    (acl,) = client.get_acls(f"/{unique}/lake/hudi/trips")[0]
    client.stop()
    client.close()
    assert (acl.perms, acl.id.scheme, acl.id.id) == (31, "world", "anyone")
    take_and_release(provider)


def test_the_folder_of_hdfs(minidfs: Server, unique: str, open_provider: Open) -> None:
    folder = minidfs.options["hoodie.write.lock.filesystem.path"].rstrip("/")
    options = {**minidfs.options, "hoodie.write.lock.filesystem.path": f"{folder}/{unique}/locks"}
    provider = open_provider("filesystem", options)
    assert outcomes(run(provider, dry_run=True)) == ["to make"]
    assert outcomes(run(provider)) == ["made"]
    assert outcomes(run(provider)) == ["there"]
    take_and_release(provider)


def test_the_metastore(hive_metastore: Server, open_provider: Open) -> None:
    options = {**hive_metastore.options, "hoodie.write.lock.hivemetastore.table": "nowhere"}
    provider = open_provider("hive_metastore", options)
    [step] = run(provider)
    assert step.outcome == "not needed"
    take_and_release(provider)


def test_a_bucket(versitygw: Server, unique: str, open_provider: Open) -> None:
    options = {**versitygw.options, "hoodie.base.path": f"s3a://{unique}/t"}
    provider = open_provider("storage", options)
    [missing] = run(provider)
    assert missing.has_failed
    assert "--make-bucket" in missing.advice
    assert outcomes(run(provider, make_bucket=True, dry_run=True)) == ["to make", "to make"]
    assert run(provider, make_bucket=True)[0].outcome == "made"
    assert run(provider)[0].outcome == "there"
    take_and_release(provider)


@pytest.mark.parametrize("service", ["fake_gcs", "azurite"])
def test_a_bucket_of_another_cloud_is_found(service: str, request: pytest.FixtureRequest, open_provider: Open) -> None:
    options: dict[str, Any] = request.getfixturevalue(service).options
    assert run(open_provider("storage", options))[0].outcome == "there"


def test_a_missing_container_of_azure_is_told(azurite: Server, open_provider: Open, unique: str) -> None:
    """fake-gcs-server answers for a missing bucket as if it had failed itself."""
    base = azurite.options["hoodie.base.path"]
    container = base.split("//")[1].split("@")[0]
    missing = base.replace(f"//{container}@", f"//{unique}@", 1)
    [step] = run(open_provider("storage", {**azurite.options, "hoodie.base.path": missing}), make_bucket=True)
    assert step.has_failed
    assert "there is no such bucket" in step.found
    assert f"az storage container create --name {unique}" in step.advice
