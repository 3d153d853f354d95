"""Many locks at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hudi_locks_providers.dynamodb import DynamoDBLockProvider

from hudi_locks import (
    BackendUnavailable,
    ConfigError,
    LockScope,
    Owner,
)

Client = Callable[..., DynamoDBLockProvider]
GROUPS = [LockScope.file_group("city=oslo", f"file-{number}") for number in range(250)]


def test_many_locks_in_few_requests(client: Client, stub: Any, ada: Owner, bob: Owner) -> None:
    provider, other = client(), client()
    leases = provider.acquire_many(GROUPS, ada, 0)
    assert leases is not None
    assert {lease.scope for lease in leases} == set(GROUPS)
    assert stub.count().count("transact_write_items") <= 4
    assert len(stub.items) - len(GROUPS) <= 32, "the counters do not grow with the file groups"
    assert other.acquire_many(GROUPS[10:12], bob, 0) is None
    for lease in leases:
        provider.renew(lease)
        provider.release(lease)
    assert other.acquire_many(GROUPS[10:12], bob, 0) is not None


def test_many_locks_are_all_or_nothing(client: Client, stub: Any, ada: Owner, bob: Owner) -> None:
    provider, other = client(), client()
    before = other.try_acquire(GROUPS[200], bob, 0)
    assert before is not None
    assert provider.acquire_many(GROUPS, ada, 0) is None
    assert sum("hudi_locks/" in key for key in stub.items) == 1
    other.release(before)
    leases = provider.acquire_many(GROUPS, ada, 0)
    assert leases is not None
    assert all((lease.token or 0) > (before.token or 0) for lease in leases if lease.scope == before.scope)


@pytest.mark.parametrize("lost", [("transact_write_items",), ("transact_write_items", "get_item")])
def test_many_locks_whose_answer_is_lost(
    client: Client, stub: Any, ada: Owner, bob: Owner, lost: tuple[str, ...]
) -> None:
    provider = client()
    stub.lose_answers(*lost, times=len(lost))
    if len(lost) == 1:
        assert provider.acquire_many(GROUPS[:5], ada, 0) is not None
        return
    with pytest.raises(BackendUnavailable):
        provider.acquire_many(GROUPS[:5], ada, 0)
    assert provider.acquire_many(GROUPS[:5], bob, 0) is not None


def test_names_of_file_groups_do_not_meet(client: Client) -> None:
    keys = client().keys
    scopes = [("a", "b/c"), ("a/b", "c"), ("", "a/b/c"), ("a#1:b", "c")]
    assert len({keys.lock(LockScope.file_group(*names)) for names in scopes}) == len(scopes)
    with pytest.raises(ConfigError, match="2048"):
        keys.lock(LockScope.file_group("x" * 3000, "f"))
