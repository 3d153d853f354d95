"""The storage lock beside Hudi's own provider, on fake-gcs-server.

Hudi's provider, serialiser and heartbeat run as they are; only the client below them, whose modules are outside the
bundle, is ours (partners/java/StorageContender.java).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest
from hudi_locks_conformance.history import find_overlaps
from hudi_locks_conformance.partners import JvmContender, Partner, hudi_storage, run_mixed_storm
from hudi_locks_conformance.servers import Server
from hudi_locks_providers.storage import StorageLockProvider

from hudi_locks import LockLost, LockManager, LockScope, LossReason, SystemClock

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("jvm")]
TABLE = LockScope.table()
VALIDITY, RENEWAL = "hoodie.write.lock.storage.validity.timeout.secs", "hoodie.write.lock.storage.renew.interval.secs"
HOLDS = 6
QUICK = {
    "hoodie.write.lock.wait_time_ms_between_retry": "20",
    "hoodie.write.lock.max_wait_time_ms_between_retry": "200",
    "hoodie.write.lock.num_retries": "10000",
}


@pytest.fixture
def options(fake_gcs: Server) -> dict[str, str]:
    """A table of its own, with the shortest lease."""
    base = f"gs://locks/jvm/{uuid.uuid4().hex[:8]}"
    return {**fake_gcs.options, "hoodie.base.path": base, VALIDITY: "10", RENEWAL: "1", **QUICK}


@pytest.fixture
def partner(options: dict[str, str]) -> Partner:
    return hudi_storage(options, options["hudi_locks.storage.endpoint_url"])


@pytest.fixture
def manager(options: dict[str, str]) -> Iterator[LockManager]:
    with LockManager("storage", options, application="etl") as made:
        yield made


def test_the_jvm_keeps_us_out_and_is_named(manager: LockManager, partner: Partner) -> None:
    with JvmContender(partner, "hold", 3, until_told=True) as theirs:
        assert theirs.wait_held(60)
        assert manager.try_lock() is None
        found = manager.holder()
        assert found is not None
        assert uuid.UUID(found.owner.id)
        theirs.let_go()
        held = manager.lock(timeout_s=30)
        theirs.finish()
    held.verify()


def test_we_keep_the_jvm_out_and_it_reads_our_record(manager: LockManager, partner: Partner) -> None:
    held = manager.lock(timeout_s=5)
    with JvmContender(partner, "hold", 0.1) as theirs:
        assert not theirs.wait_held(15)  # longer than the lease: ours is renewed
        held.verify()
        held.release()
        assert theirs.wait_held(30)
        theirs.finish()
    assert manager.holder() is None


def test_a_dead_jvm_holder_gives_way_after_its_lease(manager: LockManager, partner: Partner) -> None:
    with JvmContender(partner, "hold", 60) as theirs:
        assert theirs.wait_held(60)
        theirs.kill()
        record = manager.holder()
        assert record is not None
        manager.lock(timeout_s=50).release()
        # A starved holder may have renewed it last long before it was killed: what counts is the end in its record.
        assert SystemClock().wall_ms() > json.loads(record.raw)["validUntil"], "before its lease was over"


def test_the_jvm_takes_over_from_a_dead_holder_of_ours_who_notices(options: dict[str, str], partner: Partner) -> None:
    provider = StorageLockProvider(options, clock=SystemClock(), on_lost=lambda *_: None)
    with LockManager("storage", options) as other:
        lease = provider.try_acquire(TABLE, other._identity.owner(), 0)
        assert lease is not None
        with JvmContender(partner, "hold", 1) as theirs:
            assert theirs.wait_held(60)
            with pytest.raises(LockLost) as lost:
                provider.renew(lease)
            theirs.finish()
    assert lost.value.reason in (LossReason.EXPIRED, LossReason.STOLEN)
    provider.close()


def test_a_storm_of_four_of_ours_and_two_of_theirs(options: dict[str, str], partner: Partner) -> None:
    history = run_mixed_storm("storage", options, [partner] * 2, ours=4, holds=HOLDS)
    assert len(history.holds()) == 6 * HOLDS
    assert find_overlaps(history) == []


def test_what_the_jvm_leaves_is_what_we_would(options: dict[str, str], manager: LockManager, partner: Partner) -> None:
    provider = manager.provider
    assert isinstance(provider, StorageLockProvider)
    records = []
    with JvmContender(partner, "hold", 0.1) as theirs:
        theirs.finish()
    records.append(provider._objects.read(provider.key(TABLE)))
    manager.lock(timeout_s=5).release()
    records.append(provider._objects.read(provider.key(TABLE)))
    told = [json.loads(record.data) for record in records if record is not None]
    assert [list(fields) for fields in told] == [["expired", "validUntil", "owner"]] * 2
    assert [type(value) for value in told[0].values()] == [type(value) for value in told[1].values()]
    assert all(
        record.data == json.dumps(json.loads(record.data), separators=(",", ":")).encode()
        for record in records
        if record
    )
