"""The lock table: made when missing, and judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hudi_locks_providers.dynamodb import DynamoDBLockProvider

from hudi_locks import (
    BackendRefused,
    BackendUnavailable,
    LockScope,
    ManualClock,
    Owner,
)

Client = Callable[..., DynamoDBLockProvider]


def test_a_missing_table_is_made_once(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    stub.table = None
    options = {"hoodie.write.lock.dynamodb.billing_mode": "provisioned"}
    provider = client(**options)
    assert provider.holder(table) is None
    for _ in range(2):
        provider.release(provider.try_acquire(table, ada, 0))  # type: ignore[arg-type]
    assert len(stub.made) == 1
    assert stub.made[0]["BillingMode"] == "PROVISIONED"
    assert stub.made[0]["ProvisionedThroughput"] == {"ReadCapacityUnits": 20, "WriteCapacityUnits": 10}


def test_locks_lie_in_the_table_that_is_named(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client(**{"hoodie.write.lock.dynamodb.table": "mine"})
    provider.release(provider.try_acquire(table, ada, 0))  # type: ignore[arg-type]
    parts = [part for request in stub.requests for part in request.get("TransactItems", [request])]
    assert {name for part in parts for name in _table_names(part)} == {"mine"}


def _table_names(part: Any) -> list[str]:
    inner = part if "TableName" in part else next(iter(part.values()))
    return [inner["TableName"]]


def test_a_table_is_made_with_the_capacity_asked_for(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    stub.table = None
    options = {
        "hoodie.write.lock.dynamodb.billing_mode": "provisioned",
        "hoodie.write.lock.dynamodb.read_capacity": 3,
        "hoodie.write.lock.dynamodb.write_capacity": 2,
    }
    assert client(**options).try_acquire(table, ada, 0) is not None
    assert stub.made[0]["ProvisionedThroughput"] == {"ReadCapacityUnits": 3, "WriteCapacityUnits": 2}


def test_a_table_made_by_another_at_the_same_moment_will_do(
    client: Client, stub: Any, table: LockScope, ada: Owner
) -> None:
    stub.table = None

    def come_first(method: str, request: Any) -> None:
        if method == "create_table":
            stub.table = stub.described()

    stub.before = come_first
    assert client().try_acquire(table, ada, 0) is not None
    assert not stub.made


@pytest.mark.parametrize(
    ("options", "waited_s"), [({}, 120), ({"hoodie.write.lock.dynamodb.table_creation_timeout": 30_000}, 30)]
)
def test_a_table_that_never_comes_is_given_up(
    client: Client, stub: Any, clock: ManualClock, table: LockScope, ada: Owner, options: Any, waited_s: int
) -> None:
    stub.table = stub.described(status="CREATING")
    stub.after = lambda method, _: clock.advance(waited_s + 1) if method == "describe_table" else None
    with pytest.raises(BackendUnavailable, match=f"still CREATING after {waited_s} s"):
        client(**options).try_acquire(table, ada, 0)


def test_a_first_answer_that_comes_late_is_asked_for_again(
    client: Client, stub: Any, table: LockScope, ada: Owner
) -> None:
    stub.lose_answers("describe_table", times=2)
    assert client().try_acquire(table, ada, 0) is not None


def test_a_service_that_never_answers_is_given_up(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    stub.lose_answers("describe_table", times=9)
    with pytest.raises(BackendUnavailable, match="did not answer DescribeTable"):
        client().try_acquire(table, ada, 0)
    assert stub.calls == ["describe_table"] * 3


@pytest.mark.parametrize("schema", [("id", "HASH", "S"), ("key", "HASH", "N")])
def test_another_schema_is_refused_by_name(
    client: Client, stub: Any, table: LockScope, ada: Owner, schema: tuple[str, str, str]
) -> None:
    stub.table = stub.described(*schema)
    with pytest.raises(BackendRefused, match=rf"{schema[0]} \(HASH key, type {schema[2]}\)"):
        client().try_acquire(table, ada, 0)


def test_without_the_right_to_describe_the_table_is_used_unseen(
    client: Client, stub: Any, table: LockScope, ada: Owner
) -> None:
    stub.fail(stub.refusal("AccessDeniedException", "DescribeTable"), "describe_table")
    assert client().try_acquire(table, ada, 0) is not None
