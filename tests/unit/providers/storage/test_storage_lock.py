"""What the storage lock does to its object, request by request."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hudi_locks import (
    AlreadyHeld,
    DamagedLockRecord,
    LockLost,
    LockManager,
    LockScope,
    LossReason,
    ManualClock,
    Owner,
    ProviderClosed,
)

Make = Callable[..., Any]
KEY = "t/.hoodie/.locks/table_lock.json"
JVM = "11111111-0000-4000-8000-000000000001"


def jvm_record(until_ms: int, *, expired: bool = False) -> bytes:
    return f'{{"expired":{str(expired).lower()},"validUntil":{until_ms},"owner":"{JVM}"}}'.encode()


def test_the_record_is_the_jvms_and_stays_after_the_release(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, clock: ManualClock
) -> None:
    provider = make_storage()
    lease = provider.try_acquire(table, ada, 0)
    held = json.loads(stub.objects[KEY])
    assert list(held) == ["expired", "validUntil", "owner"]
    assert (held["expired"], held["validUntil"]) == (False, clock.wall_ms() + 300_000)
    provider.release(lease)
    released = json.loads(stub.objects[KEY])
    assert released == {**held, "expired": True}


def test_a_remembered_record_costs_two_requests_and_one_for_the_token(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner
) -> None:
    provider = make_storage()
    provider.release(provider.try_acquire(table, ada, 0))
    stub.requests.clear()
    provider.release(provider.try_acquire(table, ada, 0))
    assert [method for method, _ in stub.requests] == ["PUT"] * 3
    assert stub.count(KEY) == 2


def test_polling_a_taken_lock_costs_one_request(make_storage: Make, stub: Any, table: Any, ada: Any, bob: Any) -> None:
    make_storage().try_acquire(table, ada, 0)
    other = make_storage()
    for _ in range(3):
        stub.requests.clear()
        assert other.try_acquire(table, bob, 0) is None
        assert stub.requests == [("GET", KEY)]


@pytest.mark.parametrize(("late_ms", "free"), [(-1, False), (500, False), (501, True)])
def test_a_record_of_the_jvm_is_good_for_half_a_second_longer_than_it_says(
    make_storage: Make, stub: Any, table: LockScope, bob: Owner, clock: ManualClock, late_ms: int, free: bool
) -> None:
    stub.objects[KEY] = jvm_record(clock.wall_ms() - late_ms)
    assert bool(make_storage().try_acquire(table, bob, 0)) is free


def test_a_jvm_holder_is_told_and_its_released_record_taken_over(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, clock: ManualClock
) -> None:
    provider = make_storage()
    stub.objects[KEY] = jvm_record(clock.wall_ms() + 7_000)
    holder = provider.holder(table)
    assert (holder.owner, holder.token, holder.expires_in_ms) == (Owner(JVM), JVM, 7_500)
    stub.objects[KEY] = jvm_record(clock.wall_ms() + 7_000, expired=True)
    assert provider.holder(table) is None
    assert provider.try_acquire(table, ada, 0)


def test_a_stale_memory_does_not_hide_a_free_lock(make_storage: Make, table: LockScope, ada: Owner, bob: Owner) -> None:
    one, two = make_storage(), make_storage()
    one.release(one.try_acquire(table, ada, 0))
    two.release(two.try_acquire(table, bob, 0))
    assert one.try_acquire(table, ada, 0)


def test_a_renewal_extends_the_record_and_a_loss_is_told_by_its_reason(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, clock: ManualClock
) -> None:
    provider = make_storage()
    lease = provider.try_acquire(table, ada, 0)
    clock.advance(100)
    renewed = provider.renew(lease)
    assert renewed.deadline_s == clock.monotonic() + 300
    assert json.loads(stub.objects[KEY])["validUntil"] == clock.wall_ms() + 300_000
    stub.objects[KEY] = jvm_record(clock.wall_ms() + 1)
    with pytest.raises(LockLost) as stolen:
        provider.renew(lease)
    del stub.objects[KEY]
    with pytest.raises(LockLost) as deleted:
        provider.renew(lease)
    clock.advance(300)
    with pytest.raises(LockLost) as expired:
        provider.renew(lease)
    reasons = [found.value.reason for found in (stolen, deleted, expired)]
    assert reasons == [LossReason.STOLEN, LossReason.DELETED, LossReason.EXPIRED]


def test_a_release_leaves_the_record_of_another_alone(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, clock: ManualClock
) -> None:
    provider = make_storage()
    lease = provider.try_acquire(table, ada, 0)
    stub.objects[KEY] = theirs = jvm_record(clock.wall_ms() + 9_000)
    provider.release(lease)
    provider.close()
    assert stub.objects[KEY] == theirs


def test_tokens_rise_over_takeovers_by_the_jvm_and_deletions(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, bob: Owner, clock: ManualClock
) -> None:
    tokens = []
    for number in range(4):
        provider = make_storage()
        lease = provider.try_acquire(table, ada, 0)
        tokens.append(lease.token)
        provider.close()
        if number == 1:
            stub.objects[KEY] = jvm_record(0, expired=True)
        if number == 2:
            del stub.objects[KEY]
    assert tokens == sorted(set(tokens))
    assert sum(".hudi_locks/tokens/" in key for key in stub.objects) == 1


def test_a_token_is_older_than_that_of_whoever_came_in_between(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, bob: Owner
) -> None:
    """A contender that pauses between its token and its record does not get in with an old token."""
    slow, quick = make_storage(), make_storage()
    advance = slow._tokens.advance

    def pause(name: str, by: int = 1) -> int:
        slow._tokens.advance = advance
        token: int = advance(name, by)
        quick.release(quick.try_acquire(table, bob, 0))
        return token

    slow._tokens.advance = pause
    assert slow.try_acquire(table, ada, 0) is None
    between = json.loads(stub.objects["t/.hoodie/.locks/.hudi_locks/tokens/table"])["token"]
    assert slow.try_acquire(table, ada, 0).token > between


def test_a_damaged_record_is_no_free_lock_and_can_be_broken(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner
) -> None:
    provider = make_storage()
    stub.objects[KEY] = b'{"expired":tr'
    with pytest.raises(DamagedLockRecord, match=r"table_lock.json holds no lock record.*hudi-locks unlock"):
        provider.try_acquire(table, ada, 0)
    assert provider.break_if(table, "another") is False
    assert provider.break_if(table, provider.holder(table).token) is True
    assert provider.try_acquire(table, ada, 0)


@pytest.mark.parametrize(("renewals", "is_removed"), [(1, True), (100, False)])
def test_a_hold_that_is_renewed_while_it_is_broken_is_tried_again(
    make_storage: Make, table: LockScope, ada: Owner, renewals: int, is_removed: bool
) -> None:
    one, two = make_storage(), make_storage()
    lease = one.try_acquire(table, ada, 0)
    expire, left = two._records.expire, [None] * renewals

    def renew_first(key: str, found: Any) -> bool:
        nonlocal lease
        if left:
            left.pop()
            one.clock.advance(1)
            lease = one.renew(lease)
        return bool(expire(key, found))

    two._records.expire = renew_first
    assert two.break_if(table, two.holder(table).token) is is_removed
    assert (two.holder(table) is None) is is_removed


def test_a_hold_is_broken_by_its_token_only(make_storage: Make, table: LockScope, ada: Owner, bob: Owner) -> None:
    one, two = make_storage(), make_storage()
    lease = one.try_acquire(table, ada, 0)
    token = two.holder(table).token
    assert two.break_if(table, token)
    assert not two.break_if(table, token)
    with pytest.raises(LockLost):
        one.renew(lease)


def test_file_groups_have_objects_of_their_own(make_storage: Make, stub: Any, ada: Owner) -> None:
    provider = make_storage()
    scopes = [LockScope.file_group("a", "b/c"), LockScope.file_group("a/b", "c"), LockScope.file_group("", "a/b/c")]
    assert all(provider.try_acquire(scope, ada, 0) for scope in scopes)
    assert sum("/.hudi_locks/file_groups/" in key for key in stub.objects) == 3


def test_many_are_acquired_at_once_or_not_at_all(make_storage: Make, stub: Any, ada: Owner, bob: Owner) -> None:
    one, two = make_storage(), make_storage()
    scopes = [LockScope.file_group("p", str(number)) for number in range(40)]
    leases = one.acquire_many(scopes, ada, 0)
    assert [lease.scope for lease in leases] == sorted(scopes, key=str)
    assert len({lease.token for lease in leases if lease.scope}) >= 2
    one.release(leases[7])
    assert two.acquire_many([leases[7].scope, leases[8].scope], bob, 0) is None
    assert two.try_acquire(leases[7].scope, bob, 0)


def test_many_leave_nothing_behind_when_one_is_lost_in_a_race(make_storage: Make, stub: Any, ada: Owner) -> None:
    provider, scopes = make_storage(), [LockScope.file_group("p", str(number)) for number in range(8)]
    late = provider.key(sorted(scopes, key=str)[5])
    stub.once(412, key=late)
    stub.once(404, method="GET", key=late)
    stub.objects[late] = jvm_record(2**52)
    assert provider.acquire_many(scopes, ada, 0) is None
    del stub.objects[late]
    held = [key for key, data in stub.objects.items() if "file_groups" in key and not json.loads(data)["expired"]]
    assert held == []


def test_many_take_few_requests_once_they_are_remembered(make_storage: Make, stub: Any, ada: Owner) -> None:
    provider, scopes = make_storage(), [LockScope.file_group("p", str(number)) for number in range(100)]
    provider.release_many(provider.acquire_many(scopes, ada, 0))
    stub.requests.clear()
    leases = provider.acquire_many(scopes, ada, 0)
    assert len(stub.requests) <= 100 + 16
    provider.release_many(leases)
    assert all(provider.holder(scope) is None for scope in scopes)


def test_many_are_given_back_when_no_thread_can_be_started(make_storage: Make, ada: Owner, monkeypatch: Any) -> None:
    """As at the end of the interpreter."""
    provider, scopes = make_storage(), [LockScope.file_group("p", str(number)) for number in range(3)]
    leases = provider.acquire_many(scopes, ada, 0)

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    provider.release_many(leases)
    assert all(provider.holder(scope) is None for scope in scopes)


def test_its_owner_is_told_that_it_holds_already(make_storage: Make, table: LockScope, ada: Owner) -> None:
    provider = make_storage()
    provider.try_acquire(table, ada, 0)
    with pytest.raises(AlreadyHeld):
        provider.try_acquire(table, ada, 0)
    with pytest.raises(AlreadyHeld):
        provider.acquire_many([LockScope.file_group("p", "f")] * 2, ada, 0)


def test_a_forked_child_holds_nothing_and_says_how_to_start_one(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner
) -> None:
    provider = make_storage()
    lease = provider.try_acquire(table, ada, 0)
    read, write = os.pipe()
    if not (pid := os.fork()):
        told = [_say(lambda: provider.renew(lease)), _say(lambda: provider.try_acquire(table, ada, 0))]
        provider.release(lease)
        provider.close()
        told.append(_say(lambda: make_storage().holder(table)))
        os.write(write, " | ".join(told).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    said = os.read(read, 4096).decode().split(" | ")
    assert [one.partition(":")[0] for one in said] == ["LockLost", "ProviderClosed", "BackendRefused"]
    assert "parent process" in said[0]
    assert "spawn" in said[2]
    assert json.loads(stub.objects[KEY])["expired"] is False
    provider.renew(lease)


def _say(call: Callable[[], Any]) -> str:
    try:
        return repr(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_a_closed_provider_says_so(make_storage: Make, table: LockScope, ada: Owner) -> None:
    provider = make_storage()
    provider.close()
    with pytest.raises(ProviderClosed):
        provider.try_acquire(table, ada, 0)


@pytest.mark.parametrize("name", ["renew.interval.secs", "heartbeat.poll.secs"])
def test_the_manager_renews_as_often_as_hudis_key_says(stub: Any, clock: ManualClock, name: str) -> None:
    options = {
        "hoodie.base.path": "memory://renewals/t",
        f"hoodie.write.lock.storage.{name}": 7,
        "hoodie.write.lock.storage.validity.timeout.secs": 70,
    }
    with LockManager("storage", options, clock=clock) as manager:
        assert manager._heartbeat_s == 7
        assert manager.lock().state.name == "HELD"
