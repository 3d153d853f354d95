"""Markers are text that anybody may write: only data files of their own instant, in partitions, go for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from service_harness import ServiceHarness
from transaction_harness import HarnessClock, heartbeats_that_end

from hudi_locks.clock import SystemClock
from hudi_locks.format import CleanPlan, Instant, State
from hudi_locks.format.claim import claim_path
from hudi_locks.markers import MARKER_FOLDER, DirectMarkers, read_markers
from hudi_locks.services import Janitor, Restorer
from hudi_locks.storage import LocalStorage, MemoryStorage, Storage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.heartbeat import heartbeat_path
from hudi_locks.transaction import Transaction

OTHER = "20200101000000000"
PRECIOUS = (
    ".hoodie/hoodie.properties",
    claim_path(1),
    "p/.hoodie_partition_metadata",
    f"p/g-0_0-0-0_{OTHER}.parquet",
    f"p/.g-0_{OTHER}.log.1_0-0-0",
    "p/notes.txt",
)


@pytest.fixture(params=["memory", "disk"])
def harness(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceHarness]:
    clock = HarnessClock()
    storage: Any = MemoryStorage(clock)
    if request.param == "disk":
        clock = HarnessClock(SystemClock().wall_ms())
        storage = LocalStorage(str(request.getfixturevalue("tmp_path")))
    with heartbeats_that_end(monkeypatch):
        yield ServiceHarness(clock, storage)


def let_die(harness: ServiceHarness, requested: str) -> None:
    """Let the heartbeat of an instant look two hours old."""
    storage: Storage = harness.storage
    if isinstance(storage, MemoryStorage):
        harness.clock.advance(7200)
    else:
        old_s = harness.clock.wall_ms() / 1000 - 7200
        os.utime(storage.address(heartbeat_path(requested)), (old_s, old_s))


def name_lines(instant: str) -> list[bytes]:
    """Markers of files that are no data files of the instant, and lines that are no markers."""
    own = f"g-9_0-0-0_{instant}.parquet"
    odd = [
        *PRECIOUS,
        f".hoodie/{own}",
        f".hoodie/.hudi_locks/{own}",
        f"../{own}",
        f"p/../../{own}",
        f"/{own}",
        f"/etc/{own}",
        f"p//{own}",
        f"./{own}",
        f"p\0/{own}",
        f"{'x' * 5_000}/{own}",
        f"{'x/' * 2_500}{own}",
        f"p/{'x' * 300}_0-0-0_{instant}.parquet",
        f"folder/f-0_0-0-0_{instant}.parquet",
        "p",
    ]
    return [f"{path}.marker.CREATE\n".encode() for path in odd] + [b"p/\xff\xfe_" + f"{own}.marker.MERGE\n".encode()]


def plant(storage: Storage, instant: str) -> str:
    """Put odd markers beside a good one; the path of the one file that may go."""
    for path in PRECIOUS:
        storage.create_if_absent(path, b"precious")
    storage.create_if_absent(f"folder/f-0_0-0-0_{instant}.parquet/inside", b"precious")
    folder, stray = DirectMarkers(storage, instant).folder, f"p/g-9_0-0-0_{instant}.parquet"
    storage.replace(stray, b"rows")
    storage.replace(f"{folder}/MARKERS.type", b"TIMELINE_\xff")
    storage.replace(f"{folder}/MARKERS0", b"".join(name_lines(instant)) + f"{stray}.marker.CREATE\n".encode())
    storage.replace(f"{folder}/MARKERS7/x", b"a folder in place of a file")
    for path in PRECIOUS:
        storage.create_if_absent(f"{folder}/{path}.marker.CREATE", b"")
    return stray


def begin(harness: ServiceHarness) -> Transaction:
    harness.put("q/first-0")
    tx = harness.open().begin("commit", "UPSERT")
    harness.rewrite(tx, "q/second-0")
    return tx


def abort(harness: ServiceHarness) -> str:
    tx = begin(harness)
    stray = plant(harness.storage, tx.instant)
    assert tx.abort("enough").warnings == ()
    return stray


def die(harness: ServiceHarness) -> str:
    tx = begin(harness)
    stray = plant(harness.storage, tx.instant)
    tx._state.heartbeat.pause()
    let_die(harness, tx.instant)
    harness.put("q/third-0")
    return stray


def sweep(harness: ServiceHarness) -> str:
    tx = begin(harness)
    tx.abort("enough")
    harness.put("q/third-0")
    stray = plant(harness.storage, tx.instant)
    assert Janitor(harness.open().coordinator).sweep().data_files == (stray,)
    return stray


def restore(harness: ServiceHarness) -> str:
    kept = harness.put("q/first-0")
    tx = begin(harness)
    stray = plant(harness.storage, tx.instant)
    metadata = harness.rewrite(tx, "q/second-0")
    harness.storage.delete(stray)
    assert tx.publish(metadata).is_committed
    stray = plant(harness.storage, tx.instant)
    Restorer(harness.open().coordinator).run(kept)
    return stray


@pytest.mark.parametrize("act", [abort, die, sweep, restore])
def test_only_data_files_of_the_instant_go(
    harness: ServiceHarness, act: Callable[[ServiceHarness], str], caplog: pytest.LogCaptureFixture
) -> None:
    stray = act(harness)
    assert not harness.storage.exists(stray)
    assert [path for path in PRECIOUS if not harness.storage.exists(path)] == []
    assert "folder" in {entry.name for entry in harness.storage.list("")}
    assert next(iter(harness.storage.walk("folder")))[0].endswith(".parquet/inside")
    assert MARKER_FOLDER in caplog.text
    assert "passed over" in caplog.text
    harness.put("q/later-0")
    harness.put("q/first-0")


def test_what_is_passed_over_is_told_once_with_the_first_of_it(
    harness: ServiceHarness, caplog: pytest.LogCaptureFixture
) -> None:
    instant = "20260101000000001"
    plant(harness.storage, instant)
    found = read_markers(harness.storage, instant)
    assert found.own_files == {f"p/g-9_0-0-0_{instant}.parquet", f"folder/f-0_0-0-0_{instant}.parquet"}
    assert not found.is_complete
    assert len(caplog.messages) == 1
    assert max(map(len, caplog.messages)) < 1_000


def test_a_plan_of_a_clean_removes_data_files_alone(harness: ServiceHarness, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever finds the plan of a cleaner that died carries it out, whatever it says."""
    first = harness.put("p/g-0")
    harness.put("p/g-0")
    for path in PRECIOUS:
        harness.storage.create_if_absent(path, b"precious")
    files = {
        "p": (f"p/g-0_0-0-0_{first}.parquet", "p/.hoodie_partition_metadata", "p/notes.txt"),
        ".hoodie": (".hoodie/hoodie.properties",),
        "../p": (f"../p/g-0_0-0-0_{OTHER}.parquet",),
    }
    plan = CleanPlan(None, first, "KEEP_LATEST_COMMITS", files)
    instant = Instant("20200101000000001", "clean", State.REQUESTED)
    harness.storage.create_if_absent(LAYOUT_2.path(instant), plan.encode())
    harness.storage.create_if_absent(heartbeat_path(instant.requested), b"")
    let_die(harness, instant.requested)
    assert harness.cleaner(commits__retained=10).run().instants == (instant.requested,)
    assert not harness.storage.exists(f"p/g-0_0-0-0_{first}.parquet")
    assert [path for path in PRECIOUS if not harness.storage.exists(path)] == []
    assert "passed over" in caplog.text
