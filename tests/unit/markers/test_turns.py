"""A task that lives on after its turn names no file, whatever became of the names that it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transaction_harness import write_staged

from hudi_locks.clock import ManualClock
from hudi_locks.errors import StorageError
from hudi_locks.format import BaseFileName, Instant, IOType, State
from hudi_locks.markers import FinalFiles, reconcile
from hudi_locks.storage import LocalStorage, MemoryStorage, Storage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import StopPoint

T = "20231114221320000"
At = Callable[[StopPoint, Callable[[], object]], Any]


@pytest.fixture(params=["local", "memory"])
def files(request: Any, tmp_path: Path) -> FinalFiles:
    storage: Storage = LocalStorage(str(tmp_path)) if request.param == "local" else MemoryStorage(ManualClock())
    storage.create_if_absent(LAYOUT_2.path(Instant(T, "commit", State.INFLIGHT)), b"")
    made = FinalFiles(storage, LAYOUT_2, T, "commit")
    made.open_turn()
    return made


def test_after_its_turn_a_task_can_neither_name_nor_stage_a_file(files: FinalFiles) -> None:
    late, later = (files.start("p", "f", io_type=IOType.MERGE) for _ in range(2))
    write_staged(files.storage, late, b"outdated")
    files.end_turn()
    files.end_turn()
    with pytest.raises(StorageError):
        files.finish(late)
    with pytest.raises(StorageError):
        write_staged(files.storage, later, b"outdated")
    assert not files.storage.exists("p/f")


def test_the_next_turn_writes_what_the_one_before_made(files: FinalFiles) -> None:
    first, late = (files.start("p", "f", io_type=IOType.MERGE) for _ in range(2))
    for staged in (first, late):
        write_staged(files.storage, staged, b"outdated")
    assert files.finish(first)
    following = replace(files, turn=1)
    files.end_turn()
    files.storage.delete("p/f")
    following.open_turn()
    second = following.start("p", "f", io_type=IOType.MERGE)
    write_staged(files.storage, second, b"rows")
    with pytest.raises(StorageError):
        files.finish(late)
    assert following.finish(second)
    assert files.storage.read("p/f") == b"rows"


def test_a_stray_is_removed_for_good(files: FinalFiles) -> None:
    name = f"f_0-0-0_{T}.parquet"
    first, late = (files.start("p", name, io_type=IOType.CREATE) for _ in range(2))
    for staged in (first, late):
        write_staged(files.storage, staged, b"stray")
    files.finish(first)
    assert reconcile(files.storage, T, written=set()) == [f"p/{name}"]
    with pytest.raises(StorageError):
        files.finish(late)
    assert not files.storage.exists(f"p/{name}")


AFTER_RECONCILIATION = [
    StopPoint.PUBLISH_RECONCILED,
    StopPoint.PUBLISH_CLAIMED,
    StopPoint.PUBLISH_COMPLETED,
    StopPoint.PUBLISH_CLEANED,
    StopPoint.PUBLISH_UNLOCKED,
]


@pytest.mark.parametrize("point", AFTER_RECONCILIATION)
def test_a_task_that_outlives_its_job_brings_nothing_back_at_any_step_of_the_publish(
    harness: Any, point: StopPoint
) -> None:
    """An insert moved the rows of g to h, since g was changed meanwhile; the publish removes its file of g."""
    late: list[Any] = []

    def wake(reached: StopPoint) -> None:
        if reached is point:
            with pytest.raises(StorageError):
                tx.files.finish(late.pop())

    tx = harness.open(trace=wake).begin("commit", "INSERT")
    name = str(BaseFileName("g-0", tx.instant))
    late.append(tx.files.start("p", name, io_type=IOType.MERGE))
    write_staged(harness.storage, late[0], b"outdated")
    harness.write(tx, "g-0")
    around = harness.write(tx, "h-0")
    assert tx.publish(around).is_committed
    assert [n.split("_")[0] for n in harness.names("p")] == ["h-0"]
    assert late == []
