"""The JVM lock holders exclude each other, or the judge is no judge."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hudi_locks_conformance.history import History, find_overlaps
from hudi_locks_conformance.partners import JvmContender, Partner, curator, hudi
from hudi_locks_conformance.servers import Server

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("jvm")]

EXPLICIT = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
HOLDS = 20


def test_curator_and_hudi_take_turns(zookeeper: Server) -> None:
    options = {**zookeeper.options, "hoodie.write.lock.zookeeper.lock_key": "partners"}
    path = f"{options['hoodie.write.lock.zookeeper.base_path']}/partners"
    mutex = curator(options["hoodie.write.lock.zookeeper.url"], path)
    history = run_storm([mutex, hudi(EXPLICIT, options)])
    assert len(history.holds()) == 2 * HOLDS
    assert find_overlaps(history) == []


def run_storm(partners: list[Partner]) -> History:
    history = History()
    with ExitStack() as stack:
        running = [stack.enter_context(JvmContender(partner, "storm", HOLDS)) for partner in partners]
        for contender in running:
            history.merge(contender.finish().operations)
    return history


def test_a_holder_says_when_it_holds(zookeeper: Server) -> None:
    options = {**zookeeper.options, "hoodie.write.lock.zookeeper.lock_key": "announced"}
    with JvmContender(hudi(EXPLICIT, options, version="1.0.2"), "hold", 0.2) as contender:
        assert contender.wait_held(60)
        (hold,) = contender.finish().holds()
    assert hold.end_ns - hold.begin_ns >= 0.2e9
