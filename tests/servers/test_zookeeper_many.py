"""Many file groups at once on a real ZooKeeper: all or none, by whatever way, and nobody waits for ever."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hudi_locks_conformance.servers import Server
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.serialization import Transaction
from waiting import until

from hudi_locks import BackendUnavailable, LockScope, Owner, SystemClock

pytestmark = pytest.mark.servers

URL = "hoodie.write.lock.zookeeper.url"
BASE = "hoodie.write.lock.zookeeper.base_path"
TABLE = LockScope.table()
ADA, BOB = Owner("ada", "host-a", 11), Owner("bob", "host-b", 22)
GROUPS = [LockScope.file_group("a=1/b=2", f"f-{number:04d}") for number in range(50)]
Make = Callable[[], ZooKeeperLockProvider]


@pytest.fixture
def base() -> str:
    return f"/{uuid.uuid4().hex[:8]}"


@pytest.fixture
def make(zookeeper: Server, base: str) -> Iterator[Make]:
    made: list[ZooKeeperLockProvider] = []

    def make_one() -> ZooKeeperLockProvider:
        made.append(ZooKeeperLockProvider({**zookeeper.options, BASE: base}, clock=SystemClock(), on_lost=fail))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


def fail(*arguments: object) -> None:
    pytest.fail(f"lost {arguments}")


@pytest.fixture
def raw(zookeeper: Server) -> Iterator[Any]:
    client = KazooClient(zookeeper.options[URL])
    client.start()
    yield client
    client.stop()
    client.close()


def test_all_are_held_by_one_transaction_and_nothing_is_left(make: Make, raw: Any, base: str) -> None:
    provider, other = make(), make()
    leases = provider.acquire_many(GROUPS, ADA, 0)
    assert leases is not None
    assert [lease.scope for lease in leases] == GROUPS
    assert len({lease.token for lease in leases}) == 1
    assert other.try_acquire(GROUPS[7], BOB, 0) is None
    assert all(provider.renew(lease).token == lease.token for lease in leases)
    provider.release_many(leases)
    assert raw.get_children(f"{base}/a=1/b=2") == []
    provider.close()
    assert raw.exists(f"{base}/a=1") is None


def test_tokens_grow(make: Make) -> None:
    provider = make()
    tokens = []
    for _ in range(3):
        leases = provider.acquire_many(GROUPS[:3], ADA, 0)
        assert leases is not None
        tokens.append(leases[0].token or 0)
        provider.release_many(leases)
        single = provider.try_acquire(GROUPS[0], ADA, 0)
        assert single is not None
        tokens.append(single.token or 0)
        provider.release(single)
    assert tokens == sorted(set(tokens))


def test_none_is_held_when_one_is_taken(make: Make, raw: Any, base: str) -> None:
    provider, other = make(), make()
    taken = other.try_acquire(GROUPS[30], BOB, 0)
    assert taken is not None
    assert provider.acquire_many(GROUPS, ADA, 0) is None
    assert raw.get_children(f"{base}/a=1/b=2") == [GROUPS[30].file_id]
    other.release(taken)
    assert provider.acquire_many(GROUPS, ADA, 0) is not None


def test_it_waits_for_one_that_is_taken(make: Make) -> None:
    provider, other = make(), make()
    taken = other.try_acquire(GROUPS[3], BOB, 0)
    assert taken is not None
    release = threading.Timer(0.3, other.release, [taken])
    release.start()
    leases = provider.acquire_many([*GROUPS[:6], TABLE], ADA, 10)
    release.join()
    assert leases is not None
    assert {lease.scope for lease in leases} == {*GROUPS[:6], TABLE}


def test_folders_that_jvm_writers_left_are_no_hindrance(make: Make, raw: Any, base: str) -> None:
    for scope in GROUPS[::7]:
        raw.create(f"{base}/{scope}", b"10.0.0.1", makepath=True)
    leases = make().acquire_many(GROUPS, ADA, 0)
    assert leases is not None
    assert len(leases) == len(GROUPS)


def test_callers_with_common_groups_take_turns_and_none_waits_for_ever(make: Make) -> None:
    inside: list[LockScope] = []
    met: list[LockScope] = []
    done: list[int] = []

    def contend(number: int, scopes: list[LockScope]) -> None:
        provider = make()
        for _ in range(10):
            leases = provider.acquire_many(scopes, Owner(str(number)), 30)
            assert leases is not None
            met.extend(scope for scope in scopes if scope in inside)
            inside.extend(scopes)
            for scope in scopes:
                inside.remove(scope)
            provider.release_many(leases)
        done.append(number)

    orders = [GROUPS[:8], GROUPS[7::-1], GROUPS[4:8], GROUPS[:5]]
    threads = [threading.Thread(target=contend, args=(number, order)) for number, order in enumerate(orders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == [0, 1, 2, 3]
    assert met == []


def test_a_file_group_taken_by_one_alone_and_by_one_with_others_does_not_deadlock(
    make: Make, raw: Any, base: str
) -> None:
    """One holds a late group and asks for nothing else; the other waits for it with the early ones held."""
    first, second = make(), make()
    late = first.try_acquire(GROUPS[5], ADA, 0)
    assert late is not None
    got: list[Any] = []
    waiter = threading.Thread(target=lambda: got.append(second.acquire_many(GROUPS[:8], BOB, 10)))
    waiter.start()
    folder = first.find_folder(GROUPS[5])
    assert until(lambda: len(raw.get_children(folder)) > 1), "the other one does not stand in line"
    assert first.try_acquire(GROUPS[7], ADA, 0) is not None, "whoever waits must not stand in later lines"
    first.release(late)
    first.close()
    waiter.join(20)
    assert got
    assert got[0] is not None


def test_the_lost_answer_of_a_transaction_is_found_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = make()
    session = provider.client.session
    call = session.call

    def lose(*requests: Any) -> list[Any]:
        outcomes = call(*requests)
        return [ConnectionLoss()] * len(requests) if isinstance(requests[0], Transaction) else outcomes

    warm = provider.acquire_many(GROUPS[:2], ADA, 0)
    assert warm is not None
    monkeypatch.setattr(session, "call", lose)
    leases = provider.acquire_many(GROUPS[2:5], ADA, 0)
    assert leases is not None
    assert make().try_acquire(GROUPS[2], BOB, 0) is None
    monkeypatch.undo()
    provider.release_many([*warm, *leases])
    assert make().try_acquire(GROUPS[2], BOB, 0) is not None


def test_a_transaction_that_did_not_arrive_is_an_error_and_leaves_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = make()
    session = provider.client.session
    call = session.call

    def drop(*requests: Any) -> list[Any]:
        return [ConnectionLoss()] * len(requests) if isinstance(requests[0], Transaction) else call(*requests)

    provider.release_many(provider.acquire_many(GROUPS[:3], ADA, 0) or [])
    monkeypatch.setattr(session, "call", drop)
    with pytest.raises(BackendUnavailable):
        provider.acquire_many(GROUPS[:3], ADA, 0)
    assert make().acquire_many(GROUPS[:3], BOB, 5) is not None
