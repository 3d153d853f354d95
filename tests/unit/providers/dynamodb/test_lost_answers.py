"""Answers that are lost: resolved by reading back, for acquire, renewal and release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from hudi_locks_providers.dynamodb import DynamoDBLockProvider

from hudi_locks import (
    BackendUnavailable,
    LockScope,
    Owner,
)

Client = Callable[..., DynamoDBLockProvider]


@pytest.mark.parametrize("jvm", [False, True])
def test_an_acquire_whose_answer_is_lost_is_found(
    client: Client, stub: Any, table: LockScope, ada: Owner, jvm: bool
) -> None:
    provider = client()
    if jvm:
        stub.put_jvm_item()
        provider.try_acquire(table, ada, 0)
        stub.items.clear()
    stub.lose_answers("put_item", "transact_write_items")
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    provider.release(provider.renew(lease))
    assert "trips" not in stub.items


def test_an_acquire_that_nobody_can_confirm_is_taken_back_when_met(
    client: Client, stub: Any, table: LockScope, ada: Owner, bob: Owner
) -> None:
    provider = client()
    stub.lose_answers("transact_write_items", "get_item", times=2)
    with pytest.raises(BackendUnavailable):
        provider.try_acquire(table, ada, 0)
    assert "trips" in stub.items
    assert client().try_acquire(table, bob, 0) is None
    assert provider.try_acquire(table, bob, 0) is not None, "it knows its own orphan, and waits for no lease"


def test_an_orphan_goes_when_its_client_closes(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    stub.lose_answers("transact_write_items", "get_item", times=2)
    with pytest.raises(BackendUnavailable):
        provider.try_acquire(table, ada, 0)
    provider.close()
    assert "trips" not in stub.items


def test_a_renewal_whose_answer_is_lost_counts(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    stub.lose_answers("update_item")
    lease = provider.renew(lease)
    provider.renew(lease)


def test_a_renewal_that_nobody_can_confirm_leaves_both_versions_ours(
    client: Client, stub: Any, table: LockScope, ada: Owner
) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    stub.lose_answers("update_item", "get_item", times=2)
    with pytest.raises(BackendUnavailable):
        provider.renew(lease)
    provider.renew(lease)
    provider.release(lease)
    assert "trips" not in stub.items


def test_a_release_whose_answer_is_lost_is_done(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    stub.lose_answers("delete_item")
    provider.release(lease)
    assert provider.try_acquire(table, ada, 0) is not None


def test_a_release_that_failed_can_be_repeated(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    stub.fail(ReadTimeoutError(endpoint_url="http://stub"), "delete_item")
    with pytest.raises(BackendUnavailable):
        provider.release(lease)
    stub.before = lambda *_: None
    provider.release(lease)
    assert "trips" not in stub.items
