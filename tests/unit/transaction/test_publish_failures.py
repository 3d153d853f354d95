"""Publishing while the store or the lock fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transaction_harness import At, FailingStorage, LosingLock

from hudi_locks.errors import (
    OutcomeUnknown,
    StorageError,
)
from hudi_locks.format.claim import ClaimKind, claim_path
from hudi_locks.lock import LockManager
from hudi_locks.transaction import Outcome, StopPoint


def test_no_answer_to_the_claim_is_answered_by_occupying_its_number(harness: Any) -> None:
    asked: list[str] = []

    def fails(verb: str, path: str) -> bool:
        return path == claim_path(1) and not asked and not asked.append(path)  # type: ignore[func-returns-value]

    tx = harness.open(storage=FailingStorage(harness.storage, fails)).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert (result.outcome, [claim.kind for claim in harness.claims()]) == (Outcome.ABORTED, [ClaimKind.ROLLBACK])
    assert "did not answer" in result.reason
    assert not harness.storage.create_if_absent(claim_path(1), b"late")


def test_a_claim_that_landed_without_an_answer_counts(harness: Any) -> None:
    class Deaf(FailingStorage):
        def create_if_absent(self, path: str, data: bytes) -> bool:
            made = super().create_if_absent(path, data)
            if path == claim_path(1) and made:
                raise StorageError("no answer", path=path)
            return made

    tx = harness.open(storage=Deaf(harness.storage, lambda *_: False)).begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0")).outcome is Outcome.COMMITTED
    assert harness.timeline().get(tx.instant).is_completed


def test_a_store_that_stays_silent_makes_the_outcome_unknown_and_resolve_decides(harness: Any) -> None:
    silent = [True]
    storage = FailingStorage(harness.storage, lambda _, path: silent[0] and "/claims/" in path)
    transactions = harness.open(storage=storage)
    tx = transactions.begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert result.outcome is Outcome.UNKNOWN
    with pytest.raises(OutcomeUnknown, match="no space left"):
        result.raise_unless_committed()
    with pytest.raises(StorageError):
        transactions.resolve(tx.instant)
    silent[0] = False
    assert transactions.resolve(tx.instant) is Outcome.ABORTED
    assert harness.open().resolve(tx.instant) is Outcome.ABORTED
    assert harness.names("p") == []


def test_a_full_disk_after_the_claim_is_unknown_and_becomes_committed(harness: Any) -> None:
    storage = FailingStorage(harness.storage, lambda _, path: "/completed/" in path)
    tx = harness.open(storage=storage).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert (result.outcome, "no space left" in result.reason) == (Outcome.UNKNOWN, True)
    assert harness.open().resolve(tx.instant) is Outcome.COMMITTED
    harness.archive(tx.instant)
    assert harness.open().resolve(tx.instant) is Outcome.COMMITTED


def test_a_lost_lock_aborts_before_the_claim_and_warns_at_release(harness: Any) -> None:
    lock = LosingLock()
    tx = harness.open(locks=lock).begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    lock.is_lost = True
    result = tx.publish(metadata)
    assert (result.outcome, result.reason) == (Outcome.ABORTED, "the lock is gone")
    assert "not released in order" in result.warnings[0]
    assert lock.holds == 0


def test_a_lock_file_that_a_jvm_peer_removed_is_missed_before_the_claim(harness: Any, at: At, tmp_path: Path) -> None:
    options = {"hoodie.write.lock.provider": "filesystem", "hoodie.write.lock.filesystem.path": str(tmp_path)}
    lock = tmp_path / "lock"
    with LockManager.from_options(options) as locks:
        trace = at(StopPoint.PUBLISH_FORWARDED, lock.unlink)
        tx = harness.open(locks=locks, trace=trace).begin("commit", "UPSERT")
        result = tx.publish(harness.write(tx, "g-0"))
        assert (result.outcome, "no longer held" in result.reason) == (Outcome.ABORTED, True)
        following = harness.open(locks=locks).begin("commit", "UPSERT")
        assert following.publish(harness.write(following, "g-0")).is_committed
    assert not lock.exists()


def test_a_lock_lost_after_the_claim_changes_nothing(harness: Any, at: At) -> None:
    lock = LosingLock()
    trace = at(StopPoint.PUBLISH_CLAIMED, lambda: setattr(lock, "is_lost", True))
    tx = harness.open(locks=lock, trace=trace).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert (result.outcome, len(result.warnings)) == (Outcome.COMMITTED, 1)
    assert harness.claims()[0].fencing_token == 7
