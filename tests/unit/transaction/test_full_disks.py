"""A write that fills the disk takes away what it staged, and what comes next finds room."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from service_harness import ServiceHarness
from transaction_harness import HarnessClock, heartbeats_that_end, write_file

from hudi_locks.errors import StorageError
from hudi_locks.format import BaseFileName, CommitMetadata, WriteStat
from hudi_locks.markers import staging_folder
from hudi_locks.storage import MemoryStorage
from hudi_locks.transaction import Outcome, Transaction

BLOCK = 4096
ROWS = b"x" * 10 * BLOCK


class SmallDisk(MemoryStorage):
    """Holds so many blocks; a file takes one for each 4 KiB begun, an empty file none."""

    def __init__(self, clock: HarnessClock) -> None:
        super().__init__(clock)
        self.blocks = 1_000

    @property
    def used(self) -> int:
        return sum(-(-len(data) // BLOCK) for data, _, _ in self._files.values())

    def _put(self, path: str, data: bytes) -> None:
        if self.used + -(-len(data) // BLOCK) > self.blocks:
            raise StorageError(f"cannot create {path!r}: no space left", path=path, errno=errno.ENOSPC)
        super()._put(path, data)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = HarnessClock()
    with heartbeats_that_end(monkeypatch):
        yield ServiceHarness(clock, SmallDisk(clock))


def stage(harness: ServiceHarness, tx: Transaction, group: str) -> WriteStat:
    name = str(BaseFileName(group, tx.instant))
    return WriteStat("p", group, f"p/{name}", ticket=write_file(tx.files, "p", name, ROWS))


def fill(harness: Any) -> None:
    harness.storage.blocks = harness.storage.used


def test_an_abort_takes_staged_files_away_before_it_makes_any(full: Any) -> None:
    full.commit("g-0")
    tx = full.open().begin("commit", "UPSERT")
    stage(full, tx, "h-0")
    fill(full)
    with pytest.raises(StorageError):
        stage(full, tx, "i-0")
    result = tx.abort("no space left")
    assert (result.outcome, result.warnings) == (Outcome.ABORTED, ())
    assert not full.storage.exists(staging_folder(tx.instant))
    full.commit("h-0")


def test_a_publish_without_room_for_its_claim_is_aborted_and_leaves_nothing(full: Any) -> None:
    full.commit("g-0")
    tx = full.open().begin("commit", "UPSERT")
    stats = [stage(full, tx, "h-0")]
    fill(full)
    result = tx.publish(CommitMetadata.of(stats, "UPSERT", schema="{}"))
    assert result.outcome is Outcome.ABORTED
    assert "disk is full" in result.reason
    assert [name for name in full.names("p") if tx.instant in name] == []
    full.commit("h-0")


def test_the_next_write_takes_away_what_a_dead_one_staged_before_it_makes_anything(full: Any) -> None:
    full.commit("g-0")
    dead = full.open().begin("commit", "UPSERT")
    stage(full, dead, "h-0")
    dead._state.heartbeat.pause()
    fill(full)
    full.clock.advance(7200)
    full.commit("h-0")
    assert not full.storage.exists(staging_folder(dead.instant))


def test_a_clean_needs_no_more_room_than_its_plan(full: Any) -> None:
    for _ in range(4):
        full.put("p/g-0")
    full.storage.blocks = full.storage.used + 8
    with pytest.raises(StorageError):
        full.storage.replace("other", ROWS)
    assert (
        full.cleaner(commits__retained=1).run().deleted == 2
    )  # the last version, and the one that the last commit superseded, stay
