"""A table changes its lock service while its writers go on: ZooKeeper to an S3 bucket, both real."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hudi_locks_conformance import Harness
from hudi_locks_conformance.servers import Server
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers.chain import ChainLockProvider

from hudi_locks import LockManager, LockScope, Owner, SystemClock
from hudi_locks.lock import load_provider_class

pytestmark = pytest.mark.servers
OLD, BOTH, NEW = "zookeeper", "chain", "storage"
WRITERS, HOLDS = 2, 15
TABLE = LockScope.table()


@pytest.fixture
def options(zookeeper: Server, versitygw: Server) -> dict[str, str]:
    name = uuid.uuid4().hex[:8]
    return {
        **zookeeper.options,
        **versitygw.options,
        "hoodie.base.path": f"s3a://locks/migration/{name}",
        "hoodie.write.lock.zookeeper.lock_key": name,
        "hudi_locks.chain.providers": "zookeeper,storage",
        "hoodie.write.lock.wait_time_ms_between_retry": "5",
        "hoodie.write.lock.max_wait_time_ms_between_retry": "20",
        "hoodie.write.lock.num_retries": "10000",
    }


class Section:
    """What the lock protects: notes who is inside, and whom they met."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.met: list[tuple[str, ...]] = []
        self.tokens: list[int] = []
        self.guard = threading.Lock()

    def enter(self, name: str, token: int) -> None:
        with self.guard:
            if self.inside:
                self.met.append((name, *self.inside))
            self.inside.append(name)
            self.tokens.append(token)
        SystemClock().sleep(0.002)  # real time: a section that lasts
        with self.guard:
            self.inside.remove(name)


def write(options: dict[str, str], provider: str, section: Section) -> None:
    with LockManager(provider, options) as manager:
        for _ in range(HOLDS):
            with manager.lock(timeout_s=120) as held:
                section.enter(provider, held.token or 0)


@pytest.mark.parametrize(("alone", "told"), [(OLD, "first"), (NEW, "second")])
def test_writers_with_one_lock_and_with_both_exclude_each_other(options: dict[str, str], alone: str, told: str) -> None:
    section = Section()
    full = {**options, "hudi_locks.chain.token": told}
    names = [alone] * WRITERS + [BOTH] * WRITERS
    writers = [threading.Thread(target=write, args=(full, name, section)) for name in names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(180)
    assert section.met == []
    assert len(section.tokens) == len(names) * HOLDS
    assert section.tokens == sorted(set(section.tokens))


@pytest.fixture
def make(options: dict[str, str]) -> Iterator[Callable[[str], Any]]:
    made: list[Any] = []

    def make_one(name: str) -> Any:
        made.append(load_provider_class(name)(options, clock=SystemClock(), on_lost=lambda *_: None))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


def test_a_session_that_ends_is_the_loss_of_both(options: dict[str, str]) -> None:
    lost = threading.Event()
    with LockManager(BOTH, options) as manager:
        held = manager.lock(timeout_s=30, on_lost=lambda *_: lost.set())
        found = manager.holder()
        assert found is not None
        old = manager.provider.members[0]  # type: ignore[attr-defined]
        holder = old.holder(TABLE)
        assert old.break_if(TABLE, holder.token)
        assert lost.wait(30)
        assert held.reason is not None


def test_an_attempt_that_meets_the_new_lock_leaves_no_node(make: Callable[[str], Any]) -> None:
    held = make(NEW).try_acquire(TABLE, Owner("new"), 0)
    assert held is not None
    assert make(BOTH).try_acquire(TABLE, Owner("both"), 0) is None
    assert make(OLD).holder(TABLE) is None


class TestOverTwoServices(LockProviderSuite):
    only = ("A", "B", "C", "D", "F", "H", "J", "K", "L")
    claims = ChainLockProvider.capabilities

    @pytest.fixture
    def harness(self, versitygw: Server, azurite: Server) -> Harness:
        options = {
            "hudi_locks.chain.providers": "storage,storage",
            **{f"hudi_locks.chain.first.{key}": value for key, value in versitygw.options.items()},
            **{f"hudi_locks.chain.second.{key}": value for key, value in azurite.options.items()},
        }
        return Harness("chain", options, seed=1, virtual_time=True)
