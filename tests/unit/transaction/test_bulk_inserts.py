"""Bulk inserts that give a new bucket its base file, beside writers that do not block each other."""

from __future__ import annotations

from typing import Any

import pytest
from compaction_harness import SCHEMA, CompactionHarness

from hudi_locks.format import BaseFileName, CommitMetadata
from hudi_locks.transaction import Outcome, Transaction
from hudi_locks.transaction.conflicts import NonBlocking

ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))


@pytest.fixture
def service(harness: Any) -> CompactionHarness:
    return CompactionHarness.at(harness)


def load(service: CompactionHarness, tx: Transaction, *groups: str) -> CommitMetadata:
    """Rows of `tx` in a base file of each file group."""
    stats = [service._make(tx, group, str(BaseFileName(group, tx.instant)), [tx.instant], None) for group in groups]
    return CommitMetadata.of(stats, "BULK_INSERT", schema=SCHEMA)


def compact(service: CompactionHarness) -> None:
    compaction = service.compaction()
    assert compaction.schedule() is not None
    assert service.run(compaction).is_committed  # type: ignore[union-attr]


def log_beside(service: CompactionHarness, *, begins_first: bool, compacts: bool) -> tuple[Transaction, str]:
    """A bulk insert that is under way, and what was logged to its bucket meanwhile."""
    early = service.begin() if begins_first else None
    loading = service.begin()
    tx = early or service.begin()
    assert tx.publish(service.log(tx, ZERO)).is_committed
    if compacts:
        compact(service)
    return loading, tx.instant


@pytest.mark.parametrize("compacts", [True, False])
@pytest.mark.parametrize("begins_first", [True, False])
def test_what_was_logged_to_its_bucket_meanwhile_is_a_conflict(
    service: CompactionHarness, begins_first: bool, compacts: bool
) -> None:
    loading, logged = log_beside(service, begins_first=begins_first, compacts=compacts)
    result = loading.publish(load(service, loading, ZERO, ONE))
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, logged)  # type: ignore[union-attr]
    assert service.seen() == {ZERO: [logged]}


def test_were_it_none_a_compaction_would_hide_its_rows(
    service: CompactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NonBlocking, "is_candidate", lambda *_: False)
    loading, logged = log_beside(service, begins_first=False, compacts=True)
    assert loading.publish(load(service, loading, ZERO)).is_committed
    assert service.seen() == {ZERO: [logged]}


@pytest.mark.parametrize("begins_first", [True, False])
def test_what_is_logged_after_it_lies_on_top_whenever_it_began(service: CompactionHarness, begins_first: bool) -> None:
    early = service.begin() if begins_first else None
    loading = service.begin()
    tx = early or service.begin()
    assert loading.publish(load(service, loading, ZERO)).is_committed
    assert tx.publish(service.log(tx, ZERO)).is_committed
    assert service.seen() == {ZERO: [loading.instant, tx.instant]}
    compact(service)
    assert service.seen() == {ZERO: [loading.instant, tx.instant]}


def test_two_bulk_inserts_of_one_new_bucket_are_a_conflict(service: CompactionHarness) -> None:
    first, second = service.begin(), service.begin()
    assert first.publish(load(service, first, ZERO)).is_committed
    result = second.publish(load(service, second, ZERO))
    assert (result.outcome, result.conflict.other) == (Outcome.ABORTED, first.instant)  # type: ignore[union-attr]
    assert service.seen() == {ZERO: [first.instant]}


def test_one_that_only_logs_meets_nobody(service: CompactionHarness) -> None:
    first = service.append(ZERO)
    loading = service.begin()
    logged = service.append(ZERO)
    mixed = [*load(service, loading, ONE).stats, *service.log(loading, ZERO).stats]
    assert loading.publish(CommitMetadata.of(mixed, "BULK_INSERT", schema=SCHEMA)).is_committed
    assert service.seen() == {ZERO: [first, loading.instant, logged], ONE: [loading.instant]}
