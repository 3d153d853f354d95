"""The ZooKeeper providers on a real server: judged by the kit, by their nodes, and beside Curator and JVM Hudi."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.history import find_overlaps
from hudi_locks_conformance.partners import JvmContender, Partner, curator, hudi, run_mixed_storm
from hudi_locks_conformance.servers import Server
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers.zookeeper import ZooKeeperImplicitLockProvider, ZooKeeperLockProvider
from kazoo.client import KazooClient
from waiting import until

from hudi_locks import LockScope, Owner, SystemClock

pytestmark = pytest.mark.servers

PACKAGE = "org.apache.hudi.client.transaction.lock"
EXPLICIT = f"{PACKAGE}.ZookeeperBasedLockProvider"
IMPLICIT = f"{PACKAGE}.ZookeeperBasedImplicitBasePathLockProvider"
URL = "hoodie.write.lock.zookeeper.url"
BASE = "hoodie.write.lock.zookeeper.base_path"
KEY = "hoodie.write.lock.zookeeper.lock_key"
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "zookeeper_nodes.json").read_text())
TABLE = LockScope.table()
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ADA = Owner("ada", "host-a", 11, "main", "etl", trace=TRACE)
HOLDS = 15
Make = Callable[..., ZooKeeperLockProvider]


class TestExplicit(LockProviderSuite):
    level = Level.EXTRA
    claims = ZooKeeperLockProvider.capabilities

    @pytest.fixture
    def harness(self, zookeeper: Server) -> Harness:
        return Harness("zookeeper", zookeeper.options, seed=1, server=zookeeper)


class TestImplicit(LockProviderSuite):
    """The provider of above, but for the place of its node."""

    only = ("A", "B1", "B8", "C", "K", "L7")
    claims = ZooKeeperImplicitLockProvider.capabilities

    @pytest.fixture
    def harness(self, zookeeper: Server) -> Harness:
        return Harness(IMPLICIT, zookeeper.options, seed=2, server=zookeeper)


@pytest.fixture
def options(zookeeper: Server) -> dict[str, str]:
    """Options for a lock of its own, by either provider."""
    name = uuid.uuid4().hex[:8]
    return {**zookeeper.options, BASE: f"/{name}", KEY: "key", "hoodie.base.path": f"s3a://lake/{name}"}


@pytest.fixture
def make(options: dict[str, str]) -> Iterator[Make]:
    made: list[ZooKeeperLockProvider] = []

    def make_one(kind: type[ZooKeeperLockProvider] = ZooKeeperLockProvider, **more: str) -> ZooKeeperLockProvider:
        made.append(kind({**options, **more}, clock=SystemClock(), on_lost=lambda *_: None))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


@pytest.fixture
def raw(zookeeper: Server) -> Iterator[Any]:
    """An unrelated client."""
    client = KazooClient(zookeeper.options[URL])
    client.start()
    yield client
    client.stop()
    client.close()


def shape(client: Any, base: str) -> list[dict[str, Any]]:
    """All nodes from `base` downwards, with what differs each time replaced."""
    data, stat = client.get(base)
    path = re.sub(r"_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}$", "_c_<uuid>-lock-<number>", base)
    text = re.sub(r"^\d+\.\d+\.\d+\.\d+$", "<address>", data.decode())
    (acl,) = client.get_acls(base)[0]
    assert (acl.perms, acl.id.scheme, acl.id.id) == (31, "world", "anyone")
    own = {"path": path, "ephemeral": bool(stat.ephemeralOwner), "data": text}
    return [own, *(node for child in client.get_children(base) for node in shape(client, f"{base}/{child}"))]


def test_our_nodes_are_hudis(make: Make, options: dict[str, str], raw: Any) -> None:
    provider = make()
    lease = provider.try_acquire(TABLE, Owner("x", "h", 1, "t"), 0)
    assert lease is not None
    found = [{**node, "path": node["path"].replace(options[BASE], "/base")} for node in shape(raw, options[BASE])]
    assert found[-1].pop("data") == "application_id=Unknown,owner=x,host=h,pid=1,thread=t"
    expected = [dict(node) for node in GOLDEN["hudi 1.2.0"]]
    assert expected[-1].pop("data") == "application_id=Unknown"
    assert found == expected


PARTNERS = {
    "curator": "zookeeper",
    "hudi 1.2.0": "zookeeper",
    "hudi 1.0.2": "zookeeper",
    "implicit 1.2.0": "zookeeper_implicit",
    "implicit 1.0.2": "zookeeper_implicit",
}


def partner(name: str, options: dict[str, str]) -> Partner:
    kind, _, version = name.partition(" ")
    if kind == "curator":
        return curator(options[URL], f"{options[BASE]}/{options[KEY]}")
    return hudi(EXPLICIT if kind == "hudi" else IMPLICIT, options, version=version)


def kind_of(name: str) -> type[ZooKeeperLockProvider]:
    return ZooKeeperImplicitLockProvider if PARTNERS[name] == "zookeeper_implicit" else ZooKeeperLockProvider


def test_a_lock_below_another_is_no_holder_of_it(make: Make, options: dict[str, str]) -> None:
    outer, inner = make(), make(**{BASE: f"{options[BASE]}/{options[KEY]}"})
    theirs = inner.try_acquire(TABLE, ADA, 0)
    assert theirs
    assert outer.holder(TABLE) is None
    lease = outer.try_acquire(TABLE, ADA, 0)
    assert lease
    found = outer.holder(TABLE)
    assert found is not None
    assert found.owner == ADA
    outer.release(lease)


def test_all_that_is_held_below_the_base_path_is_listed_and_nothing_else(make: Make) -> None:
    provider, other, dated = make(), make(**{KEY: "other"}), LockScope.file_group("2024/01", "f1")
    assert provider.list_holders() == []
    for holder, scope in ((provider, TABLE), (provider, dated), (other, TABLE)):
        assert holder.try_acquire(scope, ADA, 0.0)
    found = make().list_holders()
    assert [(one.scope, one.owner) for one in found] == [("table", ADA), ("other", ADA), ("2024/01/f1", ADA)]
    told = make().holder(dated)
    assert told is not None
    assert (found[2].key, found[2].token) == (told.key, told.token)


def test_who_stands_in_line_is_told_the_next_first(make: Make) -> None:
    holder, watcher = make(), make()
    assert holder.try_acquire(TABLE, ADA, 0.0)
    lined = [Owner(name, "host-b", number, "main", name) for number, name in enumerate(("bea", "cleo"))]
    with ThreadPoolExecutor() as pool:
        for place, owner in enumerate(lined, 1):
            pool.submit(make().try_acquire, TABLE, owner, HOLDS)
            assert until(partial(stands_in_line, watcher, place))
        told = watcher.holder(TABLE)
        assert told is not None
        assert (told.owner, told.waiting) == (ADA, tuple(lined))
        assert dict(told.describe())["in line"] == "bea (pid 0 on host-b), cleo (pid 1 on host-b)"
        holder.close()


def stands_in_line(provider: ZooKeeperLockProvider, count: int) -> bool:
    held = provider.holder(TABLE)
    return held is not None and len(held.waiting) == count


@pytest.mark.usefixtures("jvm")
class TestBesideTheJvm:
    @pytest.mark.parametrize("name", PARTNERS)
    def test_it_waits_for_us(self, name: str, make: Make, options: dict[str, str]) -> None:
        provider = make(kind_of(name))
        lease = provider.try_acquire(TABLE, ADA, 0)
        assert lease is not None
        with JvmContender(partner(name, options), "hold", 0.05) as contender:
            assert not contender.wait_held(3)
            lease = provider.renew(lease)
            freeing_ns = SystemClock().monotonic() * 1e9
            provider.release(lease)
            (hold,) = contender.finish().holds()
        assert hold.begin_ns >= freeing_ns

    @pytest.mark.parametrize("name", PARTNERS)
    def test_we_wait_for_it_and_can_tell_who_it_is(self, name: str, make: Make, options: dict[str, str]) -> None:
        provider = make(kind_of(name))
        with JvmContender(partner(name, options), "hold", 1, until_told=True) as contender:
            assert contender.wait_held(60)
            holder = provider.holder(TABLE)
            assert holder is not None
            assert holder.raw == "application_id=Unknown" or re.fullmatch(r"[\d.]+", holder.owner.host)
            assert provider.try_acquire(TABLE, ADA, 0) is None
            assert provider.try_acquire(TABLE, ADA, 0.1) is None
            contender.let_go()
            lease = provider.try_acquire(TABLE, ADA, 30)
            taken_ns = SystemClock().monotonic() * 1e9
            (hold,) = contender.finish().holds()
        assert lease is not None
        assert taken_ns >= hold.end_ns

    @pytest.mark.parametrize("name", PARTNERS)
    def test_a_storm_of_four_of_ours_and_two_of_theirs(self, name: str, options: dict[str, str]) -> None:
        mine = {key: value for key, value in options.items() if key != "hoodie.write.lock.provider"}
        history = run_mixed_storm(PARTNERS[name], mine, [partner(name, options)] * 2, ours=4, holds=HOLDS)
        assert len(history.holds()) == 6 * HOLDS
        assert find_overlaps(history) == []

    def test_a_file_group_is_where_direct_markers_lock_it(self, make: Make, options: dict[str, str], raw: Any) -> None:
        theirs = {**options, KEY: "city=x/f-0"}
        scope, provider = LockScope.file_group("city=x", "f-0"), make()
        with JvmContender(hudi(EXPLICIT, theirs), "hold", 0, until_told=True) as contender:
            assert contender.wait_held(60)
            assert provider.try_acquire(scope, ADA, 0) is None
            contender.let_go()
            lease = provider.try_acquire(scope, ADA, 30)
            contender.finish()
        assert lease is not None
        provider.release(lease)
        assert raw.get_children(f"{options[BASE]}/city=x") == []

    def test_removing_empty_parents_does_not_harm_it(self, options: dict[str, str], make: Make) -> None:
        theirs = {**options, KEY: "city=x/f-0"}
        scope, provider = LockScope.file_group("city=x", "f-0"), make()
        with JvmContender(hudi(EXPLICIT, theirs), "storm", 60) as contender:
            taken = 0
            while not contender.has_ended():
                lease = provider.try_acquire(scope, ADA, 5)
                if lease is not None:
                    taken += 1
                    provider.release(lease)
            assert len(contender.finish().holds()) == 60
        assert taken
