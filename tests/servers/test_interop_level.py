"""Group M of the kit: passed beside the JVM class of the same name, failed beside one that locks something else."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Status, run_check, select_checks
from hudi_locks_conformance.servers import Server
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers.dynamodb import DynamoDBLockProvider
from hudi_locks_providers.hive_metastore import HiveMetastoreLockProvider
from hudi_locks_providers.storage import StorageLockProvider
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("jvm")]

JVM = "hudi-jvm"
IMPLICIT = "org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider"


def name() -> str:
    return f"interop_{uuid.uuid4().hex[:8]}"


class TestZooKeeper(LockProviderSuite):
    only = ("M",)
    claims = ZooKeeperLockProvider.capabilities

    @pytest.fixture
    def harness(self, zookeeper: Server) -> Harness:
        options = {**zookeeper.options, "hoodie.write.lock.zookeeper.lock_key": name()}
        return Harness("zookeeper", options, partner=JVM)


class TestZooKeeperImplicit(LockProviderSuite):
    only = ("M1", "M3")
    claims = ZooKeeperLockProvider.capabilities

    @pytest.fixture
    def harness(self, zookeeper: Server) -> Harness:
        return Harness(IMPLICIT, {**zookeeper.options, "hoodie.base.path": f"/lake/{name()}"}, partner=JVM)


class TestDynamoDB(LockProviderSuite):
    only = ("M",)
    claims = DynamoDBLockProvider.capabilities

    @pytest.fixture
    def harness(self, dynamodb: Server) -> Harness:
        options = {**dynamodb.options, "hoodie.write.lock.dynamodb.partition_key": name()}
        return Harness("dynamodb", options, partner=JVM)


class TestStorage(LockProviderSuite):
    only = ("M",)
    claims = StorageLockProvider.capabilities

    @pytest.fixture
    def harness(self, fake_gcs: Server) -> Harness:
        return Harness("storage", {**fake_gcs.options, "hoodie.base.path": f"gs://locks/{name()}"}, partner=JVM)


class TestHiveMetastore(LockProviderSuite):
    only = ("M",)
    claims = HiveMetastoreLockProvider.capabilities

    @pytest.fixture
    def harness(self, hive_metastore: Server) -> Harness:
        options = {**hive_metastore.options, "hoodie.write.lock.hivemetastore.table": name()}
        return Harness("hive_metastore", options, partner=JVM)


@pytest.mark.parametrize("check_id", ["M1", "M2", "M3", "M4", "M5", "M6"])
def test_a_jvm_that_locks_another_node_is_found_out(check_id: str, zookeeper: Server, tmp_path: Path) -> None:
    """The JVM class derives its node from the base path, the provider has it from a key."""
    options = {**zookeeper.options, "hoodie.write.lock.zookeeper.lock_key": name()}
    harness = Harness("zookeeper", {**options, "hoodie.base.path": f"/lake/{name()}"}, partner=IMPLICIT, contenders=2)
    outcome = run_check(select_checks(only=[check_id])[0], harness)
    assert outcome.status is Status.FAIL, outcome
    assert outcome.message
