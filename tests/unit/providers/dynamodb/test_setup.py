"""The lock table, found or made before the first lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hudi_locks_providers.dynamodb import DynamoDBLockProvider

from hudi_locks import LockScope, Owner
from hudi_locks.lock import SetupStep, SetupTerms

Client = Callable[..., DynamoDBLockProvider]
BILLING = "hoodie.write.lock.dynamodb.billing_mode"
PAID_BY_REQUEST = {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}


def set_up(provider: DynamoDBLockProvider, *, dry_run: bool = False) -> SetupStep:
    [step] = provider.set_up(SetupTerms(dry_run=dry_run))
    return step


def test_a_missing_table_is_made_and_then_there(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    stub.table = None
    provider = client()
    step = set_up(provider, dry_run=True)
    assert (step.outcome, stub.made) == ("to make", [])
    step = set_up(provider)
    assert (step.outcome, len(stub.made)) == ("made", 1)
    assert "PAY_PER_REQUEST" in step.found
    stub.table |= PAID_BY_REQUEST
    assert set_up(provider) == SetupStep.there("lock-table", step.found)
    asked = len(stub.calls)
    assert provider.try_acquire(table, ada, 0) is not None
    assert "describe_table" not in stub.calls[asked:]


def test_units_are_told(client: Client, stub: Any) -> None:
    stub.table = None
    assert "PROVISIONED with 20 read and 10 write units" in set_up(client(**{BILLING: "provisioned"})).found
    assert stub.made[0]["BillingMode"] == "PROVISIONED"


@pytest.mark.parametrize(
    ("present", "asked", "is_told"),
    [
        ({}, "PROVISIONED", False),
        ({}, "PAY_PER_REQUEST", True),
        (PAID_BY_REQUEST, "PAY_PER_REQUEST", False),
        (PAID_BY_REQUEST, "PROVISIONED", True),
    ],
)
def test_another_billing_than_is_asked_for_is_told(
    client: Client, stub: Any, present: dict[str, Any], asked: str, *, is_told: bool
) -> None:
    stub.table |= present
    step = set_up(client(**{BILLING: asked}))
    assert step.outcome == "there"
    assert ("has no effect on a table that is there" in step.advice) is is_told


def test_a_table_with_another_key_cannot_be_used(client: Client, stub: Any) -> None:
    stub.table = stub.described(name="id")
    step = set_up(client())
    assert step.has_failed
    assert "a lock table has one string partition key 'key'" in step.found


@pytest.mark.parametrize("method", ["describe_table", "create_table"])
def test_a_missing_right_is_named(client: Client, stub: Any, method: str) -> None:
    operation = {"describe_table": "DescribeTable", "create_table": "CreateTable"}[method]
    stub.table = None
    stub.fail(stub.refusal("AccessDeniedException", operation), method)
    step = set_up(client())
    assert step.has_failed
    assert f"these credentials need dynamodb:{operation} on" in step.found
    assert "doctor --iam" in step.found
