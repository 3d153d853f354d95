"""The DynamoDB provider on DynamoDB Local, judged by the kit, and beside the lock client that is inside JVM Hudi."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.partners import JvmContender, awslabs
from hudi_locks_conformance.servers import Server
from hudi_locks_conformance.storm import finish_process, start_process
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers.dynamodb import DynamoDBImplicitLockProvider, DynamoDBLockProvider
from jvm_neighbours import (
    ADA,
    TABLE,
    expect_no_overlap,
    expect_our_death_noticed,
    expect_our_hold_kept,
    expect_their_hold_kept,
    makes,
    poll,
)

from hudi_locks import BackendRefused, LockLost, LockScope, Owner, SystemClock

pytestmark = pytest.mark.servers

TABLE_KEY = "hoodie.write.lock.dynamodb.table"
LEASE_KEY = "hoodie.write.lock.wait_time_ms"
Make = Callable[..., DynamoDBLockProvider]


class TestExplicit(LockProviderSuite):
    level = Level.EXTRA
    claims = DynamoDBLockProvider.capabilities

    @pytest.fixture
    def harness(self, dynamodb: Server) -> Harness:
        return Harness("dynamodb", {**dynamodb.options, TABLE_KEY: "kit"}, seed=1, server=dynamodb)


class TestImplicit(LockProviderSuite):
    only = ("A", "B1", "C", "K", "L7")
    claims = DynamoDBImplicitLockProvider.capabilities

    @pytest.fixture
    def harness(self, dynamodb: Server) -> Harness:
        name = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider"
        return Harness(name, {**dynamodb.options, TABLE_KEY: "kit"}, seed=2, server=dynamodb)


@pytest.fixture
def options(dynamodb: Server) -> dict[str, str]:
    """Options for a key of its own, with a lease of two seconds."""
    key = "hoodie.write.lock.dynamodb.partition_key"
    return {**dynamodb.options, key: f"trips-{uuid.uuid4().hex[:8]}", LEASE_KEY: "2000"}


@pytest.fixture
def make(options: dict[str, str]) -> Iterator[Make]:
    with makes(DynamoDBLockProvider, options) as make_one:
        yield make_one


@pytest.fixture
def service(options: dict[str, str]) -> Iterator[Any]:
    client = boto3.client(
        "dynamodb",
        endpoint_url=options["hoodie.write.lock.dynamodb.endpoint_url"],
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    yield client
    client.close()


MAKE_TABLE = """
import json, sys
from hudi_locks import LockManager
with LockManager("dynamodb", json.loads(sys.argv[1])) as manager, manager.lock() as held:
    print(held.token)
"""


def test_twenty_processes_make_the_table_together(options: dict[str, str]) -> None:
    fresh = json.dumps({**options, TABLE_KEY: f"fresh-{uuid.uuid4().hex[:8]}", LEASE_KEY: "60000"})
    running = [start_process(["-c", MAKE_TABLE, fresh]) for _ in range(20)]
    tokens = [int(finish_process(process)) for process in running]
    assert len(set(tokens)) == 20


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([("id", "HASH", "S")], r"id \(HASH key, type S\)"),
        ([("key", "HASH", "N")], r"key \(HASH key, type N\)"),
        ([("key", "HASH", "S"), ("sort", "RANGE", "S")], r"sort \(RANGE key, type S\)"),
    ],
)
def test_another_schema_is_refused(make: Make, service: Any, keys: list[tuple[str, str, str]], said: str) -> None:
    name = f"other-{uuid.uuid4().hex[:8]}"
    service.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind} for key, _, kind in keys],
        KeySchema=[{"AttributeName": key, "KeyType": role} for key, role, _ in keys],
    )
    with pytest.raises(BackendRefused, match=said):
        make(**{TABLE_KEY: name}).try_acquire(TABLE, ADA, 0)


def test_a_table_deleted_under_a_holder_is_a_loss_and_then_made_again(make: Make, service: Any) -> None:
    name = f"doomed-{uuid.uuid4().hex[:8]}"
    provider = make(**{TABLE_KEY: name})
    lease = provider.try_acquire(TABLE, ADA, 0)
    assert lease is not None
    service.delete_table(TableName=name)
    with pytest.raises(LockLost, match="the record is gone"):
        provider.renew(lease)
    provider.release(lease)
    with pytest.raises(BackendRefused, match="there is no table"):
        provider.try_acquire(TABLE, ADA, 0)
    again = provider.try_acquire(TABLE, ADA, 0)
    assert again is not None
    assert (again.token or 0) > (lease.token or 0)


def test_what_is_on_the_wire(make: Make, service: Any) -> None:
    provider = make()
    lease = provider.try_acquire(TABLE, ADA, 0)
    assert lease is not None
    key = {"key": {"S": provider.keys.base}}
    before = service.get_item(TableName="hudi_locks", Key=key, ConsistentRead=True)["Item"]
    provider.renew(lease)
    after = service.get_item(TableName="hudi_locks", Key=key, ConsistentRead=True)["Item"]
    assert {name for name in before if before[name] != after[name]} == {"recordVersionNumber"}
    assert all("S" in value for value in before.values())
    provider.release(lease)
    assert "Item" not in service.get_item(TableName="hudi_locks", Key=key, ConsistentRead=True)


def test_dynamodb_local_keeps_what_locks_need(make: Make, service: Any) -> None:
    findings = make().probe()
    assert [finding.name for finding in findings if not finding.ok] == []
    left = service.scan(TableName="hudi_locks", ConsistentRead=True)["Items"]
    assert not [item for item in left if "probe" in item["key"]["S"]]


def test_a_thousand_locks_come_and_go(make: Make) -> None:
    provider, other = make(**{LEASE_KEY: "60000"}), make()
    groups = [LockScope.file_group("city=oslo", f"file-{number}") for number in range(1000)]
    leases = provider.acquire_many(groups, ADA, 0)
    assert leases is not None
    assert len({lease.scope for lease in leases}) == 1000
    assert other.try_acquire(groups[500], Owner("bob"), 0) is None
    provider.close()
    assert other.try_acquire(groups[500], Owner("bob"), 0) is not None


@pytest.mark.usefixtures("jvm")
class TestBesideTheJvm:
    def test_it_waits_while_we_hold(self, options: dict[str, str]) -> None:
        expect_our_hold_kept("dynamodb", options, awslabs(options), watch_s=5)

    def test_we_wait_while_it_holds(self, make: Make, options: dict[str, str]) -> None:
        provider = make()
        provider.table.ensure()
        expect_their_hold_kept(provider, awslabs(options), hold_s=4)

    def test_a_dead_holder_of_theirs_is_outlived(self, make: Make, options: dict[str, str]) -> None:
        provider = make()
        provider.table.ensure()
        with JvmContender(awslabs(options, lease_ms=3000), "hold", 60) as theirs:
            assert theirs.wait_held(60)
            theirs.kill()
        killed_s = SystemClock().monotonic()
        assert poll(provider, 15) is not None
        assert SystemClock().monotonic() - killed_s >= 2.5, "their record says three seconds, our setting two"

    def test_a_dead_holder_of_ours_is_outlived(self, make: Make, options: dict[str, str]) -> None:
        assert expect_our_death_noticed(make(), awslabs(options)) >= 2.0

    def test_items_marked_as_released_are_free_for_both(self, make: Make, options: dict[str, str]) -> None:
        provider = make()
        provider.table.ensure()
        for _ in range(2):
            with JvmContender(awslabs(options, delete_on_release=False), "hold", 0.1) as theirs:
                assert len(theirs.finish().holds()) == 1
            assert provider.holder(TABLE) is None
            lease = provider.try_acquire(TABLE, ADA, 0)
            assert lease is not None
            provider.release(lease)

    def test_a_storm_of_both_never_overlaps(self, make: Make, options: dict[str, str]) -> None:
        make().table.ensure()
        calm = {**options, LEASE_KEY: "20000"}
        expect_no_overlap("dynamodb", calm, [awslabs(options), awslabs(options)])
