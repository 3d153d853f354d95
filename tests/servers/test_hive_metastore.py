"""The Hive Metastore provider on a real metastore, judged by the kit, and beside Hudi's own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.history import find_overlaps
from hudi_locks_conformance.partners import JvmContender, hudi, run_mixed_storm
from hudi_locks_conformance.servers import LocalServer, Server, start_server
from hudi_locks_conformance.servers.hive_metastore import HiveMetastore
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers._wire.hive_lock import LockRow
from hudi_locks_providers.hive_metastore import HiveMetastoreLockProvider

from hudi_locks import Lease, LockLost, LockManager, LockScope, Owner, SystemClock

pytestmark = pytest.mark.servers

TABLE = LockScope.table()
ADA, BOB = Owner("ada", "host-a", 11, "main", "etl"), Owner("bob", "host-b", 12, "main", "backfill")
JAVA = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
TABLE_KEY = "hoodie.write.lock.hivemetastore.table"
URIS_KEY = "hoodie.write.lock.hivemetastore.uris"
HOLDS = 15
Make = Callable[..., HiveMetastoreLockProvider]


class TestConformance(LockProviderSuite):
    level = Level.EXTRA
    claims = HiveMetastoreLockProvider.capabilities

    @pytest.fixture
    def harness(self, hive_metastore: Server) -> Harness:
        return Harness("hive_metastore", {**hive_metastore.options, TABLE_KEY: "kit"}, seed=1)


@pytest.fixture
def options(hive_metastore: Server) -> dict[str, str]:
    return {**hive_metastore.options, TABLE_KEY: f"trips_{uuid.uuid4().hex[:8]}"}


@pytest.fixture
def make(options: dict[str, str]) -> Iterator[Make]:
    made: list[HiveMetastoreLockProvider] = []

    def make_one(**more: str) -> HiveMetastoreLockProvider:
        made.append(HiveMetastoreLockProvider({**options, **more}, clock=SystemClock(), on_lost=lambda *_: None))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


def rows_of(provider: HiveMetastoreLockProvider, scope: LockScope = TABLE) -> list[LockRow]:
    return provider.metastore.find_locks(provider.settings.database, provider.settings.table_of(scope))


def acquire(provider: HiveMetastoreLockProvider, patience_s: float) -> Lease | None:
    """Poll as a manager does."""
    clock = SystemClock()
    ends_s = clock.monotonic() + patience_s
    while True:
        lease = provider.try_acquire(TABLE, ADA, 0)
        if lease is not None or clock.monotonic() > ends_s:
            return lease
        clock.sleep(0.05)


def test_a_refused_request_leaves_nothing_in_the_queue(make: Make) -> None:
    holder, waiter = make(), make()
    lease = holder.try_acquire(TABLE, ADA, 0)
    for _ in range(3):
        assert waiter.try_acquire(TABLE, BOB, 0) is None
    assert [row.lock_id for row in rows_of(holder)] == [lease.token if lease else 0]


def test_a_name_in_other_letters_has_its_own_holder_or_the_same(make: Make, options: dict[str, str]) -> None:
    assert make().try_acquire(TABLE, ADA, 0) is not None
    shouting = make(**{TABLE_KEY: options[TABLE_KEY].upper()})
    lease = shouting.try_acquire(TABLE, BOB, 0)
    holder = shouting.holder(TABLE)
    assert holder is not None
    assert holder.owner.id == ("ada" if lease is None else "bob"), "Hive 2 has two locks here, Hive 3 one"


def test_file_groups_do_not_wait_for_the_table(make: Make) -> None:
    provider, other = make(), make()
    groups = [LockScope.file_group("city=oslo", f"file-{number}") for number in range(50)]
    assert provider.try_acquire(TABLE, ADA, 0) is not None
    leases = other.acquire_many(groups, BOB, 0)
    assert leases is not None
    assert provider.acquire_many(groups[20:22], ADA, 0) is None
    assert provider.try_acquire(groups[20], ADA, 0) is None
    for lease in leases:
        other.release(lease)
    assert provider.acquire_many(groups[20:22], ADA, 0) is not None


def test_a_lock_of_hive_itself_is_a_holder(make: Make) -> None:
    provider = make()
    types = provider.metastore._types()
    part = types.LockComponent(
        type=types.LockType.SHARED_READ,
        level=types.LockLevel.TABLE,
        dbname=provider.settings.database,
        tablename=provider.settings.table,
    )
    request = types.LockRequest(component=[part], user="analyst", hostname="hive-1", agentInfo="hive_query_1")
    lock_id = provider.metastore.call("lock", request).lockid
    assert provider.try_acquire(TABLE, ADA, 0) is None
    holder = provider.holder(TABLE)
    assert holder is not None
    assert (holder.owner.id, holder.owner.application) == ("analyst", "hive_query_1")
    provider.metastore.unlock(lock_id)
    assert provider.try_acquire(TABLE, ADA, 0) is not None


def test_a_metastore_keeps_what_locks_need(make: Make) -> None:
    findings = {finding.name: finding.ok for finding in make().probe()}
    assert findings == {"one-winner": True, "holder-timeout": False, "drops-dead-locks": True}


def test_a_metastore_that_is_down_is_passed_over(make: Make, options: dict[str, str]) -> None:
    provider = make(**{URIS_KEY: f"thrift://127.0.0.1:1,{options[URIS_KEY]}"})
    assert provider.try_acquire(TABLE, ADA, 0) is not None


def test_a_restart_of_the_metastore_loses_no_lock(tmp_path: Path) -> None:
    server = start_server(HiveMetastore(lock_timeout="60s"), tmp_path)
    assert isinstance(server, LocalServer)
    with server, LockManager("hive_metastore", server.options) as manager, manager.lock() as held:
        server.restart()
        held.verify()


@pytest.mark.usefixtures("jvm")
class TestBesideTheJvm:
    def test_it_does_not_enter_while_we_hold(self, options: dict[str, str]) -> None:
        with LockManager("hive_metastore", options) as manager:
            held = manager.lock()
            with JvmContender(hudi(JAVA, options), "hold", 0.1) as theirs:
                assert not theirs.wait_held(9), "it entered although we renewed a lock of five seconds"
                held.verify()
                freeing_s = SystemClock().monotonic()
                held.release()
                assert theirs.wait_held(30)
                (hold,) = theirs.finish().holds()
        assert hold.begin_ns / 1e9 >= freeing_s

    def test_we_do_not_enter_while_it_holds(self, make: Make, options: dict[str, str]) -> None:
        provider = make()
        with JvmContender(hudi(JAVA, options), "hold", 8) as theirs:
            assert theirs.wait_held(60)
            holder = provider.holder(TABLE)
            lease = acquire(provider, 30)
            assert lease is not None
            acquired_ns = SystemClock().monotonic() * 1e9
            (hold,) = theirs.finish().holds()
        assert acquired_ns >= hold.end_ns
        assert holder is not None
        assert holder.owner.host
        assert "Unknown" in holder.raw

    def test_a_dead_holder_of_theirs_is_dropped(self, make: Make, options: dict[str, str]) -> None:
        with JvmContender(hudi(JAVA, options), "hold", 60) as theirs:
            assert theirs.wait_held(60)
            theirs.kill()
        assert acquire(make(), 20) is not None

    def test_a_dead_holder_of_ours_is_dropped(self, make: Make, options: dict[str, str]) -> None:
        provider = make()
        lease = provider.try_acquire(TABLE, ADA, 0)
        assert lease is not None
        with JvmContender(hudi(JAVA, options), "hold", 0.1) as theirs:
            assert theirs.wait_held(60)
            with pytest.raises(LockLost):
                provider.renew(lease)
            provider.release(lease)
            assert len(theirs.finish().holds()) == 1

    def test_a_storm_of_both_never_overlaps(self, make: Make, options: dict[str, str]) -> None:
        partners = [hudi(JAVA, options), hudi(JAVA, options, version="1.0.2")]
        history = run_mixed_storm("hive_metastore", options, partners, holds=HOLDS)
        assert len(history.holds()) == 6 * HOLDS
        assert find_overlaps(history) == []
        assert rows_of(make()) == []
