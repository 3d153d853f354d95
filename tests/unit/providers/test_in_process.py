"""The lock among threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hudi_locks_providers.in_process import _REGISTRY
from waiting import until

from hudi_locks import AlreadyHeld, ConfigError, LockLost, LockManager, LossReason, ManualClock, Owner, ProviderClosed

Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    yield
    assert _REGISTRY.entries == {}


def started(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_one_table_one_holder_whichever_provider_object(make: Make, table: Any, ada: Owner, bob: Owner) -> None:
    one, two = make("in_process"), make("in_process")
    lease = one.try_acquire(table, ada, 0)
    assert two.try_acquire(table, bob, 0) is None
    assert two.holder(table).owner == ada
    with pytest.raises(AlreadyHeld):
        two.try_acquire(table, ada, 0)
    two.release(lease)
    assert two.try_acquire(table, bob, 0) is None  # the hold is that of the other client
    one.release(lease)
    assert two.try_acquire(table, bob, 0).token > lease.token


def test_waiters_are_served_in_order(make: Make, table: Any, ada: Owner, clock: ManualClock) -> None:
    provider = make("in_process")
    first = provider.try_acquire(table, ada, 0)
    order: list[int] = []

    def work(number: int) -> None:
        lease = provider.try_acquire(table, Owner(str(number)), 60)
        order.append(number)
        provider.release(lease)

    threads = []
    for number in range(4):
        threads.append(started(lambda number=number: work(number)))  # type: ignore[misc]
        until(lambda: clock.parked() == len(threads))
    provider.release(first)
    for thread in threads:
        thread.join(5)
    assert order == [0, 1, 2, 3]


def test_a_wait_ends_with_its_time(make: Make, table: Any, ada: Owner, bob: Owner, clock: ManualClock) -> None:
    provider = make("in_process")
    provider.try_acquire(table, ada, 0)
    answers: list[Any] = []
    thread = started(lambda: answers.append((provider.try_acquire(table, bob, 7), clock.monotonic())))
    assert until(lambda: clock.parked() == 1)
    began_s = clock.monotonic()
    clock.advance(7)
    thread.join(5)
    assert answers == [(None, began_s + 7)]


def test_close_ends_waits_and_frees_its_own_holds_only(
    make: Make, table: Any, ada: Owner, bob: Owner, clock: ManualClock
) -> None:
    holder, other = make("in_process"), make("in_process")
    lease = holder.try_acquire(table, ada, 0)
    raised: list[Exception] = []

    def wait() -> None:
        try:
            other.try_acquire(table, bob, 60)
        except ProviderClosed as error:
            raised.append(error)

    thread = started(wait)
    assert until(lambda: clock.parked() == 1)
    other.close()
    thread.join(5)
    assert len(raised) == 1
    holder.renew(lease)
    holder.close()
    with pytest.raises(LockLost):
        holder.renew(lease)


def test_a_broken_holder_is_told_once(make: Make, table: Any, ada: Owner, lost: list[Any]) -> None:
    provider = make("in_process")
    lease = provider.try_acquire(table, ada, 0)
    token = provider.holder(table).token
    assert make("in_process").break_if(table, token) is True
    assert make("in_process").break_if(table, token) is False
    assert lost == [(lease, LossReason.DELETED)]


def test_a_third_writer_gets_the_same_lock_after_a_close(make: Make, table: Any, ada: Owner, bob: Owner) -> None:
    first, second = make("in_process"), make("in_process")
    first.try_acquire(table, ada, 0)
    second.close()
    third = make("in_process")
    assert third.try_acquire(table, bob, 0) is None
    first.close()
    assert third.try_acquire(table, bob, 0) is not None


def test_managers_of_one_process_exclude_each_other() -> None:
    options = {"hoodie.write.lock.provider": "in_process", "hoodie.base.path": "/t"}
    counted = [0]

    def work() -> None:
        with LockManager.from_options(options) as manager:
            for _ in range(50):
                with manager.lock():
                    seen = counted[0]
                    threading.Event().wait(0)
                    counted[0] = seen + 1

    threads = [started(work) for _ in range(4)]
    for thread in threads:
        thread.join(20)
    assert counted == [200]


def test_a_base_path_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"in_process lock provider needs hoodie.base.path"):
        LockManager("in_process")
