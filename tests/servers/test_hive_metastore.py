"""The Hive Metastore provider on a real metastore, judged by the kit, and beside Hudi's own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.partners import JvmContender, hudi
from hudi_locks_conformance.servers import LocalServer, Server, start_server
from hudi_locks_conformance.servers.hive_metastore import HiveMetastore
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers._wire.hive_lock import LockRow
from hudi_locks_providers.hive_metastore import HiveMetastoreLockProvider
from jvm_neighbours import (
    ADA,
    TABLE,
    expect_no_overlap,
    expect_our_death_noticed,
    expect_our_hold_kept,
    expect_their_hold_kept,
    makes,
    poll,
)

from hudi_locks import LockManager, LockScope, Owner

pytestmark = pytest.mark.servers

BOB = Owner("bob", "host-b", 12, "main", "backfill")
JAVA = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
TABLE_KEY = "hoodie.write.lock.hivemetastore.table"
URIS_KEY = "hoodie.write.lock.hivemetastore.uris"
Make = Callable[..., HiveMetastoreLockProvider]


class TestConformance(LockProviderSuite):
    level = Level.EXTRA
    claims = HiveMetastoreLockProvider.capabilities

    @pytest.fixture
    def harness(self, hive_metastore: Server) -> Harness:
        return Harness("hive_metastore", {**hive_metastore.options, TABLE_KEY: "kit"}, seed=1, server=hive_metastore)


@pytest.fixture
def options(hive_metastore: Server) -> dict[str, str]:
    return {**hive_metastore.options, TABLE_KEY: f"trips_{uuid.uuid4().hex[:8]}"}


@pytest.fixture
def make(options: dict[str, str]) -> Iterator[Make]:
    with makes(HiveMetastoreLockProvider, options) as make_one:
        yield make_one


def rows_of(provider: HiveMetastoreLockProvider, scope: LockScope = TABLE) -> list[LockRow]:
    return provider.metastore.find_locks(provider.settings.database, provider.settings.table_of(scope))


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
    types = provider.metastore.types()
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
        expect_our_hold_kept("hive_metastore", options, hudi(JAVA, options), watch_s=9)

    def test_we_do_not_enter_while_it_holds(self, make: Make, options: dict[str, str]) -> None:
        assert "Unknown" in expect_their_hold_kept(make(), hudi(JAVA, options), hold_s=8).raw

    def test_a_dead_holder_of_theirs_is_dropped(self, make: Make, options: dict[str, str]) -> None:
        with JvmContender(hudi(JAVA, options), "hold", 60) as theirs:
            assert theirs.wait_held(60)
            theirs.kill()
        assert poll(make(), 20) is not None

    def test_a_dead_holder_of_ours_is_dropped(self, make: Make, options: dict[str, str]) -> None:
        expect_our_death_noticed(make(), hudi(JAVA, options))

    def test_a_storm_of_both_never_overlaps(self, make: Make, options: dict[str, str]) -> None:
        partners = [hudi(JAVA, options), hudi(JAVA, options, version="1.0.2")]
        expect_no_overlap("hive_metastore", options, partners)
        assert rows_of(make()) == []
