"""Services that follow a write, here or beside the next one."""

from __future__ import annotations

from typing import Any

import pytest
from service_harness import ServiceHarness
from transaction_harness import Killed, LosingLock, kill

from hudi_locks.errors import ConfigError
from hudi_locks.format import IOType
from hudi_locks.markers import DirectMarkers
from hudi_locks.services import TableServices

KEEP = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
}


def services(harness: ServiceHarness, *, locks: Any = None, **options: Any) -> TableServices:
    given = KEEP | {name.replace("__", "."): value for name, value in options.items()}
    return TableServices(harness.open(**({"locks": locks} if locks else {})), given)


def put(harness: ServiceHarness, count: int) -> list[str]:
    times = [harness.put("p/g-0") for _ in range(count)]
    harness.clock.advance(3601)
    return times


def actions(harness: ServiceHarness) -> list[str]:
    return [instant.action for instant in harness.timeline().instants]


def test_a_write_is_followed_by_a_clean_and_then_by_archival(harness: ServiceHarness) -> None:
    times = put(harness, 5)
    assert services(harness).follow_write() == ()
    assert [instant.requested for instant in harness.timeline().completed(("commit",))] == times[-2:]
    assert actions(harness) == ["commit", "commit", "clean"]
    assert len(harness.files()) == 2


def test_what_is_turned_off_does_not_follow(harness: ServiceHarness) -> None:
    put(harness, 5)
    off: dict[str, Any] = {"hoodie__clean__automatic": False, "hoodie__archive__automatic": False}
    assert services(harness, **off).follow_write() == ()
    assert actions(harness) == ["commit"] * 5


def test_a_clean_waits_for_as_many_commits_as_asked(harness: ServiceHarness) -> None:
    patient = services(harness, hoodie__clean__trigger__max__commits=4, hoodie__keep__max__commits=99)
    put(harness, 3)
    patient.follow_write()
    assert "clean" not in actions(harness)
    put(harness, 1)
    patient.follow_write()
    assert actions(harness).count("clean") == 1
    put(harness, 3)
    patient.follow_write()
    assert actions(harness).count("clean") == 1


def test_services_on_threads_of_their_own_are_waited_for_at_the_end(harness: ServiceHarness) -> None:
    put(harness, 5)
    asked: dict[str, Any] = {"hoodie.clean.async.enabled": True, "hoodie.archive.async": True}
    beside = services(harness, **asked)
    with beside._working:  # so that neither thread gets any further
        assert beside.follow_write() == ()
        assert actions(harness) == ["commit"] * 5
    beside.close()
    assert "clean" in actions(harness)
    harness.clock.advance(3601)
    beside.follow_write()
    beside.close()
    assert len(harness.timeline().completed(("commit",))) == 2


@pytest.mark.parametrize("key", ["hoodie.clean.async.enabled", "hoodie.archive.async"])
def test_each_service_has_a_thread_of_its_own_when_asked(harness: ServiceHarness, key: str) -> None:
    put(harness, 5)
    beside = services(harness, **{key: True})
    beside.follow_write()
    assert list(beside._threads) == [key.split(".")[1]]
    beside.close()


def test_a_service_that_fails_is_a_warning_and_nothing_is_archived_uncleaned(harness: ServiceHarness) -> None:
    put(harness, 5)
    locks = LosingLock()
    busy = services(harness, locks=locks)
    locks.is_refused = True
    (warning,) = busy.follow_write()
    assert "somebody else has it" in warning
    assert actions(harness) == ["commit"] * 5


def test_a_fault_of_the_program_is_no_warning(harness: ServiceHarness, monkeypatch: Any) -> None:
    follower = services(harness)
    monkeypatch.setattr(follower, "_clean_if_due", kill)
    with pytest.raises(Killed):
        follower.follow_write()


def test_a_sweep_precedes_a_write_when_asked(harness: ServiceHarness) -> None:
    done = harness.put("p/g-0")
    DirectMarkers(harness.storage, done).create("p", f"g-0_0-0-0_{done}.parquet", io_type=IOType.CREATE)
    assert services(harness).precede_write() == ()
    assert harness.names(".hoodie/.temp") == [done]
    assert services(harness, hudi_locks__sweep_before_write=True).precede_write() == ()
    assert harness.names(".hoodie/.temp") == []


def test_cleaning_and_sweeping_by_hand_roll_back_what_failed(harness: ServiceHarness) -> None:
    harness.put("p/g-0")
    for work in ("clean", "sweep"):
        tx = harness.open().begin("commit", "UPSERT")
        harness.rewrite(tx, "p/g-0")
        tx._state.heartbeat.pause()
        harness.clock.advance(200)
        result = getattr(services(harness), work)()
        assert harness.timeline().get(tx.instant) is None
        assert getattr(result, "rolled_back", (tx.instant,)) == (tx.instant,)


def test_a_savepoint_and_a_restore_by_hand(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    table = services(harness)
    assert table.savepoints.create(user="me", comments="why").instant == first
    harness.clock.advance(1)
    harness.put("p/g-0")
    assert table.restore(first).savepoint == first
    assert table.savepoints.delete(first)
    assert table.archive().archived == 0


def test_a_wrong_option_is_refused_at_once(harness: ServiceHarness) -> None:
    with pytest.raises(ConfigError, match="retained"):
        services(harness, hoodie__clean__commits__retained="many")
