"""A writer whose files are gone can tell whether it was taken for dead: then they are gone by right."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_locks.errors import StorageError
from hudi_locks.format import State
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.heartbeat import heartbeat_path


def begin(harness: Any) -> Any:
    return harness.open().begin("commit", "UPSERT")


def test_a_write_that_others_see_alive_is_not_lost(harness: Any) -> None:
    tx = begin(harness)
    harness.commit("h-0")
    assert tx.find_loss() == ""


def test_a_heartbeat_file_that_was_removed_is_noticed_before_the_next_beat(harness: Any) -> None:
    tx = begin(harness)
    harness.storage.delete(heartbeat_path(tx.instant))
    assert tx.lost_because == ""
    assert tx.find_loss() == f"{heartbeat_path(tx.instant)} was removed"


def test_who_rolled_the_instant_back_is_told_by_the_claim(harness: Any) -> None:
    tx = begin(harness)
    harness.storage.delete(heartbeat_path(tx.instant))
    harness.commit("h-0")
    assert harness.timeline().get(tx.instant) is None
    harness.storage.replace(heartbeat_path(tx.instant), b"")
    claim = next(claim for claim in harness.claims() if claim.instant == tx.instant)
    assert tx.find_loss() == f"{claim.owner} rolled the instant back by claim {claim.number}"


def test_a_rollback_that_has_no_claim_is_told_by_the_timeline(harness: Any) -> None:
    """As a JVM writer leaves it."""
    tx = begin(harness)
    harness.storage.delete(LAYOUT_2.path(harness.timeline().get(tx.instant)))
    assert tx.find_loss() == "the inflight file is gone: another process rolled the instant back"


def test_a_heartbeat_that_was_not_renewed_is_told_too(harness: Any) -> None:
    tx = begin(harness)
    tx._state.heartbeat._stopped.set()
    harness.clock.advance(130)
    assert tx.find_loss() == tx.lost_because == "the heartbeat was not renewed in time"


def test_a_write_that_has_ended_is_lost_no_more(harness: Any) -> None:
    tx = begin(harness)
    assert tx.publish(harness.write(tx, "g-0")).is_committed
    harness.clock.advance(130)
    assert tx.find_loss() == ""


def test_a_write_whose_claim_stands_is_not_lost_though_its_inflight_file_is_gone(harness: Any) -> None:
    """It is completed, and may be archived."""
    tx = begin(harness)
    assert tx.publish(harness.write(tx, "g-0")).is_committed
    tx._ended = ""
    harness.storage.delete(LAYOUT_2.path(harness.timeline().get(tx.instant).as_inflight()))
    assert tx.find_loss() == ""


def test_a_store_that_does_not_answer_says_so(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise StorageError("the link is broken")

    tx = begin(harness)
    assert harness.timeline().get(tx.instant).state is State.INFLIGHT
    monkeypatch.setattr(MemoryStorage, "stat", fail)
    with pytest.raises(StorageError, match="link is broken"):
        tx.find_loss()
