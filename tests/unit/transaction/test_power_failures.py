"""The power fails after any flush of a write: nothing that was committed is gone, nothing that was not is left."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from power_cut import Disk
from transaction_harness import MODE, OPEN_LOCK, OPTIMISTIC, write_file

from hudi_locks.clock import SystemClock
from hudi_locks.format import BaseFileName, CommitMetadata, WriteStat
from hudi_locks.lock import Owner
from hudi_locks.storage import LocalStorage
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.transaction import Outcome, Transaction, Transactions

ROWS = b"rows"
LONG_AGO_S = 1_000_000_000


def open_table(folder: Path) -> Transactions:
    config = SimpleNamespace(table_type="COPY_ON_WRITE", version=8, extra={"hudi_locks.foreign_writers": "false"})
    table: Any = SimpleNamespace(storage=LocalStorage(str(folder)), layout=LAYOUT_2, config=config)
    options = {"hoodie.time.generator.max_expected_clock_skew_ms": 0, MODE: OPTIMISTIC}
    return Transactions(table, OPEN_LOCK, options=options, clock=SystemClock(), owner=Owner("me", application="job"))


def write(folder: Path, tx: Transaction, partition: str) -> CommitMetadata:
    files, name = tx.files, str(BaseFileName("group", tx.instant))
    stat = WriteStat(partition, "group", f"{partition}/{name}", ticket=write_file(files, partition, name, ROWS))
    return CommitMetadata.of([stat], "UPSERT", schema="{}")


def commit(folder: Path, partition: str) -> str:
    tx = open_table(folder).begin("commit", "UPSERT")
    assert tx.publish(write(folder, tx, partition)).outcome is Outcome.COMMITTED
    return tx.instant


def recover(folder: Path) -> set[str]:
    """The instants that are committed once the next writer looked around, each with its rows, and no other file."""
    for beat in (folder / ".hoodie/.heartbeat").glob("*"):
        os.utime(beat, (LONG_AGO_S, LONG_AGO_S))  # as long ago as a machine takes to come back
    open_table(folder).begin("commit", "UPSERT").abort("only looking")
    timeline = Timeline.load(LocalStorage(str(folder)), LAYOUT_2)
    done = {instant.requested for instant in timeline.completed() if instant.action == "commit"}
    found = {path.name.rpartition("_")[2].removesuffix(".parquet"): path for path in folder.glob("[!.]*/**/*.parquet")}
    assert set(found) == done
    assert all(path.read_bytes() == ROWS for path in found.values())
    return done


@pytest.mark.parametrize(("is_first", "partition"), [(True, "a=1/b=2"), (False, "p")])
def test_a_commit_is_whole_or_nothing_after_a_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool, partition: str
) -> None:
    table, copies = tmp_path / "table", itertools.count()
    table.mkdir()
    before = set() if is_first else {commit(table, partition)}
    disk, left = Disk(table), list[Path]()
    disk.on_flush = lambda: left.append(disk.restore_to(tmp_path / f"left{next(copies)}"))
    with disk.watched(monkeypatch):
        done = commit(table, partition)
        last = disk.restore_to(tmp_path / "last")
    outcomes = [recover(folder) for folder in left]
    assert recover(last) == before | {done}
    assert all(before <= outcome <= before | {done} for outcome in outcomes)
    assert before in outcomes
