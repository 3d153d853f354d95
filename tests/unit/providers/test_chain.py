"""Two locks held as one, while a table moves from one lock service to another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_providers.chain import ChainLockProvider
from hudi_locks_providers.filesystem import FileSystemLockProvider
from hudi_locks_providers.storage import StorageLockProvider

from hudi_locks import (
    BackendUnavailable,
    Capability,
    ConfigError,
    HoldState,
    LockLost,
    LockManager,
    LockProvider,
    LockScope,
    ManualClock,
    Owner,
    Unsupported,
)
from hudi_locks.config import redact

Make = Callable[..., Any]
FIRST, SECOND = "hudi_locks.chain.first.", "hudi_locks.chain.second."
PATH = "hoodie.write.lock.filesystem.path"


@pytest.fixture
def options(tmp_path: Path) -> dict[str, object]:
    """A migration from the file lock to the storage lock: two lines more than a writer had before."""
    return {
        "hoodie.base.path": f"memory://chain-{tmp_path.name}/t",
        PATH: str(tmp_path),
        "hoodie.write.lock.filesystem.expire": 5,
        "hoodie.write.lock.provider": "chain",
        "hudi_locks.chain.providers": "filesystem, storage",
    }


@pytest.fixture
def build(options: dict[str, object], clock: ManualClock) -> Iterator[Make]:
    made: list[LockProvider] = []

    def build_one(kind: type[LockProvider] = ChainLockProvider, **more: object) -> Any:
        made.append(kind({**options, **more}, clock=clock, on_lost=lambda *_: None))
        return made[-1]

    yield build_one
    for provider in made:
        provider.close()


@pytest.mark.parametrize("peer", [FileSystemLockProvider, StorageLockProvider])
def test_it_excludes_writers_that_hold_either(build: Make, table: LockScope, ada: Owner, bob: Owner, peer: Any) -> None:
    chain, alone = build(), build(peer)
    lease = chain.try_acquire(table, ada, 0)
    assert alone.try_acquire(table, bob, 0) is None
    chain.release(lease)
    held = alone.try_acquire(table, bob, 0)
    assert chain.try_acquire(table, ada, 0) is None
    alone.release(held)
    assert chain.try_acquire(table, ada, 0)


def test_a_refusal_of_the_second_leaves_the_first_free(build: Make, table: LockScope, ada: Owner, bob: Owner) -> None:
    build(StorageLockProvider).try_acquire(table, bob, 0)
    assert build().try_acquire(table, ada, 0) is None
    assert build(FileSystemLockProvider).try_acquire(table, bob, 0)


def test_a_failure_of_the_second_leaves_the_first_free(
    build: Make, table: LockScope, ada: Owner, bob: Owner, monkeypatch: Any
) -> None:
    chain = build()

    def fail(*_: Any) -> None:
        raise BackendUnavailable("down")

    with monkeypatch.context() as patch:
        patch.setattr(chain.members[1], "try_acquire", fail)
        patch.setattr(chain.members[0], "release_many", fail)
        with pytest.raises(BackendUnavailable):
            chain.try_acquire(table, ada, 0)
    lease = chain.try_acquire(table, ada, 0)
    assert lease is not None
    chain.release(lease)
    assert build(FileSystemLockProvider).try_acquire(table, bob, 0)


def test_locks_are_taken_in_order_and_given_back_in_reverse(
    build: Make, table: LockScope, ada: Owner, monkeypatch: Any
) -> None:
    chain = build()
    seen: list[tuple[str, int]] = []

    def note(name: str, place: int) -> None:
        call = getattr(chain.members[place], name)

        def noted(*given: Any) -> Any:
            seen.append((name, place))
            return call(*given)

        monkeypatch.setattr(chain.members[place], name, noted)

    for name in ("try_acquire", "release_many"):
        for place in (0, 1):
            note(name, place)
    chain.release(chain.try_acquire(table, ada, 0))
    assert seen == [("try_acquire", 0), ("try_acquire", 1), ("release_many", 1), ("release_many", 0)]


@pytest.mark.parametrize("place", [0, 1])
def test_the_loss_of_either_is_a_loss(build: Make, table: LockScope, ada: Owner, place: int) -> None:
    chain = build()
    lease = chain.try_acquire(table, ada, 0)
    type(chain.members[place]).conformance_hooks()(chain.members[place]).remove(table)
    with pytest.raises(LockLost):
        chain.renew(lease)
    chain.release(lease)
    assert chain.try_acquire(table, ada, 0)


def test_one_that_does_not_answer_does_not_keep_the_other_from_being_renewed(
    build: Make, table: LockScope, ada: Owner, clock: ManualClock, monkeypatch: Any
) -> None:
    chain = build()
    lease = chain.try_acquire(table, ada, 0)
    clock.advance(100)

    def fail(*_: Any) -> None:
        raise BackendUnavailable("down")

    with monkeypatch.context() as patch:
        patch.setattr(chain.members[0], "renew", fail)
        with pytest.raises(BackendUnavailable):
            chain.renew(lease)
    assert lease.state.parts[1].deadline_s == clock.monotonic() + 300
    assert chain.renew(lease).deadline_s == clock.monotonic() + 300


def test_the_earlier_deadline_counts(build: Make, table: LockScope, ada: Owner, clock: ManualClock) -> None:
    validity = {"hoodie.write.lock.storage.validity.timeout.secs": 900}
    lease = build(**validity).try_acquire(table, ada, 0)
    assert lease.deadline_s == clock.monotonic() + 300


@pytest.mark.parametrize("told", ["first", "second"])
def test_the_token_is_that_of_the_lock_that_all_writers_hold(
    build: Make, table: LockScope, ada: Owner, told: str
) -> None:
    peer = FileSystemLockProvider if told == "first" else StorageLockProvider
    chain, alone = build(**{"hudi_locks.chain.token": told}), build(peer)
    tokens = []
    for _ in range(3):
        for provider in (chain, alone):
            lease = provider.try_acquire(table, ada, 0)
            tokens.append(lease.token)
            provider.release(lease)
    assert tokens == sorted(set(tokens))


def test_a_holder_of_either_is_named_and_can_be_broken(build: Make, table: LockScope, ada: Owner, bob: Owner) -> None:
    chain = build()
    chain.try_acquire(table, ada, 0)
    token = build().holder(table).token
    assert build().break_if(table, token)
    assert build().holder(table) is None
    alone = build(StorageLockProvider)
    alone.try_acquire(table, bob, 0)
    found = build().holder(table)
    assert found.owner == bob
    assert not build().break_if(table, token)
    assert build().break_if(table, found.token)


def test_many_file_groups_at_once_or_none(build: Make, ada: Owner, bob: Owner) -> None:
    chain, scopes = build(), [LockScope.file_group("p", str(number)) for number in range(6)]
    build(StorageLockProvider).try_acquire(scopes[4], bob, 0)
    assert chain.acquire_many(scopes, ada, 0) is None
    leases = chain.acquire_many(scopes[:4], ada, 0)
    assert [lease.scope for lease in leases] == scopes[:4]
    chain.release_many(leases[1:])
    assert [build().holder(scope) is None for scope in scopes[:4]] == [False, True, True, True]
    assert build(FileSystemLockProvider).try_acquire(scopes[5], bob, 0)


def test_claims_are_those_that_hold_for_its_two(build: Make) -> None:
    assert Capability.NEEDS_CLOCK_SYNC in build().capabilities
    both = build(**{"hudi_locks.chain.providers": "dynamodb,zookeeper", **ZOOKEEPER, **DYNAMODB}).capabilities
    assert Capability.CLOCK_FREE in both
    assert Capability.NEEDS_CLOCK_SYNC not in both
    assert Capability.LOSS_NOTICE not in both
    assert Capability.TIMED_WAIT not in both
    assert ChainLockProvider.capabilities - both == {Capability.NEEDS_CLOCK_SYNC}


ZOOKEEPER = {
    "hoodie.write.lock.zookeeper.url": "h:1",
    "hoodie.write.lock.zookeeper.base_path": "/b",
    "hoodie.write.lock.zookeeper.lock_key": "k",
}
DYNAMODB = {"hoodie.write.lock.dynamodb.partition_key": "k"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"hudi_locks.chain.providers": "filesystem"}, "names 1 providers instead of two"),
        ({"hudi_locks.chain.providers": "filesystem,storage,dynamodb"}, "names 3 providers"),
        ({"hudi_locks.chain.providers": "filesystem,filesystem"}, "both providers .* are the same lock"),
        ({"hudi_locks.chain.providers": "filesystem,in_process"}, "'in_process' cannot be chained: .*SCOPE_HOSTS"),
        ({f"{SECOND}hoodie.write.lock.storage.validity.timeout.secs": "soon"}, "'soon' is no int"),
        ({f"{FIRST}hoodie.write.lock.filesystem.exprie": 1}, "did you mean hoodie.write.lock.filesystem.expire"),
    ],
)
def test_what_makes_no_chain_is_refused(options: dict[str, object], more: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LockManager.from_options({**options, **more})


def test_a_chain_within_a_chain_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        LockManager.from_options({**options, "hudi_locks.chain.providers": "chain,storage"})


def test_keys_of_one_member_are_its_own_and_known(build: Make, options: dict[str, object], tmp_path: Path) -> None:
    other = {"hudi_locks.chain.providers": "filesystem,filesystem", f"{SECOND}{PATH}": str(tmp_path / "new")}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        LockManager.from_options({**options, **other}).close()
    places = [member.holder_path(LockScope.table()) for member in build(**other).members]
    assert places == [f"{tmp_path}/lock", f"{tmp_path}/new/lock"]


def test_secrets_of_one_member_are_secrets() -> None:
    shown = redact({f"{FIRST}hoodie.aws.access.key": "a", f"{SECOND}{PATH}": "p"})
    assert shown == {f"{FIRST}hoodie.aws.access.key": "***", f"{SECOND}{PATH}": "p"}


def test_a_manager_renews_both_and_notices(options: dict[str, object], clock: ManualClock, tmp_path: Path) -> None:
    with LockManager.from_options(options, clock=clock) as manager:
        held = manager.lock()
        assert held._interval_s == 30
        (tmp_path / "lock").unlink()
        with pytest.raises(LockLost):
            held.verify()
        assert held.state is HoldState.LOST


def test_each_of_the_two_lists_its_own_holds(build: Make, table: LockScope, ada: Owner) -> None:
    provider = build()
    assert provider.try_acquire(table, ada, 0.0)
    with pytest.raises(Unsupported, match="ask filesystem and storage one after the other"):
        provider.list_holders()
    assert [holder.owner for holder in build(FileSystemLockProvider).list_holders()] == [ada]
    assert [holder.owner.id for holder in build(StorageLockProvider).list_holders()] == [ada.id]
