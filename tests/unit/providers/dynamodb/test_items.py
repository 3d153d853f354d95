"""The items on the wire, and how many requests they cost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hudi_locks_providers.dynamodb import DynamoDBLockProvider

from hudi_locks import (
    DamagedLockRecord,
    LockLost,
    LockScope,
    LossReason,
    ManualClock,
    Owner,
)

Client = Callable[..., DynamoDBLockProvider]


def test_a_free_lock_costs_two_requests(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    provider.release(provider.try_acquire(table, ada, 0))  # type: ignore[arg-type]
    assert stub.count() == ["transact_get_items", "transact_write_items", "delete_item"]
    since = len(stub.calls)
    provider.release(provider.try_acquire(table, ada, 0))  # type: ignore[arg-type]
    assert stub.count(since) == ["transact_write_items", "delete_item"]
    assert list(stub.items) == ["trips#hudi_locks_token"]


def test_the_item_is_that_of_the_awslabs_client(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    lease = client().try_acquire(table, ada, 0)
    item = stub.items["trips"]
    assert lease is not None
    assert set(item) == {"key", "ownerName", "leaseDuration", "recordVersionNumber", "hudiLocks"}
    assert item["leaseDuration"] == {"S": "60000"}
    ours = json.loads(item["hudiLocks"]["S"])
    assert (ours["id"], ours["application"], ours["token"]) == ("ada", "etl", lease.token)


def test_renewals_come_each_third_of_the_lease(client: Client, stub: Any, table: LockScope) -> None:
    assert client(**{"hoodie.write.lock.wait_time_ms": 900_000}).renewal_interval_s == 300


def test_a_holder_seen_before_is_read_not_written_to(
    client: Client, stub: Any, table: LockScope, ada: Owner, bob: Owner
) -> None:
    first, second = client(), client()
    assert first.try_acquire(table, ada, 0)
    for _ in range(3):
        assert second.try_acquire(table, bob, 0) is None
    assert stub.count()[-2:] == ["get_item", "get_item"]


def test_a_counter_stepped_by_another_costs_one_more(
    client: Client, stub: Any, table: LockScope, ada: Owner, bob: Owner
) -> None:
    first, second = client(), client()
    tokens = []
    for provider, owner in ((first, ada), (second, bob), (first, ada), (second, bob)):
        since = len(stub.calls)
        lease = provider.try_acquire(table, owner, 0)
        assert lease is not None
        tokens.append(lease.token or 0)
        provider.release(lease)
    assert stub.count(since) == ["transact_write_items", "transact_write_items", "delete_item"]
    assert tokens == sorted(set(tokens))


def test_beside_the_jvm_no_transaction_touches_the_table_lock(
    client: Client, stub: Any, table: LockScope, ada: Owner
) -> None:
    provider = client()
    first = provider.try_acquire(table, ada, 0)
    provider.release(first)  # type: ignore[arg-type]
    stub.put_jvm_item()
    assert provider.try_acquire(table, ada, 0) is None
    del stub.items["trips"]
    since = len(stub.calls)
    lease = provider.try_acquire(table, ada, 0)
    assert stub.count(since) == ["get_item", "put_item", "update_item"]
    assert lease is not None
    assert first is not None
    assert (lease.token or 0) > (first.token or 0)


def test_a_stale_item_is_taken_over_after_its_own_lease(
    client: Client, stub: Any, clock: ManualClock, table: LockScope, ada: Owner
) -> None:
    stub.put_jvm_item()
    provider = client()
    assert provider.try_acquire(table, ada, 0) is None
    clock.advance(20.0)
    assert provider.try_acquire(table, ada, 0) is None, "not before more than the lease has passed"
    stub.items["trips"]["recordVersionNumber"] = {"S": "v2"}
    clock.advance(1)
    assert provider.try_acquire(table, ada, 0) is None, "a heartbeat begins another watch"
    clock.advance(20.1)
    assert provider.try_acquire(table, ada, 0) is not None


def test_an_item_marked_as_released_is_free(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    stub.put_jvm_item(isReleased={"S": "1"})
    provider = client()
    assert provider.holder(table) is None
    assert provider.try_acquire(table, ada, 0) is not None
    assert "isReleased" not in stub.items["trips"]


def test_a_jvm_holder_is_named(client: Client, stub: Any, table: LockScope) -> None:
    stub.put_jvm_item()
    holder = client().holder(table)
    assert holder is not None
    assert (holder.owner.host, holder.expires_in_ms) == ("jvm-host", 20_000)
    assert client().break_if(table, holder.token)
    assert stub.items == {}


def test_break_outlives_a_heartbeat(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider, other = client(), client()
    lease = provider.try_acquire(table, ada, 0)
    holder = other.holder(table)
    assert lease is not None
    assert holder is not None
    provider.renew(lease)
    assert not other.break_if(table, "another hold")
    assert other.break_if(table, holder.token)
    with pytest.raises(LockLost) as loss:
        provider.renew(lease)
    assert loss.value.reason is LossReason.DELETED


def test_a_renewal_of_a_lost_lock_says_how(
    client: Client, stub: Any, clock: ManualClock, table: LockScope, ada: Owner
) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    stub.put_jvm_item()
    with pytest.raises(LockLost) as stolen:
        provider.renew(lease)
    del stub.items["trips"]
    with pytest.raises(LockLost) as deleted:
        provider.renew(lease)
    clock.advance(60)
    with pytest.raises(LockLost) as expired:
        provider.renew(lease)
    reasons = [found.value.reason for found in (stolen, deleted, expired)]
    assert reasons == [LossReason.STOLEN, LossReason.DELETED, LossReason.EXPIRED]


def test_the_token_is_not_given_after_the_lease_is_over(
    client: Client, stub: Any, clock: ManualClock, table: LockScope, ada: Owner
) -> None:
    provider = client()
    stub.put_jvm_item()
    provider.try_acquire(table, ada, 0)
    stub.items.clear()
    stub.after = lambda method, _: clock.advance(61) if method == "update_item" else None
    assert provider.try_acquire(table, ada, 0) is None
    assert "trips" not in stub.items


def test_tokens_go_on_when_all_items_are_deleted(
    client: Client, stub: Any, clock: ManualClock, table: LockScope, ada: Owner
) -> None:
    tokens = []
    for _ in range(2):
        lease = client().try_acquire(table, ada, 0)
        tokens.append((lease and lease.token) or 0)
        stub.items.clear()
        clock.advance(1)
    assert tokens == sorted(set(tokens))


@pytest.mark.parametrize("item", [{"leaseDuration": {"S": "soon"}}, {"leaseDuration": {"N": "5"}}, {}])
def test_an_item_that_is_no_lock_is_no_free_lock(
    client: Client, stub: Any, table: LockScope, ada: Owner, item: dict[str, Any]
) -> None:
    stub.items["trips"] = {"key": {"S": "trips"}, "recordVersionNumber": {"S": "v"}, **item}
    provider = client()
    with pytest.raises(DamagedLockRecord, match="hudi-locks unlock"):
        provider.try_acquire(table, ada, 0)
    holder = provider.holder(table)
    assert holder is not None
    assert provider.break_if(table, holder.token)


def test_a_forged_lease_is_worth_nothing(client: Client, stub: Any, table: LockScope, ada: Owner, bob: Owner) -> None:
    provider, other = client(), client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    provider.release(replace(lease, owner=bob))
    other.release(lease)
    assert "trips" in stub.items
    with pytest.raises(LockLost):
        other.renew(lease)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_holds_nothing_and_touches_nothing(
    client: Client, stub: Any, table: LockScope, ada: Owner
) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    pid = os.fork()
    if not pid:
        try:
            provider.release(lease)
            provider.close()
            provider.renew(lease)
        except LockLost as loss:
            os._exit(0 if loss.reason is LossReason.FORKED and "trips" in stub.items else 2)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
